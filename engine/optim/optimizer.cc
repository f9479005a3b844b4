#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/optimizer.h"
#include "optim/composed.h"

namespace paddle::optim {
namespace {

bool matches(const ParameterGroup& group, const std::string& name) {
  return std::any_of(group.match.begin(), group.match.end(),
                     [&](const std::string& p) { return matches_pattern(p, name); });
}

}  // namespace

std::vector<StateSlot> Optimizer::slots(const std::string& parameter, const Dims& shape) const {
  const auto named = [](std::initializer_list<const char*> names) {
    std::vector<StateSlot> out;
    for (const char* name : names) out.push_back({.name = name});
    return out;
  };
  switch (options_.kind) {
    case OptimizerKind::kSgd:
      return {};
    case OptimizerKind::kMomentum:
    case OptimizerKind::kLars:
      return named({"velocity"});
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kRAdam:
    case OptimizerKind::kLamb:
      return named({"moment1", "moment2"});
    case OptimizerKind::kAdagrad:
      return {{.name = "moment", .initial = options_.initial_accumulator}};
    case OptimizerKind::kRmsProp:
      return named({"mean_square", "mean_grad", "velocity"});
    case OptimizerKind::kAdamax:
      return named({"moment", "norm"});
    case OptimizerKind::kAdadelta:
      return named({"mean_square", "mean_delta"});
    case OptimizerKind::kAsgd:
      return named({"average"});
    case OptimizerKind::kNAdam:
      return named({"moment1", "moment2", "product"});
    case OptimizerKind::kRprop:
      return {{.name = "previous"}, {.name = "step_size", .initial = options_.lr}};
    case OptimizerKind::kLion:
    case OptimizerKind::kAdafactor:
    case OptimizerKind::kMuon:
    case OptimizerKind::kScheduleFree:
      return composed_slots(options_, parameter, shape);
    case OptimizerKind::kLbfgs: {
      Dims rows = {options_.lbfgs.history};
      rows.insert(rows.end(), shape.begin(), shape.end());
      return {{.name = "direction"},
              {.name = "previous_gradient"},
              {.name = "changes", .shape = rows},
              {.name = "steps", .shape = rows}};
    }
  }
  return {};
}

bool Optimizer::needs_whole_parameters() const {
  switch (options_.kind) {
    case OptimizerKind::kLamb:
    case OptimizerKind::kLars:
    case OptimizerKind::kAdafactor:
    case OptimizerKind::kMuon:
    case OptimizerKind::kScheduleFree:
    case OptimizerKind::kLbfgs:
      return true;
    default:
      return false;
  }
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

double Optimizer::weight_decay(const std::string& name, int64_t rank) const {
  double decay = rank < 2 && !options_.decays_vectors ? 0 : options_.weight_decay;
  for (const ParameterGroup& g : options_.groups)
    if (g.weight_decay && matches(g, name)) decay = *g.weight_decay;
  return decay;
}

std::vector<std::string> Optimizer::warnings(const std::vector<std::string>& names) const {
  std::vector<std::string> out;
  for (const ParameterGroup& g : options_.groups)
    for (const std::string& p : g.match)
      if (std::none_of(names.begin(), names.end(),
                       [&](const std::string& n) { return matches_pattern(p, n); }))
        out.push_back(str(g.key, ": no parameter matches \"", p, "\""));
  if (!names.empty() &&
      std::all_of(names.begin(), names.end(), [&](const std::string& n) { return is_frozen(n); }))
    out.emplace_back("every parameter is frozen: the run changes none of them");
  return out;
}

Tensors Optimizer::update(const std::string& name, const Tensor& parameter, const Tensor& gradient,
                          const Tensors& states, const UpdateInputs& inputs) const {
  const double decay = weight_decay(name, parameter.ndim()), factor = rate_factor(name);
  const auto& [base_lr, step, master, skip, scale, bound] = inputs;
  const Tensor lr = factor == 1 ? base_lr : base_lr * factor;
  const OptimizerOptions& o = options_;
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return ops::sgd_update(parameter, gradient, master, lr, skip, scale, decay, bound);
    case OptimizerKind::kMomentum:
      return ops::momentum_update(parameter, gradient, states[0], master, lr, skip, scale,
                                  o.momentum, o.nesterov, decay, bound);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return ops::adam_update(parameter, gradient, states[0], states[1], master, lr, step, skip,
                              scale, o.beta1, o.beta2, o.epsilon, decay,
                              o.kind == OptimizerKind::kAdamW, bound);
    case OptimizerKind::kAdagrad:
      return ops::adagrad_update(parameter, gradient, states[0], master, lr, skip, scale, o.epsilon,
                                 decay, bound);
    case OptimizerKind::kRmsProp:
      return ops::rmsprop_update(parameter, gradient, states[0], states[1], states[2], master, lr,
                                 skip, scale, o.rho, o.epsilon, o.momentum, o.centered, decay,
                                 bound);
    case OptimizerKind::kAdamax:
      return ops::adamax_update(parameter, gradient, states[0], states[1], master, lr, step, skip,
                                scale, o.beta1, o.beta2, o.epsilon, decay, bound);
    case OptimizerKind::kAdadelta:
      return ops::adadelta_update(parameter, gradient, states[0], states[1], master, lr, skip,
                                  scale, o.rho, o.epsilon, decay, bound);
    case OptimizerKind::kAsgd:
      return ops::asgd_update(parameter, gradient, states[0], master, lr, step, skip, scale,
                              o.lambd, o.alpha, o.t0, decay, bound);
    case OptimizerKind::kNAdam:
      return ops::nadam_update(parameter, gradient, states[0], states[1], states[2], master, lr,
                               step, skip, scale, o.beta1, o.beta2, o.epsilon, o.momentum_decay,
                               decay, bound);
    case OptimizerKind::kRAdam:
      return ops::radam_update(parameter, gradient, states[0], states[1], master, lr, step, skip,
                               scale, o.beta1, o.beta2, o.epsilon, decay, bound);
    case OptimizerKind::kRprop:
      return ops::rprop_update(parameter, gradient, states[0], states[1], master, lr, skip, scale,
                               o.shrink, o.grow, o.min_step, o.max_step, decay, bound);
    case OptimizerKind::kLamb:
      return ops::lamb_update(parameter, gradient, states[0], states[1], master, lr, step, skip,
                              scale, o.beta1, o.beta2, o.epsilon, decay, bound);
    case OptimizerKind::kLars:
      return ops::lars_update(parameter, gradient, states[0], master, lr, skip, scale, o.momentum,
                              o.coefficient, o.epsilon, decay, bound);
    case OptimizerKind::kLion:
    case OptimizerKind::kAdafactor:
    case OptimizerKind::kMuon:
    case OptimizerKind::kScheduleFree: {
      UpdateInputs with_rate = inputs;
      with_rate.lr = lr;
      return composed_update(o, name, decay, parameter, gradient, states, with_rate);
    }
    case OptimizerKind::kLbfgs:
      break;
  }
  ensure(false, "the session drives this optimizer");
  return {};
}

std::string layer_of(const std::string& parameter) {
  size_t begin = 0, first = std::string::npos;
  while (true) {
    const size_t end = parameter.find('.', begin);
    if (end == std::string::npos) break;
    if (first == std::string::npos) first = end;
    const std::string_view part = std::string_view(parameter).substr(begin, end - begin);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos)
      return parameter.substr(0, end);
    begin = end + 1;
  }
  return parameter.substr(0, first);
}

