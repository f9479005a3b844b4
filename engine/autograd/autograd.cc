#include "autograd/autograd.h"

#include "autograd/derivatives.h"
#include "autograd/history.h"
#include "ops/core/operators.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/shape.h"

namespace paddle::autograd {

namespace {

/// True if the shapes are known to differ; run-time dims can be anything.
bool differ(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return true;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].equals(b[i]) == false) return true;
  return false;
}

}  // namespace

Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& cotangents,
             bool keep_row_sparse) {
  ensure(cotangents.empty() || cotangents.size() == outputs.size(),
         "grad: one cotangent per output is expected");
  if (outputs.empty()) return Tensors(inputs.size());
  Tensors seeds(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !is_differentiable(outputs[i].dtype())) continue;
    seeds[i] = !cotangents.empty() ? cotangents[i] : ones_like(outputs[i]);
    if (seeds[i].defined() && differ(seeds[i].shape(), outputs[i].shape()))
      fail(ErrorCode::kUsage, "grad: the cotangent is ", seeds[i].type(), ", the output ",
           outputs[i].type());
  }
  // A value of the trace decides for the trace's history; constants have no history at all.
  const Tensor* witness = &outputs[0];
  for (const Tensor& t : outputs)
    if (t.defined() && !t.is_concrete()) witness = &t;
  Tensors out = backward(*history_of(*witness), outputs, seeds, inputs);
  if (!keep_row_sparse)
    for (Tensor& t : out) t = densify(t);
  return out;
}

Tensors vjp(const TensorFn& fn, const Tensors& inputs, const Tensors& cotangents) {
  Tensors leaves;
  for (const Tensor& t : inputs) leaves.push_back(variable(t));
  Tensors out = grad(fn(leaves), leaves, cotangents);
  for (size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zeros_like(inputs[i]);
  return out;
}

Tensors jvp(const TensorFn& fn, const Tensors& inputs, const Tensors& tangents) {
  Tensors leaves;
  for (const Tensor& t : inputs) leaves.push_back(variable(t));
  return forward_products(fn(leaves), leaves, tangents);
}

Tensor jacobian(const TensorFn& fn, const Tensor& input) {
  const Tensor leaf = variable(input);
  const Tensor output = fn({leaf})[0];
  return ops::reshape(jacobian_between(output, leaf),
                      {element_count(std::span<const Dim>(output.shape())),
                       element_count(std::span<const Dim>(input.shape()))});
}

Tensor hessian(const TensorFn& fn, const Tensor& input) {
  return jacobian(
      [&](const Tensors& x) {
        const Tensor g = grad(fn(x), x)[0];
        return Tensors{g.defined() ? g : zeros_like(x[0])};
      },
      input);
}

}  // namespace paddle::autograd
