#include "train/step/metric_call.h"

#include <algorithm>
#include <set>

#include "config/schema.h"
#include "ir/tracer.h"
#include "ops/core/op.h"
#include "program/field_use.h"
#include "runtime/execute.h"
#include "train/records/metrics_log.h"
#include "train/step/loss_form.h"

namespace paddle::train {
namespace {

using metrics::MetricInfo;
using metrics::OptionInfo;
using metrics::OptionKind;
using metrics::OptionValue;

using MetricHandle = std::shared_ptr<const MetricInfo>;

std::vector<std::string> metric_names(bool with_reductions = false) {
  std::vector<std::string> names;
  for (const MetricHandle& info : metrics::metric_registry().all())
    if (with_reductions || !info->is_reduction) names.push_back(info->name);
  return names;
}

/// The name that an expression calls, such as `acme.f_half` of a plug-in; "" for other expressions.
std::string called_name(const lang::Expr& e) {
  if (e.kind != lang::ExprKind::kCall || e.children.empty()) return "";
  const lang::Expr& callee = *e.children[0];
  if (callee.kind == lang::ExprKind::kName) return callee.text;
  const bool is_of_plugin = callee.kind == lang::ExprKind::kAttribute &&
                            callee.children[0]->kind == lang::ExprKind::kName;
  return is_of_plugin ? callee.children[0]->text + "." + callee.text : "";
}

/// The metric or reduction that an expression calls, or null.
MetricHandle called_state(const lang::Expr& e) {
  const std::string name = called_name(e);
  return name.empty() ? nullptr : metrics::find_metric(name);
}

/// The metric that an expression calls, or null. Reductions are operations there.
MetricHandle called_metric(const lang::Expr& e) {
  MetricHandle info = called_state(e);
  return info && !info->is_reduction ? info : nullptr;
}

template <class Visit>
void visit_children(lang::Expr& e, const Visit& visit) {
  for (lang::ExprPtr& child : e.children)
    if (child) visit(child);
  for (lang::Argument& argument : e.arguments)
    if (argument.value) visit(argument.value);
}

void reject_calls_in(lang::Expr& e, const std::string& outer) {
  visit_children(e, [&](lang::ExprPtr& child) {
    if (const MetricHandle inner = called_metric(*child))
      throw Error(ErrorCode::kConfig,
                  "metric '" + inner->name + "' cannot be an argument of '" + outer + "'",
                  child->where.location());
    reject_calls_in(*child, outer);
  });
}

bool reads(lang::Expr& e, std::string_view name) {
  if (e.kind == lang::ExprKind::kName) return e.text == name;
  bool found = false;
  visit_children(e, [&](lang::ExprPtr& child) { found = found || reads(*child, name); });
  return found;
}

/// How a call of a metric uses `predicted`.
MetricCall::Predicted use_of_predicted(const MetricInfo& info, lang::Expr& call) {
  using Predicted = MetricCall::Predicted;
  Predicted use = Predicted::kNot;
  const auto see = [&](lang::Expr& operand, bool is_input) {
    if (!reads(operand, kPredicted)) return;
    const bool plain = is_input && operand.kind == lang::ExprKind::kName;
    use = plain && use == Predicted::kNot ? Predicted::kAsInput : Predicted::kElsewhere;
  };
  bool is_first = true;
  for (lang::Argument& argument : call.arguments) {
    const bool by_place = argument.name.empty() && is_first;
    is_first = false;
    see(*argument.value, by_place || argument.name == info.operands[0]);
  }
  return use;
}

/// A name that no text of the language can spell.
std::string result_name(size_t call) { return str("result ", call); }

MetricCall metric_call(const MetricInfo& info, std::string name, lang::ExprPtr call,
                       const lang::Code& code) {
  MetricCall out;
  lang::Expr& callee = *call->children[0];
  callee.kind = lang::ExprKind::kName;  // one word, by which bind_metric is called
  callee.text = info.name;
  callee.children.clear();
  out.metric = info.name;
  out.name = std::move(name);
  out.predicted = use_of_predicted(info, *call);
  out.code.where = call->where;
  out.code.sites = code.sites;
  lang::Stmt& statement = out.code.statements.emplace_back();
  statement.kind = lang::StmtKind::kExpression;
  statement.where = call->where;
  statement.value = std::move(call);
  return out;
}

/// Moves the calls of metrics out of an expression and leaves names of their results.
void extract_calls(lang::ExprPtr& e, const lang::Code& code, MetricDefinition& metric) {
  if (const MetricHandle info = called_metric(*e)) {
    reject_calls_in(*e, info->name);
    auto name = std::make_unique<lang::Expr>();
    name->kind = lang::ExprKind::kName;
    name->where = e->where;
    name->text = result_name(metric.calls.size());
    std::string text = name->text;
    metric.calls.push_back(
        metric_call(*info, std::move(text), std::exchange(e, std::move(name)), code));
    return;
  }
  visit_children(*e, [&](lang::ExprPtr& child) { extract_calls(child, code, metric); });
}

/// The one expression of a text.
lang::Code read_expression(const config::Node& node, const std::string& what) {
  if (!node.is_scalar())
    throw Error(ErrorCode::kConfig, what + ", found " + node.describe(), node.location());
  config::Diagnostics errors;
  lang::Code code = lang::read_code(node, errors);
  errors.raise();
  if (code.statements.size() != 1 || code.statements[0].kind != lang::StmtKind::kExpression)
    throw Error(ErrorCode::kConfig, what, node.location());
  return code;
}

const config::Schema& own_metric_schema() {
  static const config::Schema schema = [] {
    config::Schema s;
    s.add("state", config::Spec::any().required())
        .add("value", config::Spec::text().required())
        .add("better", config::Spec::word({"unknown", "higher", "lower"}).fallback("unknown"));
    return s;
  }();
  return schema;
}

/// A metric of one's own: named accumulators, and an expression of their results.
MetricDefinition read_own_metric(const std::string& name, const config::Node& node) {
  MetricDefinition metric;
  metric.where = lang::where_of(node);
  metric.name = name;
  config::Node resolved = node;
  config::Diagnostics errors;
  config::Spec::map(own_metric_schema()).resolve(resolved, "metrics." + name, errors);
  errors.raise();
  const config::Section section(resolved);
  const config::Node& states = section.at("state");
  const std::string what =
      "a state is one call such as sum(x), min(x), max(x) or accuracy(logits, label)";
  if (!states.is_map() || states.entries.empty())
    throw Error(ErrorCode::kConfig, "metric '" + name + "': state is a map from names to calls",
                states.location());
  bool has_vectors = false;
  for (const config::Entry& e : states.entries) {
    lang::Code code = read_expression(e.value, what);
    lang::ExprPtr& call = code.statements[0].value;
    const MetricHandle info = called_state(*call);
    if (!info) {
      const std::string callee = code.sites.empty() ? e.value.text : code.sites[0].callee;
      throw Error(ErrorCode::kConfig,
                  str(what, "; '", callee, "' accumulates nothing",
                      did_you_mean(callee, metric_names(true))),
                  e.value.location());
    }
    reject_calls_in(*call, info->name);
    has_vectors =
        has_vectors || (info->is_reduction && call->children.size() + call->arguments.size() > 2);
    metric.calls.push_back(metric_call(*info, e.key.text, std::move(call), code));
  }
  metric.text = section.text("value");
  metric.arithmetic = read_expression(section.at("value"), "value is one expression of the states");
  const std::string& better = section.text("better");
  if (better != "unknown")
    metric.stated = better == "higher" ? metrics::Direction::kHigher : metrics::Direction::kLower;
  // Unknown names are found here; what takes vectors is tried on the first batch.
  if (!has_vectors) metric.value(std::vector<MetricResult>(metric.calls.size(), {{0.5}, false}));
  return metric;
}

MetricDefinition read_metric(const std::string& name, const config::Node& node) {
  if (node.is_map() && !name.empty()) return read_own_metric(name, node);
  MetricDefinition metric;
  metric.where = lang::where_of(node);
  const auto reject = [&](const std::string& message) {
    throw Error(ErrorCode::kConfig, message, node.location());
  };
  lang::Code code =
      read_expression(node, "a metric is one expression such as accuracy(logits, label)");
  metric.text = node.text;
  extract_calls(code.statements[0].value, code, metric);
  if (metric.calls.empty()) {
    std::string callee = called_name(*code.statements[0].value);
    if (callee.empty()) callee = code.sites.empty() ? node.text : code.sites[0].callee;
    reject("'" + callee + "' is not a metric" + did_you_mean(callee, metric_names()) +
           "; metrics are " + join(metric_names(), ", ") +
           "; the mean of any value is average(value)");
  }
  if (code.statements[0].value->kind != lang::ExprKind::kName) metric.arithmetic = std::move(code);
  metric.name = name.empty() ? metric.calls[0].metric : name;
  // Names of tensors outside of the calls are found here.
  metric.value(std::vector<MetricResult>(metric.calls.size(), {{0.5}, false}));
  return metric;
}

/// The entry as metrics of one value each, where its one call gives several; else itself.
std::vector<MetricDefinition> split_metric(MetricDefinition metric, const config::Node& node) {
  std::vector<MetricDefinition> out;
  const MetricHandle info = metrics::find_metric(metric.calls[0].metric);
  const auto& arguments = metric.calls[0].code.statements[0].value->arguments;
  const bool chosen =
      arguments.size() > info->operands.size() + (info->takes_mask ? 1 : 0) ||
      std::any_of(arguments.begin(), arguments.end(),
                  [&](const lang::Argument& each) { return each.name == info->splits_by; });
  if (info->splits_by.empty() || chosen || !node.is_scalar() ||
      !metric.arithmetic.statements.empty()) {
    out.push_back(std::move(metric));
    return out;
  }
  const size_t end = node.text.rfind(')');
  for (const OptionInfo& option : info->options) {
    if (option.name != info->splits_by) continue;
    for (const std::string& choice : option.choices) {
      config::Node one = node;
      one.text = str(node.text.substr(0, end), ", ", option.name, "=\"", choice, "\")");
      out.push_back(read_metric(metric.name + "_" + choice, one));
    }
  }
  return out;
}

OptionValue option_value(const MetricInfo& metric, const OptionInfo& option,
                         const lang::Value& value) {
  if (value.is_none()) return {};
  const auto expected = [&](const std::string& what) {
    fail(ErrorCode::kConfig, metric.name, ": ", option.name, " must be ", what, ", found ",
         value.describe());
  };
  switch (option.kind) {
    case OptionKind::kInteger:
      if (!value.is_integer() || value.is<bool>()) expected("an integer");
      return value.integer();
    case OptionKind::kReal:
      if (!value.is_number() || value.is<bool>()) expected("a number");
      return value.number();
    case OptionKind::kBool:
      if (!value.is<bool>()) expected("true or false");
      return *value.get<bool>();
    case OptionKind::kIntegers: {
      if (value.is_integer() && !value.is<bool>()) return std::vector<int64_t>{value.integer()};
      const lang::ValueList* items = nullptr;
      if (const auto* list = value.get<lang::Value::List>()) items = list->items.get();
      if (const auto* tuple = value.get<lang::Value::Tuple>()) items = tuple->items.get();
      if (!items) expected("an integer or a list of integers");
      std::vector<int64_t> out;
      for (const lang::Value& item : *items) {
        if (!item.is_integer() || item.is<bool>()) expected("an integer or a list of integers");
        out.push_back(item.integer());
      }
      return out;
    }
    case OptionKind::kChoice: {
      const auto* text = value.get<std::string>();
      if (!text ||
          std::find(option.choices.begin(), option.choices.end(), *text) == option.choices.end())
        expected("one of \"" + join(option.choices, "\", \"") + "\"");
      return *text;
    }
  }
  return {};
}

/// Arguments by position and by name in the order of the signature.
BoundMetric bind_arguments(const MetricInfo& info, const std::vector<lang::Value>& positional,
                           const lang::NamedValues& named) {
  std::vector<std::string> names = info.operands;
  for (const OptionInfo& option : info.options) names.push_back(option.name);
  const size_t places = names.size();
  if (info.takes_mask) names.emplace_back("mask");
  if (positional.size() > places)
    fail(ErrorCode::kConfig, info.name, " takes ", join(names, ", "), "; found ", positional.size(),
         " arguments");
  std::vector<const lang::Value*> arguments(names.size(), nullptr);
  for (size_t i = 0; i < positional.size(); ++i) arguments[i] = &positional[i];
  for (const auto& [name, value] : named) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      fail(ErrorCode::kConfig, info.name, ": unknown option '", name, "'",
           did_you_mean(name, names), "; it takes ", join(names, ", "));
    const lang::Value*& argument = arguments[static_cast<size_t>(at - names.begin())];
    if (argument) fail(ErrorCode::kConfig, info.name, ": '", name, "' is given twice");
    argument = &value;
  }
  BoundMetric out;
  out.metric = info.name;
  const size_t operands = info.operands.size();
  for (size_t i = 0; i < operands; ++i) {
    if (!arguments[i])
      fail(ErrorCode::kConfig, info.name, " needs ", join(info.operands, " and "), "; '", names[i],
           "' is missing");
    if (!arguments[i]->is_tensor())
      fail(ErrorCode::kConfig, info.name, ": ", names[i], " must be a tensor, found ",
           arguments[i]->describe());
    out.operands.push_back(arguments[i]->tensor());
  }
  if (info.takes_mask && arguments[places] && !arguments[places]->is_none()) {
    if (!arguments[places]->is_tensor())
      fail(ErrorCode::kConfig, info.name, ": mask must be a tensor, found ",
           arguments[places]->describe());
    out.operands.push_back(arguments[places]->tensor());
  }
  for (size_t i = operands; i < places; ++i)
    if (arguments[i])
      out.options[names[i]] = option_value(info, info.options[i - operands], *arguments[i]);
  return out;
}

/// A result in the language: a vector or, unless `as_tensor`, a number.
lang::Value language_value(const MetricResult& result, bool as_tensor) {
  if (!result.is_vector && !as_tensor) return result.values[0];
  Dims shape;
  if (result.is_vector) shape.push_back(static_cast<int64_t>(result.values.size()));
  return Tensor(Array::from<double>(result.values, shape));
}

/// For arithmetic on numbers.
class NoParameters final : public lang::ParameterProvider {
 public:
  Tensor parameter(const std::string& path, const Dims&, DType, const lang::Initializer&) override {
    reject(path);
  }
  Tensor state(const std::string& path, const Dims&, DType, const lang::Initializer&,
               lang::StateScope) override {
    reject(path);
  }
  void update(const std::string& path, const Tensor&) override { reject(path); }

