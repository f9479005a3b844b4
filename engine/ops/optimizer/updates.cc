// Updates of optimizer.yaml as compositions, for what has no kernel of them: other runtimes.

#include "ops/generated/nn.h"
#include "ops/generated/optimizer.h"
#include "ops/generated/optimizer_rules.h"
#include "ops/optimizer/update.h"

namespace paddle::rules {
namespace {

/// Rows at indices as a whole table, rows of equal index summed; -1 counts nowhere.
struct Spread {
  Tensor sums;
  Tensor touched;  ///< bool [rows, 1]
};

Spread spread(CallContext& c) {
  const Tensor& rows = c.operand(1);
  const Tensor indices = c.operand(static_cast<size_t>(c.op().operand_index("indices")));
  const Dim count = c.operand(0).dim(0);
  const Tensor used = ops::greater_equal(indices, integer(0));
  const Tensor at = ops::where(used, indices, integer(0));
  const Tensor share = ops::unsqueeze(ops::cast(used, rows.dtype()), {1});
  const Tensor counts = ops::embedding_grad(at, share, count, std::nullopt);
  return {ops::embedding_grad(at, rows * share, count, std::nullopt),
          ops::greater_than(counts, number(0.0))};
}

Tensor by_name(CallContext& c, const char* name) {
  return c.operand(static_cast<size_t>(c.op().operand_index(name)));
}

/// The results of an update of the whole table in the rows that have a gradient, old values
/// elsewhere.
Tensors in_rows(CallContext& c, const Tensors& updated, const Tensor& touched) {
  Tensors out;
  for (size_t i = 0; i < updated.size(); ++i) {
    const Tensor& before = c.operand(i == 0 ? 0 : i + 1);
    out.push_back(ops::where(touched, updated[i], before));
  }
  return out;
}

}  // namespace

Tensors decompose_sgd_update_rows(CallContext& c) {
  const auto a = c.attrs_as<SgdUpdateRowsAttrs>();
  const Spread s = spread(c);
  return in_rows(c,
                 ops::sgd_update(c.operand(0), s.sums, by_name(c, "master"), by_name(c, "lr"),
                                 by_name(c, "skip"), by_name(c, "scale"), a.weight_decay, a.bound),
                 s.touched);
}

Tensors decompose_momentum_update_rows(CallContext& c) {
  const auto a = c.attrs_as<MomentumUpdateRowsAttrs>();
  const Spread s = spread(c);
  return in_rows(c,
                 ops::momentum_update(c.operand(0), s.sums, c.operand(2), by_name(c, "master"),
                                      by_name(c, "lr"), by_name(c, "skip"), by_name(c, "scale"),
                                      a.momentum, a.nesterov, a.weight_decay, a.bound),
                 s.touched);
}

Tensors decompose_adam_update_rows(CallContext& c) {
  const auto a = c.attrs_as<AdamUpdateRowsAttrs>();
  const Spread s = spread(c);
  // The root is not corrected where epsilon is added to it.
  const Update u(c, s.sums, a.decoupled ? 0 : a.weight_decay, a.bound);
  const Tensor moment1 = mixed(u.state("moment1"), u.grad(), a.beta1),
               moment2 = mixed(u.state("moment2"), ops::square(u.grad()), a.beta2);
  const Tensor rate =
      u.lr() * u.in_type(ops::sqrt(correction(u.step(), a.beta2)) / correction(u.step(), a.beta1));
  Tensor value = u.value();
  if (a.decoupled) value = value * (1.0 - u.lr() * a.weight_decay);
  value = value - rate * moment1 / (ops::sqrt(moment2) + a.epsilon);
  return in_rows(c, u.results(value, {moment1, moment2}), s.touched);
}

Tensors decompose_adagrad_update_rows(CallContext& c) {
  const auto a = c.attrs_as<AdagradUpdateRowsAttrs>();
  const Spread s = spread(c);
  return in_rows(c,
                 ops::adagrad_update(c.operand(0), s.sums, c.operand(2), by_name(c, "master"),
                                     by_name(c, "lr"), by_name(c, "skip"), by_name(c, "scale"),
                                     a.epsilon, a.weight_decay, a.bound),
                 s.touched);
}

Tensors decompose_sgd_update(CallContext& c) {
  const auto a = c.attrs_as<SgdUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  return u.results(u.value() - u.lr() * u.grad(), {});
}

Tensors decompose_momentum_update(CallContext& c) {
  const auto a = c.attrs_as<MomentumUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const Tensor velocity = u.state("velocity") * a.momentum + u.grad();
  const Tensor change = a.nesterov ? u.grad() + velocity * a.momentum : velocity;
  return u.results(u.value() - u.lr() * change, {velocity});
}

Tensors decompose_adam_update(CallContext& c) {
  const auto a = c.attrs_as<AdamUpdateAttrs>();
  const Update u(c, a.decoupled ? 0 : a.weight_decay, a.bound);
  const Tensor moment1 = mixed(u.state("moment1"), u.grad(), a.beta1),
               moment2 = mixed(u.state("moment2"), ops::square(u.grad()), a.beta2);
  const Tensor mean = moment1 / u.in_type(correction(u.step(), a.beta1)),
               variance = moment2 / u.in_type(correction(u.step(), a.beta2));
  Tensor value = u.value();
  if (a.decoupled) value = value * (1.0 - u.lr() * a.weight_decay);
  return u.results(value - u.lr() * mean / (ops::sqrt(variance) + a.epsilon), {moment1, moment2});
}

Tensors decompose_adagrad_update(CallContext& c) {
  const auto a = c.attrs_as<AdagradUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const Tensor moment = u.state("moment") + ops::square(u.grad());
  return u.results(u.value() - u.lr() * u.grad() / (ops::sqrt(moment) + a.epsilon), {moment});
}

Tensors decompose_rmsprop_update(CallContext& c) {
  const auto a = c.attrs_as<RmspropUpdateAttrs>();
  const Update u(c, a.weight_decay, a.bound);
  const Tensor square = mixed(u.state("mean_square"), ops::square(u.grad()), a.rho);
  Tensor mean = u.state("mean_grad"), variance = square;
  if (a.centered) {
    mean = mixed(mean, u.grad(), a.rho);
    variance = square - ops::square(mean);
  }
  const Tensor velocity =
      u.state("velocity") * a.momentum + u.lr() * u.grad() / ops::sqrt(variance + a.epsilon);
  return u.results(u.value() - velocity, {square, mean, velocity});
}

}  // namespace paddle::rules
