#include "autograd/autocast.h"

#include "ops/call.h"
#include "ops/generated/ops.h"
#include "ops/kernel.h"

namespace paddle::autograd {
namespace {

bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

Tensors Autocast::apply(const OpCall& c) {
  // What is made of other operations is cast where those are called.
  if (c.op.def->decompose && !has_kernel(c.op)) return decompose(c);
  const PrecisionClass precision = c.op.def->precision;
  const auto wanted = [&](DType dtype) {
    if (precision == PrecisionClass::kLow && dtype == DType::kF32) return low_;
    if (precision == PrecisionClass::kFull && is_half(dtype)) return DType::kF32;
    return dtype;
  };
  Tensors operands = c.operands;
  bool changed = false;
  const BelowScope below(next());
  for (Tensor& t : operands) {
    if (!t.defined() || wanted(t.dtype()) == t.dtype()) continue;
    t = ops::cast(t, wanted(t.dtype()));
    changed = true;
  }
  return changed ? paddle::call(c.op, std::move(operands), c.attrs) : next().apply(c);
}

}  // namespace paddle::autograd
