#include "program/field_use.h"

#include <algorithm>
#include <set>

#include "ir/tracer.h"
#include "ops/core/op.h"

namespace paddle::program {
namespace {

/// The input of the function that a value is, seen through operations that keep its numbers.
const ir::Value* origin_of(const ir::Value* value) {
  static const std::set<std::string, std::less<>> kKeeping = {
      "cast", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "copy", "broadcast_to"};
  while (value && value->producer && kKeeping.contains(value->producer->op->name()))
    value = value->producer->operands[0];
  return value;
}

/// The name of the input of the function that a value is, or "".
std::string input_name(const ir::Function& function, const ir::Value* value) {
  const auto& arguments = function.body.arguments;
  const auto at = std::find(arguments.begin(), arguments.end(), value);
  if (at == arguments.end()) return "";
  const ir::Port& port = function.inputs[static_cast<size_t>(at - arguments.begin())];
  return port.kind == ir::PortKind::kValue ? port.name : "";
}

std::optional<int64_t> integer_attr(const OpCall& call, std::string_view name) {
  const int at = call.op.attr_index(name);
  if (at < 0) return std::nullopt;
  const AttrValue& value = call.attrs[static_cast<size_t>(at)];
  return value.is_none() ? std::nullopt : std::optional<int64_t>(value.as_int());
}

}  // namespace

std::string field_of(const Tensor& tensor) {
  const ir::Function* function = tensor.defined() ? ir::traced_function(tensor) : nullptr;
  return function ? input_name(*function, origin_of(ir::traced_value(tensor))) : "";
}

std::string field_of(const Tensor& tensor, std::vector<int64_t>& columns) {
  const ir::Function* function = tensor.defined() ? ir::traced_function(tensor) : nullptr;
  if (!function) return "";
  ColumnView view = column_view(ir::traced_value(tensor));
  columns = std::move(view.columns);
  return input_name(*function, view.base);
}

void FieldUseWatch::note(const Tensor& index, const Dim& bound, std::optional<int64_t> also) {
  const auto high = bound.constant();
  if (!high || !index.defined() || !is_integer(index.dtype())) return;
  const std::string field = field_of(index);
  if (field.empty()) return;
  const auto same = std::find_if(use_.ranges.begin(), use_.ranges.end(),
                                 [&](const auto& range) { return range.field == field; });
  if (same == use_.ranges.end()) {
    use_.ranges.push_back({field, 0, *high, also});
    return;
  }
  same->high = std::min(same->high, *high);
  if (same->also != also) same->also.reset();
}

void FieldUseWatch::note_label(const OpCall& call, size_t operand, const Dim& classes) {
  const Tensor& label = call.operands[operand];
  const std::optional<int64_t> ignored = integer_attr(call, "ignore_index");
  note(label, classes, ignored);
  if (!use_.label.empty() || !classes.constant() || !is_integer(label.dtype())) return;
  use_.label = field_of(label);
  scored_ = origin_of(ir::traced_value(call.operands[0]));
  const int softmax = call.op.attr_index("use_softmax");
  if (call.op.name() == "nll_loss")
    use_.scores = Scores::kLogProbabilities;
  else if (softmax >= 0 && !call.attrs[static_cast<size_t>(softmax)].as_bool())
    use_.scores = Scores::kProbabilities;
  else
    use_.scores = Scores::kLogits;
  use_.classes = *classes.constant();
  const int reduction = call.op.attr_index("reduction");
  if (reduction >= 0 && call.attrs[static_cast<size_t>(reduction)].as_string() == "mean")
    use_.ignored = ignored;
}

void FieldUseWatch::note_comparison(const OpCall& call) {
  if (call.operands.size() < 2 || !call.operands[0].defined() || !call.operands[1].defined())
    return;
  std::vector<int64_t> columns;
  const Tensor &a = call.operands[0], &b = call.operands[1];
  const std::string first = field_of(a, columns), second = field_of(b, columns);
  if (first.empty() == second.empty()) return;
  const Tensor &label = first.empty() ? b : a, &with = first.empty() ? a : b;
  const ir::Value* value = ir::traced_value(with);
  if (!value || value->constant) return;
  comparisons_.push_back({first.empty() ? second : first, ir::traced_value(label), value});
}

/// A loss of labels that are 0 or 1, one for each class.
void FieldUseWatch::note_binary(const OpCall& call) {
  const size_t before = comparisons_.size();
  note_comparison(call);
  if (comparisons_.size() == before || scored_ || call.op.name() == "log_loss") return;
  scored_ = origin_of(comparisons_.back().with);
  use_.scores = call.op.name() == "binary_cross_entropy" || call.op.name() == "bce_loss"
                    ? Scores::kProbabilities
                    : Scores::kLogits;
}

FieldUse FieldUseWatch::use(const ir::Function& function,
                            const std::vector<std::pair<std::string, Tensor>>& outputs,
                            const std::vector<std::string>& inputs) const {
  FieldUse use = use_;
  use.inputs = inputs;
  std::vector<std::pair<std::string, const ir::Value*>> values;
  std::set<const ir::Value*> bases;
  for (const auto& [name, tensor] : outputs) {
    values.emplace_back(name, ir::traced_value(tensor));
    bases.insert(column_view(values.back().second).base);
    if (scored_ && origin_of(values.back().second) == scored_ && use.scored_output.empty())
      use.scored_output = name;
  }
  std::vector<Comparison> comparisons;
  for (const Comparison& each : comparisons_) {
    // The result of an autoencoder is compared with an input; other values of the model may meet
    // its inputs on their way.
    const bool is_input = std::find(inputs.begin(), inputs.end(), each.field) != inputs.end();
    if (is_input && !bases.contains(column_view(each.with).base)) continue;
    comparisons.push_back(each);
    const bool known = std::any_of(use.targets.begin(), use.targets.end(),
                                   [&](const auto& t) { return t.field == each.field; });
    if (!is_input && !known) use.targets.push_back({each.field, ""});
  }
  use.units = output_units(function, comparisons, values);
  for (TargetUse& target : use.targets)
    for (const OutputUnit& unit : use.units)
      if (target.output.empty() && unit.field == target.field && unit.kind == UnitKind::kValue)
        target.output = unit.output;
  return use;
}

Tensors FieldUseWatch::apply(const OpCall& call) {
  static const std::set<std::string_view> kComparing = {"subtract",
                                                        "mse_loss",
                                                        "l1_loss",
                                                        "smooth_l1_loss",
                                                        "square_error_cost",
                                                        "gaussian_nll_loss",
                                                        "soft_margin_loss",
                                                        "huber_loss",
                                                        "poisson_nll_loss",
                                                        "kl_div",
                                                        "hinge_embedding_loss"};
  static const std::set<std::string_view> kBinary = {"binary_cross_entropy",
                                                     "bce_loss",
                                                     "binary_cross_entropy_with_logits",
                                                     "sigmoid_cross_entropy_with_logits",
                                                     "multi_label_soft_margin_loss",
                                                     "sigmoid_focal_loss",
                                                     "log_loss"};
  const std::string_view name = call.op.name();
  if (name == "cross_entropy" || name == "softmax_cross_entropy") {
    const Shape& logits = call.operands[0].shape();
    int64_t axis = integer_attr(call, "axis").value_or(-1);
    if (axis < 0) axis += static_cast<int64_t>(logits.size());
    if (axis >= 0 && axis < static_cast<int64_t>(logits.size()))
      note_label(call, 1, logits[static_cast<size_t>(axis)]);
  } else if (name == "nll_loss") {
    const Shape& input = call.operands[0].shape();
    if (input.size() >= 2) note_label(call, 1, input[1]);
  } else if (kComparing.contains(name)) {
    note_comparison(call);
  } else if (kBinary.contains(name)) {
    note_binary(call);
  } else if (name == "embedding") {
    note(call.operands[0], call.operands[1].shape()[0], std::nullopt);
  }
  const ScopedInterpreter below(next());
  return next().apply(call);
}

Tensors FieldUseWatch::branch(const Tensor& condition, const TensorFn& then_fn,
                              const TensorFn& else_fn) {
  const ScopedInterpreter below(next());
  return next().branch(condition, then_fn, else_fn);
}

Tensors FieldUseWatch::loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
                            int64_t max_steps) {
  const ScopedInterpreter below(next());
  return next().loop(condition, body, carried, max_steps);
}

}  // namespace paddle::program
