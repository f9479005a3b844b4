// Rules of further.yaml. Formulas are those of PyTorch's optimizers where there are such.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/math.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/optimizer_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// The operands that all updates share, by name.
class Update {
 public:
  Update(CallContext& c, double decay, std::optional<double> bound) : c_(c) {
    master_ = operand("master");
    value_ = master_.defined() ? master_ : c.operand(0);
    if (value_.dtype() == DType::kF16 || value_.dtype() == DType::kBF16)
      value_ = ops::cast(value_, DType::kF32);
    grad_ = ops::reshape(ops::cast(c.operand(1), value_.dtype()), value_.shape());
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

Tensor mixed(const Tensor& old, const Tensor& next, double keep) {
  return old * keep + next * (1 - keep);
}

/// 1 - beta^step.
Tensor correction(const Tensor& step, double beta) { return 1.0 - ops::exp(step * std::log(beta)); }

Tensor norm_of(const Tensor& x) { return ops::sqrt(ops::sum(ops::square(x))); }

}  // namespace

Tensors decompose_adamax_update(CallContext& c) {
  const auto a = c.attrs_as<AdamaxUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const Tensor moment = mixed(u.state("moment"), u.grad(), a.beta1);
  const Tensor norm = ops::maximum(u.state("norm") * a.beta2, ops::abs(u.grad()) + a.epsilon);
  const Tensor rate = u.lr() / u.in_type(correction(u.step(), a.beta1));
  return u.results(u.value() - rate * moment / norm, {moment, norm});
}

Tensors decompose_adadelta_update(CallContext& c) {
  const auto a = c.attrs_as<AdadeltaUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const Tensor square = mixed(u.state("mean_square"), ops::square(u.grad()), a.rho);
  const Tensor before = u.state("mean_delta");
  const Tensor delta = ops::sqrt(before + a.epsilon) / ops::sqrt(square + a.epsilon) * u.grad();
  return u.results(u.value() - u.lr() * delta, {square, mixed(before, ops::square(delta), a.rho)});
}

Tensors decompose_asgd_update(CallContext& c) {
  const auto a = c.attrs_as<AsgdUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  // The rate of a step follows from the number of steps before it.
  const Tensor before = u.step() - 1.0;
  const Tensor rate = ops::where(
      ops::greater_than(before, number(0.0)),
      u.lr() / u.in_type(ops::pow(ops::cast(u.lr(), DType::kF64) * before * a.lambd + 1.0,
                                  number(a.alpha))),
      u.lr());
  const Tensor share = u.in_type(1.0 / ops::maximum(before - a.t0, number(1.0)));
  const Tensor value = u.value() * (1.0 - rate * a.lambd) - rate * u.grad();
  const Tensor average = u.state("average");
  return u.results(value, {average + (value - average) * share});
}

Tensors decompose_nadam_update(CallContext& c) {
  const auto a = c.attrs_as<NadamUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const auto factor = [&](const Tensor& step) {
    return (1.0 - ops::exp(step * (a.momentum_decay * std::log(0.96))) * 0.5) * a.beta1;
  };
  const Tensor now = u.in_type(factor(u.step())), next = u.in_type(factor(u.step() + 1.0));
  // A product of zero has not begun.
  const Tensor old = u.state("product");
  const Tensor product = ops::where(ops::equal(old, number(0.0)), number(1.0), old) * now;
  const Tensor moment1 = mixed(u.state("moment1"), u.grad(), a.beta1),
               moment2 = mixed(u.state("moment2"), ops::square(u.grad()), a.beta2);
  const Tensor root = ops::sqrt(moment2 / u.in_type(correction(u.step(), a.beta2))) + a.epsilon;
  const Tensor value = u.value() - u.lr() * (1.0 - now) / (1.0 - product) * u.grad() / root -
                       u.lr() * next / (1.0 - product * next) * moment1 / root;
  return u.results(value, {moment1, moment2, product});
}

Tensors decompose_radam_update(CallContext& c) {
  const auto a = c.attrs_as<RadamUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const Tensor moment1 = mixed(u.state("moment1"), u.grad(), a.beta1),
               moment2 = mixed(u.state("moment2"), ops::square(u.grad()), a.beta2);
  const Tensor step = u.step(), second = correction(step, a.beta2);
  const double limit = 2 / (1 - a.beta2) - 1;
  const Tensor length = limit - step * 2.0 * (1.0 - second) / second;
  const Tensor rectified = ops::greater_than(length, number(5.0));
  const Tensor bounded = ops::maximum(length, number(5.0));
  const Tensor factor = ops::sqrt((bounded - 4.0) * (bounded - 2.0) * limit /
                                  (bounded * ((limit - 4) * (limit - 2))) * second);
  const Tensor mean = moment1 / u.in_type(correction(step, a.beta1));
  const Tensor scaled = mean * u.in_type(factor) / (ops::sqrt(moment2) + a.epsilon);
  return u.results(u.value() - u.lr() * ops::where(rectified, scaled, mean), {moment1, moment2});
}

Tensors decompose_rprop_update(CallContext& c) {
  const auto a = c.attrs_as<RpropUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const Tensor agree = u.grad() * u.state("previous");
  const Tensor same = ops::greater_than(agree, number(0.0)),
               changed = ops::less_than(agree, number(0.0));
  // Numbers alone are float32.
  const auto constant = [&](double value) { return full_of({}, value, u.value().dtype()); };
  const Tensor factor =
      ops::where(same, constant(a.grow), ops::where(changed, constant(a.shrink), constant(1)));
  const Tensor size = ops::clip(u.state("step_size") * factor, a.min_step, a.max_step);
  const Tensor grad = ops::where(changed, number(0.0), u.grad());
  return u.results(u.value() - ops::sign(grad) * size, {grad, size});
}

Tensors decompose_lamb_update(CallContext& c) {
  const auto a = c.attrs_as<LambUpdateAttrs>();
  const Update u(c, 0, a.bound);
  const Tensor moment1 = mixed(u.state("moment1"), u.grad(), a.beta1),
               moment2 = mixed(u.state("moment2"), ops::square(u.grad()), a.beta2);
  const Tensor mean = moment1 / u.in_type(correction(u.step(), a.beta1)),
               variance = moment2 / u.in_type(correction(u.step(), a.beta2));
  const Tensor change = mean / (ops::sqrt(variance) + a.epsilon) + u.value() * a.weight_decay;
  const Tensor size = norm_of(u.value()), length = norm_of(change);
  const Tensor usable = ops::logical_and(ops::greater_than(size, number(0.0)),
                                         ops::greater_than(length, number(0.0)));
  const Tensor trust =
      ops::where(usable, size / ops::where(usable, length, number(1.0)), number(1.0));
  return u.results(u.value() - u.lr() * trust * change, {moment1, moment2});
}

Tensors decompose_lars_update(CallContext& c) {
  const auto a = c.attrs_as<LarsUpdateAttrs>();
  const Update u(c, 0, a.bound);
  const Tensor size = norm_of(u.value()), length = norm_of(u.grad());
  const Tensor below = length + size * a.weight_decay + a.epsilon;
  const Tensor usable = ops::logical_and(ops::greater_than(size, number(0.0)),
                                         ops::greater_than(length, number(0.0)));
  const Tensor rate = ops::where(
      usable, u.lr() * a.coefficient * size / ops::where(usable, below, number(1.0)), u.lr());
  const Tensor velocity =
      u.state("velocity") * a.momentum + rate * (u.grad() + u.value() * a.weight_decay);
  return u.results(u.value() - velocity, {velocity});
}

}  // namespace paddle::rules
