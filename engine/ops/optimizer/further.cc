// Rules of further.yaml. Formulas are those of PyTorch's optimizers where there are such.

#include <cmath>

#include "ops/generated/math.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/optimizer_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/optimizer/update.h"

namespace paddle::rules {
namespace {

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
  // Plain numbers are float32.
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