 private:
  [[noreturn]] static void reject(const std::string& path) {
    fail(ErrorCode::kConfig, "a metric cannot have parameters, found '", path, "'");
  }
};

/// The kind of scores in a trace, by the operation that computes them.
metrics::ScoreKind score_kind(const Tensor& scores) {
  static const std::set<std::string, std::less<>> kTransparent = {
      "cast",  "reshape", "squeeze", "unsqueeze",    "flatten",      "transpose", "copy",
      "slice", "detach",  "clip",    "broadcast_to", "index_select", "split",     "getitem"};
  static const std::set<std::string, std::less<>> kProbabilities = {"softmax", "sigmoid",
                                                                    "hardsigmoid"};
  static const std::set<std::string, std::less<>> kLogProbabilities = {"log_softmax",
                                                                       "log_sigmoid"};
  const ir::Value* value = ir::traced_value(scores);
  while (value && value->producer && kTransparent.contains(value->producer->op->name()))
    value = value->producer->operands[0];
  if (!value || !value->producer) return metrics::ScoreKind::kLogits;
  const std::string_view op = value->producer->op->name();
  if (kProbabilities.contains(op)) return metrics::ScoreKind::kProbabilities;
  return kLogProbabilities.contains(op) ? metrics::ScoreKind::kLogProbabilities
                                        : metrics::ScoreKind::kLogits;
}

/// Whether the number of elements grows with the batch: an axis depends on the batch's symbol or,
/// for a batch of fixed size, the first axis has that size.
bool has_batch_axis(const Shape& shape, const Dim& batch) {
  if (!batch.is_symbol()) return !shape.empty() && shape[0].equals(batch) != false;
  for (const Dim& d : shape) {
    std::vector<std::string> symbols;
    d.collect_symbols(symbols);
    if (d.is_unknown() || std::find(symbols.begin(), symbols.end(), batch.text()) != symbols.end())
      return true;
  }
  return false;
}

/// Rejects to keep axes whose size may differ from batch to batch.
void check_batch_axis(const metrics::MetricSpec& spec, const Shape& shape, const Dim& batch) {
  const auto given = spec.options.find("axis");
  if (given == spec.options.end()) return;
  const auto& axes = std::get<std::vector<int64_t>>(given->second);
  const std::vector<bool> kept = metrics::kept_axes(spec.name, shape, axes, ErrorCode::kConfig);
  for (size_t d = 0; d < shape.size(); ++d)
    if (kept[d] && (has_batch_axis({shape[d]}, batch) || !shape[d].constant()))
      fail(ErrorCode::kConfig, spec.name, ": axis ", d, " of ", text(shape),
           " differs from batch to batch; axis must contain it");
}

/// A value of the whole batch is averaged over batches, which is right for a mean over samples.
void check_batch_value(const BoundMetric& bound, MetricBinding& binding) {
  const Tensor& operand = bound.operands[0];
  const LossForm form = loss_form(*ir::traced_function(operand), *ir::traced_value(operand));
  if (form.kind == LossForm::Kind::kSum)
    fail(ErrorCode::kConfig, bound.metric,
         ": the operand is a sum over the batch; give the values of the samples, ", bound.metric,
         "(x) in place of ", bound.metric, "(sum(x))");
  if (form.kind == LossForm::Kind::kUnknown)
    binding.warning = bound.metric + ": " + form.reason +
                      "; batches are weighted by their samples, and the value depends on "
                      "data.valid_batch_size";
}

}  // namespace

