#pragma once
// Shared parts of the compositions of optimizer updates: operands by name, results of their types.

#include <cmath>
#include <optional>

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::rules {

/// The operands that all updates share, by name.
class Update {
 public:
  Update(CallContext& c, double decay, std::optional<double> bound)
      : Update(c, c.operand(1), decay, bound) {}
  /// For a gradient that is not an operand.
  Update(CallContext& c, const Tensor& grad, double decay, std::optional<double> bound) : c_(c) {
    master_ = operand("master");
    value_ = master_.defined() ? master_ : c.operand(0);
    if (value_.dtype() == DType::kF16 || value_.dtype() == DType::kBF16)
      value_ = ops::cast(value_, DType::kF32);
    grad_ = ops::reshape(ops::cast(grad, value_.dtype()), value_.shape());
    if (const Tensor scale = operand("scale"); scale.defined())
      grad_ = grad_ * ops::cast(scale, value_.dtype());
    if (bound) grad_ = ops::clip(grad_, -*bound, *bound);
    if (decay != 0) grad_ = grad_ + value_ * decay;
    lr_ = ops::cast(operand("lr"), value_.dtype());
  }
  const Tensor& value() const { return value_; }
  const Tensor& grad() const { return grad_; }
  const Tensor& lr() const { return lr_; }
  /// The number of the update as a float64, from 1.
  Tensor step() const { return ops::cast(operand("step"), DType::kF64); }
  Tensor in_type(const Tensor& t) const { return ops::cast(t, value_.dtype()); }
  Tensor state(const char* name) const {
    return ops::reshape(ops::cast(operand(name), value_.dtype()), value_.shape());
  }
  /// Results: the parameter, the states, the master weight. Where `skip` is true, all stay.
  Tensors results(const Tensor& value, const Tensors& states) const {
    Tensors out = {as(value, c_.operand(0))};
    for (size_t i = 0; i < states.size(); ++i) out.push_back(as(states[i], c_.operand(2 + i)));
    if (master_.defined()) out.push_back(as(value, master_));
    return out;
  }

 private:
  Tensor operand(const char* name) const {
    return c_.operand(static_cast<size_t>(c_.op().operand_index(name)));
  }
  Tensor as(const Tensor& next, const Tensor& before) const {
    const Tensor typed = ops::reshape(ops::cast(next, before.dtype()), before.shape());
    const Tensor skip = operand("skip");
    return skip.defined() ? ops::where(skip, before, typed) : typed;
  }

  CallContext& c_;
  Tensor master_, value_, grad_, lr_;
};

inline Tensor mixed(const Tensor& old, const Tensor& next, double keep) {
  return old * keep + next * (1 - keep);
}

/// 1 - beta^step.
inline Tensor correction(const Tensor& step, double beta) {
  return 1.0 - ops::exp(step * std::log(beta));
}

}  // namespace paddle::rules