std::map<std::string, double> layer_factors(const std::vector<std::string>& parameters,
                                            double layer_decay) {
  std::vector<std::string> layers;
  for (const std::string& name : parameters)
    if (const std::string layer = layer_of(name);
        std::find(layers.begin(), layers.end(), layer) == layers.end())
      layers.push_back(layer);
  std::map<std::string, double> out;
  for (const std::string& name : parameters) {
    const auto at = std::find(layers.begin(), layers.end(), layer_of(name));
    out[name] = std::pow(layer_decay, static_cast<double>(layers.end() - at - 1));
  }
  return out;
}

Tensors sums_of_squares(const Tensors& gradients, const ClipOptions& options) {
  if (!options.norm && !options.global_norm) return {};
  Tensors out(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].defined()) out[i] = ops::sum_of_squares(gradients[i], {});
  return out;
}

Tensors gradient_scales(const Tensors& gradients, const Tensors& squares,
                        const ClipOptions& options, const Tensor& unscale) {
  // unscale * min(1, limit / norm), without dividing by zero.
  const auto shrink = [&](const Tensor& sum, double limit) {
    Tensor norm = ops::sqrt(sum);
    if (unscale.defined()) norm = norm * unscale;
    const Tensor factor =
        ops::minimum(limit / ops::maximum(norm, Tensor::number(1e-12)), Tensor::number(1.0));
    return unscale.defined() ? factor * unscale : factor;
  };
  Tensors out(gradients.size(), unscale);
  if (options.norm) {
    for (size_t i = 0; i < gradients.size(); ++i)
      if (squares[i].defined()) out[i] = shrink(squares[i], *options.norm);
  } else if (options.global_norm) {
    Tensor total;
    for (const Tensor& sum : squares)
      if (sum.defined()) total = total.defined() ? total + sum : sum;
    if (total.defined()) out.assign(gradients.size(), shrink(total, *options.global_norm));
  }
  return out;
}

}  // namespace paddle::optim