metrics::Direction MetricDefinition::direction() const {
  if (stated != metrics::Direction::kUnknown) return stated;
  return arithmetic.statements.empty() ? metrics::find_metric(calls[0].metric)->direction
                                       : metrics::Direction::kUnknown;
}

double MetricDefinition::value(std::span<const MetricResult> results) const {
  if (arithmetic.statements.empty()) return results[0].values[0];
  const auto run = [&](bool as_tensors) {
    lang::NamedValues names;
    for (size_t i = 0; i < results.size(); ++i)
      names.push_back({calls[i].name, language_value(results[i], as_tensors)});
    NoParameters none;
    lang::EvaluationOptions options;
    options.store = &none;
    runtime::EagerExecutor executor;
    const InterpreterScope eager(executor);
    return lang::run_code(arithmetic, names, options);
  };
  lang::Value out;
  try {
    out = run(false);
  } catch (const Error& e) {
    // Numbers of the language cannot be divided by zero; tensors give infinity or NaN.
    if (!e.message().starts_with("division by zero")) throw;
    out = run(true);
  }
  if (out.is_tensor() && out.tensor().array().size() == 1) return out.tensor().array().number(0);
  if (!out.is_number())
    throw Error(ErrorCode::kConfig,
                "metric '" + name + "': expected a number around the calls of metrics, found " +
                    out.describe(),
                where.location());
  return out.number();
}

