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

/// The setting in the last group of the parameter that has it.
std::optional<double> of_groups(const std::vector<ParameterGroup>& groups,
                                std::optional<double> ParameterGroup::*setting,
                                const std::string& name) {
  std::optional<double> out;
  for (const ParameterGroup& g : groups)
    if (g.*setting && matches(g, name)) out = g.*setting;
  return out;
}

}  // namespace

Optimizer::Optimizer(OptimizerOptions options) : options_(std::move(options)) {
  if (!options_.rule.rule) options_.rule = make_rule("adam");
}

std::vector<StateSlot> Optimizer::slots(const std::string& parameter, const Dims& shape) const {
  return options_.rule.rule->slots(parameter, shape, options_.lr);
}

bool Optimizer::has_evaluation_weights() const {
  const std::vector<StateSlot> states = slots("", {});
  return std::any_of(states.begin(), states.end(),
                     [](const StateSlot& slot) { return slot.name == kEvaluationSlot; });
}

const Minimizer* Optimizer::minimizer() const {
  return dynamic_cast<const Minimizer*>(options_.rule.rule.get());
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
  const double decay = rank < 2 && !options_.decays_vectors ? 0 : options_.weight_decay;
  return of_groups(options_.groups, &ParameterGroup::weight_decay, name).value_or(decay);
}

double Optimizer::l1_decay(const std::string& name, int64_t rank) const {
  const double decay = rank < 2 && !options_.decays_vectors ? 0 : options_.l1_decay;
  return of_groups(options_.groups, &ParameterGroup::l1_decay, name).value_or(decay);
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
  const double factor = rate_factor(name);
  UpdateOperands operands{inputs};
  if (factor != 1) operands.lr = inputs.lr * factor;
  operands.name = name;
  operands.parameter = parameter;
  operands.gradient = gradient;
  operands.states = states;
  operands.weight_decay = weight_decay(name, parameter.ndim());
  operands.base_lr = options_.lr;
  if (const double l1 = l1_decay(name, parameter.ndim()); l1 > 0) {
    const ComposedUpdate plain(operands);
    operands.gradient = plain.gradient() + ops::sign(plain.value()) * l1;
    operands.scale = {};
    operands.bound = {};
  }
  return options_.rule.rule->update(operands);
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
