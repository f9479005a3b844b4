#pragma once
// Helps to write an update rule with ordinary operations, where it has no update operation of its
// own: operands in the type in which the update computes, and results in theirs.

#include "optim/update_rule.h"

namespace paddle::optim {

class ComposedUpdate {
 public:
  explicit ComposedUpdate(const UpdateOperands& operands);
  /// The parameter, or its master where it has one; float32 for types of 16 bits.
  const Tensor& value() const { return value_; }
  /// Scaled and bounded, dense.
  const Tensor& gradient() const { return gradient_; }
  const Tensor& rate() const { return rate_; }
  const Tensor& state(size_t i) const { return operands_.states[i]; }
  /// The number of the update as a float64, from 1.
  Tensor step() const;
  Tensor in_type(const Tensor& t) const;
  /// Results: the parameter, the states, the master weight. Where `skip` is true, all stay.
  Tensors results(const Tensor& value, const Tensors& states) const;

 private:
  Tensor as(const Tensor& next, const Tensor& before) const;

  const UpdateOperands& operands_;
  Tensor value_, gradient_, rate_;
};

/// old * keep + next * (1 - keep).
Tensor mixed(const Tensor& old, const Tensor& next, double keep);
/// 1 - beta^step.
Tensor bias_correction(const Tensor& step, double beta);
/// The root of the sum of squares.
Tensor norm_of(const Tensor& x);

}  // namespace paddle::optim