std::vector<MetricDefinition> read_metrics(const config::Node& node,
                                           config::Diagnostics& diagnostics) {
  std::vector<MetricDefinition> out;
  const auto add_one = [&](MetricDefinition metric, const config::Node& place) {
    const std::string where = "metric '" + metric.name + "'";
    if (is_reserved_name(metric.name))
      throw Error(ErrorCode::kConfig,
                  where + ": the name is a key of metrics.jsonl or of paddle-eval; choose another",
                  place.location());
    if (std::any_of(out.begin(), out.end(),
                    [&](const MetricDefinition& m) { return m.name == metric.name; }))
      throw Error(ErrorCode::kConfig,
                  where + " is given twice; name each: metrics: {name: expression}",
                  place.location());
    out.push_back(std::move(metric));
  };
  const auto add = [&](const std::string& name, const config::Node& value,
                       const config::Node& place) {
    diagnostics.guard([&] {
      for (MetricDefinition& metric : split_metric(read_metric(name, value), value))
        add_one(std::move(metric), place);
    });
  };
  if (node.is_map())
    for (const config::Entry& e : node.entries) add(e.key.text, e.value, e.key);
  else if (node.is_sequence())
    for (const config::Node& item : node.items) add("", item, item);
  else if (node.is_scalar())
    add("", node, node);
  return out;
}

