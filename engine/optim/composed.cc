#include "optim/composed.h"

#include <algorithm>
#include <cmath>

#include "ops/core/operators.h"
#include "ops/core/row_sparse.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::optim {
namespace {

bool is_sixteen_bit(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

ComposedUpdate::ComposedUpdate(const UpdateOperands& operands) : operands_(operands) {
  value_ = operands.master.defined() ? operands.master : operands.parameter;
  if (is_sixteen_bit(value_.dtype())) value_ = ops::cast(value_, DType::kF32);
  gradient_ = ops::cast(densify(operands.gradient), value_.dtype());
  if (operands.scale.defined()) gradient_ = gradient_ * in_type(operands.scale);
  if (operands.bound) gradient_ = ops::clip(gradient_, -*operands.bound, *operands.bound);
  rate_ = in_type(operands.lr);
}

Tensor ComposedUpdate::step() const { return ops::cast(operands_.step, DType::kF64); }

Tensor ComposedUpdate::in_type(const Tensor& t) const { return ops::cast(t, value_.dtype()); }

Tensors ComposedUpdate::results(const Tensor& value, const Tensors& states) const {
  Tensors out = {as(value, operands_.parameter)};
  for (size_t i = 0; i < states.size(); ++i) out.push_back(as(states[i], operands_.states[i]));
  if (operands_.master.defined()) out.push_back(as(value, operands_.master));
  return out;
}

Tensor ComposedUpdate::as(const Tensor& next, const Tensor& before) const {
  const Tensor typed = ops::cast(next, before.dtype());
  return operands_.skip.defined() ? ops::where(operands_.skip, before, typed) : typed;
}

Tensor mixed(const Tensor& old, const Tensor& next, double keep) {
  return old * keep + next * (1 - keep);
}

Tensor bias_correction(const Tensor& step, double beta) {
  return 1.0 - ops::exp(step * std::log(std::max(beta, 1e-300)));
}

Tensor norm_of(const Tensor& x) { return ops::sqrt(ops::sum(ops::square(x))); }

}  // namespace paddle::optim
