#include "autograd/derivatives.h"

#include "autograd/autograd.h"
#include "ops/core/operators.h"
#include "ops/generated/shape.h"

namespace paddle::autograd {

Tensors forward_products(const Tensors& outputs, const Tensors& inputs, const Tensors& tangents) {
  // A vjp is linear in its cotangents, so its own vjp for them is the jvp.
  Tensors seeds;
  for (const Tensor& t : outputs) seeds.push_back(variable(zeros_like(t)));
  const Tensors pulled = grad(outputs, inputs, seeds);
  Tensors defined, matching;
  for (size_t i = 0; i < pulled.size(); ++i)
    if (pulled[i].defined()) {
      defined.push_back(pulled[i]);
      matching.push_back(tangents[i]);
    }
  Tensors out = grad(defined, seeds, matching);
  out.resize(outputs.size());
  for (size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zeros_like(outputs[i]);
  return out;
}

Tensor jacobian_between(const Tensor& output, const Tensor& input, bool batched) {
  constexpr int64_t kMaxRows = 65536;
  const size_t skipped = batched ? 1 : 0;
  Shape of_output(output.shape().begin() + static_cast<std::ptrdiff_t>(skipped),
                  output.shape().end());
  const auto n = element_count(std::span<const Dim>(of_output)).constant();
  if (!n || *n > kMaxRows)
    fail(ErrorCode::kConfig, "jacobian: the output is ", output.type(),
         ", expected a known number ", batched ? "of elements per sample" : "of elements",
         ", at most ", kMaxRows);
  Shape shape = batched ? Shape{input.dim(0)} : Shape{};
  shape.insert(shape.end(), of_output.begin(), of_output.end());
  shape.insert(shape.end(), input.shape().begin() + static_cast<std::ptrdiff_t>(skipped),
               input.shape().end());
  if (*n == 0) return full_of(shape, 0, input.dtype());
  const Shape flat_shape = batched ? Shape{output.dim(0), Dim(*n)} : Shape{Dim(*n)};
  const Tensor flat = ops::reshape(output, flat_shape);
  const auto axis = static_cast<int64_t>(skipped);
  Tensors rows;
  for (int64_t i = 0; i < *n; ++i) {
    // Of a batch, the sum over its samples: each has a gradient of its own.
    const Tensor one = ops::strided_slice(flat, {axis}, {Dim(i)}, {Dim(i + 1)}, {1});
    const Tensor g = grad({one}, {input})[0];
    rows.push_back(g.defined() ? g : zeros_like(input));
  }
  return ops::reshape(ops::stack(rows, axis), shape);
}

Tensor hessian_between(const Tensor& output, const Tensor& input, bool batched) {
  const Tensor g = grad({output}, {input})[0];
  return jacobian_between(g.defined() ? g : zeros_like(input), input, batched);
}

}  // namespace paddle::autograd