BoundMetric bind_metric(const MetricCall& call, const lang::NamedValues& names,
                        const lang::EvaluationOptions& options) {
  BoundMetric bound;
  lang::EvaluationOptions inside = options;
  inside.functions[call.metric] = [&](const std::vector<lang::Value>& positional,
                                      const lang::NamedValues& named,
                                      const config::SourcePosition&) {
    bound = bind_arguments(*metrics::find_metric(call.metric), positional, named);
    return lang::Value(int64_t{0});
  };
  lang::run_code(call.code, names, inside);
  return bound;
}

MetricBinding metric_binding(const BoundMetric& bound, const Dim& batch, int64_t ignored_label) {
  MetricBinding binding;
  metrics::MetricSpec& spec = binding.spec;
  spec.name = bound.metric;
  spec.options = bound.options;
  spec.ignored_label = ignored_label;
  spec.scores = score_kind(bound.operands[0]);
  std::vector<TensorType> types;
  for (const Tensor& operand : bound.operands) {
    types.push_back(operand.type());
    spec.per_sample = spec.per_sample && has_batch_axis(operand.shape(), batch);
  }
  metrics::resolve_operands(spec, types);
  if (metrics::find_metric(spec.name)->is_reduction)
    check_batch_axis(spec, bound.operands[0].shape(), batch);
  if (spec.name == "mae" || spec.name == "rmse" || spec.name == "mape" || spec.name == "r2")
    for (const size_t i : {size_t{1}, size_t{0}})
      if (binding.target.empty())
        binding.target = program::field_of(bound.operands[i], binding.columns);
  if (bound.operands.size() > 1) binding.labels = program::field_of(bound.operands[1]);
  binding.predicted = bound.predicted;
  if (metrics::find_metric(spec.name)->compares_texts && binding.labels.empty())
    fail(ErrorCode::kConfig, spec.name, ": ", metrics::find_metric(spec.name)->operands[1],
         " must be a field of the data with texts");
  if (!spec.per_sample && bound.operands[0].ndim() == 0) check_batch_value(bound, binding);
  return binding;
}

}  // namespace paddle::train
