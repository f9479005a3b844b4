#include "inspect/both_modes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "autograd/autograd.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle::inspect {
namespace {

Tensor seed_and_step() { return Tensor(Array::from<uint64_t>({7, 1}, {2})); }

std::vector<std::optional<Array>> run_eagerly(const TensorFn& fn, const std::vector<Array>& inputs,
                                              Device device) {
  runtime::EagerExecutor executor({.device = device});
  const InterpreterScope below(executor);
  autograd::Tape tape;
  const InterpreterScope above(tape);
  const RandomScope random(seed_and_step());
  Tensors leaves;
  for (const Array& x : inputs) {
    const Tensor t{x.to(device)};
    leaves.push_back(is_differentiable(x.dtype) ? autograd::variable(t) : t);
  }
  std::vector<std::optional<Array>> out;
  for (const Tensor& t : fn(leaves))
    out.push_back(t.defined() ? std::optional(own_copy(t.array().on_host())) : std::nullopt);
  return out;
}

std::vector<std::optional<Array>> run_compiled(const TensorFn& fn, const std::vector<Array>& inputs,
                                               Device device) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("check");
  std::vector<bool> defined;
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const RandomScope random(seed_and_step());
    Tensors traced;
    for (size_t i = 0; i < inputs.size(); ++i)
      traced.push_back(tracer.input({ir::PortKind::kValue, str("x", i)},
                                    {inputs[i].dtype, to_shape(inputs[i].shape)}));
    for (const Tensor& t : fn(traced)) {
      if (t.defined()) tracer.output({ir::PortKind::kValue, str("y", defined.size())}, t);
      defined.push_back(t.defined());
    }
  }
  runtime::optimize(*function, {.target = {.device = device}});
  ir::verify(*function);
  runtime::Executable executable(
      function,
      {1, {.check_memory = device.is_cpu(), .profile = nullptr, .target = {.device = device}}});
  std::vector<Array> packed;
  for (const Array& x : inputs) packed.push_back(x.contiguous());
  const std::vector<Array>& results = executable.run(packed);
  std::vector<std::optional<Array>> out(defined.size());
  size_t next = 0;
  for (size_t i = 0; i < defined.size(); ++i)
    if (defined[i]) out[i] = own_copy(results[next++]);
  return out;
}

bool same_bits(const std::optional<Array>& a, const std::optional<Array>& b) {
  if (!a || !b) return !a && !b;
  return a->dtype == b->dtype && a->shape == b->shape &&
         std::memcmp(a->raw(), b->raw(), static_cast<size_t>(storage_bytes(a->dtype, a->size()))) ==
             0;
}

}  // namespace

std::string text(Mode mode) { return mode == Mode::kEager ? "eager" : "compiled"; }

Array own_copy(const Array& array) {
  const Array packed = array.contiguous();
  Array out = Array::empty(array.dtype, array.shape);
  const auto bytes = static_cast<size_t>(storage_bytes(array.dtype, array.size()));
  if (bytes) std::memcpy(out.raw(), packed.raw(), bytes);
  return out;
}

Array strided_copy(const Array& array) {
  if (array.ndim() < 2 || array.size() == 0) return array;
  std::vector<size_t> order(array.shape.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  Array turned = array;
  for (size_t i = 0; i < order.size(); ++i) {
    turned.shape[i] = array.shape[order[i]];
    turned.strides[i] = array.strides[order[i]];
  }
  Array out = own_copy(turned);
  out.shape = array.shape;
  std::reverse(out.strides.begin(), out.strides.end());
  return out;
}

std::vector<std::optional<Array>> run(Mode mode, const TensorFn& fn,
                                      const std::vector<Array>& inputs, Device device) {
  if (mode == Mode::kCompiled) return run_compiled(fn, inputs, device);
  auto out = run_eagerly(fn, inputs, device);
  // The kernels that are kept of the first calls (runtime/known_calls.h) must give the same bits.
  const auto again = run_eagerly(fn, inputs, device);
  ensure(std::ranges::equal(out, again, same_bits), "repeated eager calls give different bits");
  return out;
}

}  // namespace paddle::inspect
