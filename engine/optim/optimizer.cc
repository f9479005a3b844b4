#include "optim/optimizer.h"

#include <algorithm>

#include "ops/operators.h"

namespace paddle::optim {
namespace {

bool matches(const ParameterGroup& group, const std::string& name) {
  return std::any_of(group.match.begin(), group.match.end(),
                     [&](const std::string& p) { return matches_pattern(p, name); });
}

}  // namespace

const std::vector<StateSlot>& Optimizer::slots() const {
  static const std::vector<StateSlot> kNone,
      kMomentum = {{"velocity", 0}}, kAdam = {{"moment1", 0}, {"moment2", 0}},
      kRms = {{"mean_square", 0}, {"mean_grad", 0}, {"velocity", 0}};
  thread_local std::vector<StateSlot> adagrad;
  switch (options_.kind) {
    case OptimizerKind::kSgd:
      return kNone;
    case OptimizerKind::kMomentum:
      return kMomentum;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return kAdam;
    case OptimizerKind::kAdagrad:
      adagrad = {{"moment", options_.initial_accumulator}};
      return adagrad;
    case OptimizerKind::kRmsProp:
      return kRms;
  }
  return kNone;
}

bool Optimizer::is_frozen(const std::string& name) const {
  bool frozen = false;
  for (const ParameterGroup& g : options_.groups)
    if (matches(g, name)) frozen = g.frozen;
  return frozen;
}

double Optimizer::rate_factor(const std::string& name) const {
  double factor = 1;
  for (const ParameterGroup& g : options_.groups) {
    if (!matches(g, name)) continue;
    if (g.lr) factor = options_.lr != 0 ? *g.lr / options_.lr : 0;
    if (g.lr_scale) factor = *g.lr_scale;
  }
  return factor;
}

double Optimizer::weight_decay(const std::string& name) const {
  double decay = options_.weight_decay;
  for (const ParameterGroup& g : options_.groups)
    if (g.weight_decay && matches(g, name)) decay = *g.weight_decay;
  return decay;
}

std::vector<std::string> Optimizer::unmatched_groups(const std::vector<std::string>& names) const {
  std::vector<std::string> out;
  for (const ParameterGroup& g : options_.groups)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& n) { return matches(g, n); }))
      out.push_back(join(g.match, ", "));
  return out;
}

Tensors Optimizer::update(const std::string& name, const Tensor& parameter, const Tensor& gradient,
                          const Tensors& states, const UpdateInputs& inputs) const {
  const double decay = weight_decay(name), factor = rate_factor(name);
  const Tensor lr = factor == 1 ? inputs.lr : inputs.lr * factor;
  const Tensor &step = inputs.step, &master = inputs.master, &skip = inputs.skip;
  const OptimizerOptions& o = options_;
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return ops::sgd_update(parameter, gradient, master, lr, skip, decay);
    case OptimizerKind::kMomentum:
      return ops::momentum_update(parameter, gradient, states[0], master, lr, skip, o.momentum,
                                  o.nesterov, decay);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return ops::adam_update(parameter, gradient, states[0], states[1], master, lr, step, skip,
                              o.beta1, o.beta2, o.epsilon, decay, o.kind == OptimizerKind::kAdamW);
    case OptimizerKind::kAdagrad:
      return ops::adagrad_update(parameter, gradient, states[0], master, lr, skip, o.epsilon,
                                 decay);
    case OptimizerKind::kRmsProp:
      return ops::rmsprop_update(parameter, gradient, states[0], states[1], states[2], master, lr,
                                 skip, o.rho, o.epsilon, o.momentum, o.centered, decay);
  }
  return {};
}

// ---- clipping
// ------------------------------------------------------------------------------------

Tensor global_norm(const Tensors& gradients) {
  Tensor total;
  for (const Tensor& g : gradients) {
    if (!g.defined()) continue;
    const Tensor part = ops::sum(ops::square(ops::cast(g, DType::kF32)));
    total = total.defined() ? total + part : part;
  }
  return total.defined() ? ops::sqrt(total) : full_of({}, 0, DType::kF32);
}

namespace {

/// min(1, limit / norm), without dividing by zero.
Tensor shrink(const Tensor& norm, double limit) {
  return ops::minimum(limit / ops::maximum(norm, Tensor::number(1e-12)), Tensor::number(1.0));
}

}  // namespace

Tensors clip_gradients(const Tensors& gradients, const ClipOptions& options) {
  Tensors out = gradients;
  if (options.value) {
    for (Tensor& g : out)
      if (g.defined()) g = ops::clip(g, AttrValue(-*options.value), AttrValue(*options.value));
  } else if (options.norm) {
    for (Tensor& g : out)
      if (g.defined()) g = g * ops::cast(shrink(global_norm({g}), *options.norm), g.dtype());
  } else if (options.global_norm) {
    const Tensor factor = shrink(global_norm(gradients), *options.global_norm);
    for (Tensor& g : out)
      if (g.defined()) g = g * ops::cast(factor, g.dtype());
  }
  return out;
}

}  // namespace paddle::optim
