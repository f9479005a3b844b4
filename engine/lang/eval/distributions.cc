#include "lang/eval/distributions.h"

#include <algorithm>

#include "base/text.h"
#include "ops/distribution/distribution.h"

namespace paddle::lang {
namespace {

using distribution::Distribution;
using distribution::Transform;

constexpr std::string_view kFunctions[] = {
    "independent",           "transformed_distribution", "kl_divergence",  "chain_transform",
    "independent_transform", "reshape_transform",        "stack_transform"};
constexpr std::string_view kMethods[] = {"log_prob", "prob",   "entropy", "cdf",
                                         "icdf",     "sample", "rsample", "kl_divergence"};
constexpr std::string_view kAttributes[] = {"mean", "variance", "stddev", "batch_shape",
                                            "event_shape"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Numbers, lists of numbers and tensors as tensors.
Tensor tensor_of(Evaluation& ev, const Value& value, const SourcePosition& where,
                 std::string_view what) {
  if (!value.items() || holds_tensor(value)) return ev.operations().to_tensor(value, where, what);
  std::vector<float> numbers;
  Dims shape;
  const auto walk = [&](const auto& self, const Value& v, size_t depth) -> void {
    const ValueList* items = v.items();
    if (depth == shape.size() && items) shape.push_back(static_cast<int64_t>(items->size()));
    if (items ? (depth > 8 || shape[depth] != static_cast<int64_t>(items->size()))
              : (depth != shape.size() || !v.is_number()))
      ev.reject(where, str(what, ": expected numbers in lists of equal lengths"));
    if (!items) return numbers.push_back(static_cast<float>(v.number()));
    for (const Value& item : *items) self(self, item, depth + 1);
  };
  walk(walk, value, 0);
  return Tensor(Array::from(numbers, shape));
}

Shape shape_of(Evaluation& ev, const Value& value, const SourcePosition& where) {
  const auto size = [&](const Value& v) -> Dim {
    if (const auto* dim = v.get<Dim>()) return *dim;
    if (!v.is_integer() || v.integer() < 0)
      ev.reject(where, str("a shape is a list of sizes, found ", v.describe()));
    return v.integer();
  };
  const ValueList* items = value.items();
  if (!items) return {size(value)};
  Shape out;
  for (const Value& item : *items) out.push_back(size(item));
  return out;
}

DistributionPtr distribution_of(Evaluation& ev, const Value& value, const SourcePosition& where,
                                std::string_view what) {
  if (const auto* held = value.get<DistributionPtr>()) return *held;
  if (const DrawnFrom* drawn = value.drawn_from())
    return Distribution::from_arguments(*drawn->kind, drawn->parameters, {}, drawn->trials);
  ev.reject(where, str(what, ": expected a distribution, found ", value.describe()));
}

std::vector<TransformPtr> transforms_of(Evaluation& ev, const Value& value,
                                        const SourcePosition& where, std::string_view what) {
  std::vector<TransformPtr> out;
  const ValueList one = {value};
  for (const Value& item : value.items() ? *value.items() : one) {
    const auto* held = item.get<TransformPtr>();
    if (!held) ev.reject(where, str(what, ": expected transforms, found ", item.describe()));
    out.push_back(*held);
  }
  return out;
}

std::vector<int64_t> integers_of(Evaluation& ev, const Value& value, const SourcePosition& where,
                                 std::string_view what) {
  std::vector<int64_t> out;
  const ValueList one = {value};
  for (const Value& item : value.items() ? *value.items() : one) {
    if (!item.is_integer())
      ev.reject(where, str(what, ": expected integers, found ", item.describe()));
    out.push_back(item.integer());
  }
  return out;
}

/// Arguments by position and name, in the order of `names`; missing ones are none.
std::vector<Value> arranged(Evaluation& ev, const Arguments& arguments,
                            const std::vector<std::string>& names, size_t required,
                            const SourcePosition& where, std::string_view callee) {
  std::vector<Value> out(names.size());
  if (arguments.positional.size() > names.size())
    ev.reject(where, str(callee, " takes at most ", names.size(), " arguments, found ",
                         arguments.positional.size()));
  std::copy(arguments.positional.begin(), arguments.positional.end(), out.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      ev.reject(where, str(callee, " has no argument '", name, "'", did_you_mean(name, names)));
    Value& slot = out[static_cast<size_t>(at - names.begin())];
    if (!slot.is_none()) ev.reject(where, str(callee, ": '", name, "' is given twice"));
    slot = value;
  }
  for (size_t i = 0; i < required; ++i)
    if (out[i].is_none()) ev.reject(where, str(callee, " needs the argument '", names[i], "'"));
  return out;
}

/// Whether a call of a random operation's name has the arguments of the distribution.
bool means_distribution(const distribution::Kind& kind, const Arguments& arguments) {
  for (const auto& [name, value] : arguments.named)
    if (is_among(kind.parameters, name) || name == "logits") return true;
  const auto& args = arguments.positional;
  const auto is_scalar = [](const Value& v) { return v.is_number() || v.is_tensor(); };
  if (kind.name == "uniform")
    return args.size() == 2 && is_scalar(args[0]) && is_scalar(args[1]) && arguments.named.empty();
  if (kind.name == "multinomial") return args.size() == 2 && args[0].is_number();
  return false;
}

/// Whether the drawn tensor of a random operation has the shape of its parameters.
bool draws_one_each(const distribution::Kind& kind, const Arguments& arguments) {
  if (kind.name == "normal") {
    for (const auto& [name, value] : arguments.named)
      if (name != "mean" && name != "std") return false;
    return arguments.positional.size() + arguments.named.size() == 2;
  }
  const size_t count = kind.parameters.size();
  return (kind.name == "bernoulli" || kind.name == "poisson" || kind.name == "binomial") &&
         arguments.positional.size() == count && arguments.named.empty();
}

Value make_distribution(Evaluation& ev, const distribution::Kind& kind, const Arguments& arguments,
                        const SourcePosition& where) {
  return ev.with_location_scope(where, [&] {
    Tensors positional;
    std::vector<std::pair<std::string, Tensor>> named;
    std::optional<int64_t> trials;
    const auto note_trials = [&](const Value& value, bool is_count) {
      if (kind.counts && is_count && value.is_integer()) trials = value.integer();
    };
    for (const Value& value : arguments.positional) {
      note_trials(value, positional.empty());
      positional.push_back(tensor_of(ev, value, where, kind.name));
    }
    for (const auto& [name, value] : arguments.named) {
      note_trials(value, name == "total_count");
      named.emplace_back(name, tensor_of(ev, value, where, kind.name));
    }
    return Value(
        Distribution::from_arguments(kind, std::move(positional), std::move(named), trials));
  });
}

Value make_transform(Evaluation& ev, const Transform::Kind& kind, const Arguments& arguments,
                     const SourcePosition& where) {
  const std::vector<std::string> names(kind.parameters.begin(), kind.parameters.end());
  Tensors parameters;
  for (const Value& value : arranged(ev, arguments, names, names.size(), where, kind.name))
    parameters.push_back(tensor_of(ev, value, where, kind.name));
  return ev.with_location_scope(
      where, [&] { return Value(Transform::make(kind, std::move(parameters))); });
}

/// KL(p || q): by the rule of a block kl_P_Q(p, q) of the model file, or by one of ours.
Value divergence(Evaluation& ev, const Value& p, const Value& q, const Site& site, Frame& frame) {
  const DistributionPtr from = distribution_of(ev, p, site.where, "kl_divergence");
  const DistributionPtr to = distribution_of(ev, q, site.where, "kl_divergence");
  const auto rule = ev.find_callable(str("kl_", from->name(), "_", to->name()), frame);
  if (rule && rule->block)
    return ev.call_block(*rule->block, {{Value(from), Value(to)}, {}, {}}, site, frame);
  return ev.with_location_scope(site.where, [&] { return Value(from->kl_divergence(*to)); });
}

Value call_function(Evaluation& ev, const std::string& name, const Arguments& arguments,
                    const Site& site, Frame& frame) {
  const SourcePosition& where = site.where;
  const auto take = [&](const std::vector<std::string>& names, size_t required) {
    return arranged(ev, arguments, names, required, where, name);
  };
  const auto rank_of = [&](const Value& value) {
    if (!value.is_integer()) ev.reject(where, str(name, ": the number of axes is an integer"));
    return value.integer();
  };
  if (name == "kl_divergence") {
    const auto args = take({"p", "q"}, 2);
    return divergence(ev, args[0], args[1], site, frame);
  }
  return ev.with_location_scope(where, [&]() -> Value {
    if (name == "independent") {
      const auto args = take({"base", "reinterpreted_batch_rank"}, 2);
      return Distribution::independent(distribution_of(ev, args[0], where, name), rank_of(args[1]));
    }
    if (name == "transformed_distribution") {
      const auto args = take({"base", "transforms"}, 2);
      return Distribution::transformed(distribution_of(ev, args[0], where, name),
                                       transforms_of(ev, args[1], where, name));
    }
    if (name == "chain_transform")
      return Transform::chain(transforms_of(ev, take({"transforms"}, 1)[0], where, name));
    if (name == "independent_transform") {
      const auto args = take({"base", "reinterpreted_batch_rank"}, 2);
      return Transform::independent(transforms_of(ev, args[0], where, name).at(0),
                                    rank_of(args[1]));
    }
    if (name == "reshape_transform") {
      const auto args = take({"in_event_shape", "out_event_shape"}, 2);
      return Transform::reshape(integers_of(ev, args[0], where, name),
                                integers_of(ev, args[1], where, name));
    }
    const auto args = take({"transforms", "axis"}, 1);
    return Transform::stack(transforms_of(ev, args[0], where, name),
                            args[1].is_none() ? 0 : rank_of(args[1]));
  });
}

Value call_transform_method(Evaluation& ev, const Transform& transform, const std::string& name,
                            const Arguments& arguments, const SourcePosition& where) {
  using Member = Tensor (Transform::*)(const Tensor&) const;
  static const std::vector<std::pair<std::string, Member>> methods = {
      {"forward", &Transform::forward},
      {"inverse", &Transform::inverse},
      {"forward_log_det_jacobian", &Transform::forward_log_det_jacobian},
      {"inverse_log_det_jacobian", &Transform::inverse_log_det_jacobian}};
  std::vector<std::string> known;
  for (const auto& [method, member] : methods) {
    known.push_back(method);
    if (method != name) continue;
    const auto args = arranged(ev, arguments, {"x"}, 1, where, name);
    return ev.with_location_scope(
        where, [&] { return Value((transform.*member)(tensor_of(ev, args[0], where, name))); });
  }
  ev.reject(where, str("a transform has no method '", name, "'", did_you_mean(name, known)));
}

}  // namespace

bool is_distribution_word(std::string_view name) {
  return distribution::find_kind(name) || Transform::find_kind(name) || is_among(kFunctions, name);
}

std::vector<std::string> distribution_words() {
  std::vector<std::string> out = distribution::kind_names();
  for (const Transform::Kind& kind : Transform::kinds()) out.emplace_back(kind.name);
  for (const std::string_view name : kFunctions) out.emplace_back(name);
  return out;
}

std::optional<Value> call_distribution(Evaluation& ev, const Callable& target, Arguments& arguments,
                                       const Site& site, Frame& frame) {
  const distribution::Kind* kind = distribution::find_kind(target.name);
  if (!kind) {
    ev.step(site.where);
    if (const Transform::Kind* transform = Transform::find_kind(target.name))
      return make_transform(ev, *transform, arguments, site.where);
    return call_function(ev, target.name, arguments, site, frame);
  }
  if (!target.op || means_distribution(*kind, arguments)) {
    ev.step(site.where);
    return make_distribution(ev, *kind, arguments, site.where);
  }
  if (!draws_one_each(*kind, arguments)) return std::nullopt;
  DrawnFrom from{kind, {}, std::nullopt};
  if (kind->counts && arguments.positional[0].is_integer())
    from.trials = arguments.positional[0].integer();
  for (const Value& value : arguments.positional)
    from.parameters.push_back(tensor_of(ev, value, site.where, target.name));
  for (const std::string_view name : {"mean", "std"}) {
    if (const Value* value = arguments.find(name))
      from.parameters.push_back(tensor_of(ev, *value, site.where, target.name));
  }
  if (arguments.find("mean") && !arguments.positional.empty()) return std::nullopt;
  const Value drawn = ev.call_op(*target.op, std::move(arguments), site, frame);
  return Value::drawn(drawn.tensor(), std::move(from));
}

std::optional<Value> call_distribution_method(Evaluation& ev, const Value& base,
                                              const std::string& name, Arguments& arguments,
                                              const Site& site, Frame& frame) {
  const SourcePosition& where = site.where;
  if (const auto* transform = base.get<TransformPtr>())
    return call_transform_method(ev, **transform, name, arguments, where);
  const bool alone = base.is<DistributionPtr>();
  if (!alone && !base.drawn_from()) return std::nullopt;
  if (!is_among(kMethods, name)) {
    if (!alone) return std::nullopt;
    if (is_among(kAttributes, name))
      ev.reject(where, str("'", name, "' is not a method: write .", name));
    const std::vector<std::string> known(std::begin(kMethods), std::end(kMethods));
    ev.reject(where, str("a distribution has no method '", name, "'", did_you_mean(name, known)));
  }
  ev.step(where);
  if (name == "kl_divergence") {
    const auto args = arranged(ev, arguments, {"other"}, 1, where, name);
    return divergence(ev, base, args[0], site, frame);
  }
  return ev.with_location_scope(where, [&]() -> Value {
    const DistributionPtr d = distribution_of(ev, base, where, name);
    if (name == "entropy") {
      arranged(ev, arguments, {}, 0, where, name);
      return d->entropy();
    }
    if (name == "sample" || name == "rsample") {
      const auto args = name == "sample"
                            ? arranged(ev, arguments, {"shape"}, 0, where, name)
                            : arranged(ev, arguments, {"shape", "temperature"}, 0, where, name);
      const Shape shape = args[0].is_none() ? Shape{} : shape_of(ev, args[0], where);
      if (name == "sample") return d->sample(shape);
      if (args[1].is_none() && d->name() != "bernoulli") return d->rsample(shape);
      if (!args[1].is_none() && !args[1].is_number())
        ev.reject(where, str("temperature is a number, found ", args[1].describe()));
      return d->relaxed_sample(shape, args[1].is_none() ? 1.0 : args[1].number());
    }
    const auto args = arranged(ev, arguments, {"value"}, 1, where, name);
    const Tensor value = tensor_of(ev, args[0], where, name);
    if (name == "log_prob") return d->log_prob(value);
    if (name == "prob") return d->prob(value);
    return name == "cdf" ? d->cdf(value) : d->icdf(value);
  });
}

std::optional<Value> distribution_attribute(Evaluation& ev, const Value& base,
                                            const std::string& name, const SourcePosition& where) {
  const bool alone = base.is<DistributionPtr>();
  if (!alone && !base.drawn_from()) return std::nullopt;
  if (!alone && !is_among(base.drawn_from()->kind->parameters, name) &&
      !is_among(kAttributes, name))
    return std::nullopt;
  return ev.with_location_scope(where, [&]() -> Value {
    const DistributionPtr d = distribution_of(ev, base, where, name);
    if (name == "mean") return d->mean();
    if (name == "variance") return d->variance();
    if (name == "stddev") return d->stddev();
    if (name == "batch_shape" || name == "event_shape") {
      ValueList sizes;
      for (const Dim& dim : name == "batch_shape" ? d->batch_shape() : d->event_shape())
        sizes.emplace_back(dim);
      return Value::list(std::move(sizes));
    }
    if (const Tensor* parameter = d->find_parameter(name)) return *parameter;
    if (is_among(kMethods, name))
      ev.reject(where, str("'", name, "' is a method: write ", name, "(…)"));
    std::vector<std::string> known(std::begin(kAttributes), std::end(kAttributes));
    for (const std::string_view parameter : d->kind().parameters) known.emplace_back(parameter);
    ev.reject(where, str("a distribution has no '", name, "'", did_you_mean(name, known)));
  });
}

}  // namespace paddle::lang
