// Metrics of a file NAME.plugin.yaml: sums, minima and maxima over the data, and an expression of
// them. The accumulators are those of the engine, so a value does not depend on batches or ranks.

#include <algorithm>
#include <cmath>
#include <limits>

#include "plugin/registration.h"
#include "plugin/text_code.h"
#include "plugin/text_kinds.h"
#include "runtime/execute.h"

namespace paddle::plugin {
namespace {

using config::Schema;
using config::Section;
using config::Spec;

/// A sum, minimum or maximum of all elements of an expression.
struct Accumulator {
  enum class Kind : uint8_t { kSum, kMin, kMax } kind = Kind::kSum;
  std::string name;
  TextCode argument;
};

struct MetricText {
  std::string name;
  std::vector<std::string> operands;
  std::vector<Accumulator> states;
  TextCode value;
};

class StatedMetric final : public metrics::Metric {
 public:
  StatedMetric(std::shared_ptr<const MetricText> text, lang::NamedValues options)
      : text_(std::move(text)), options_(std::move(options)) {}

  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    runtime::EagerExecutor executor;
    const InterpreterScope scope(executor);
    lang::NamedValues names = options_;
    for (size_t i = 0; i < operands.size(); ++i)
      names.emplace_back(text_->operands[i], Tensor(operands[i]));
    for (size_t i = 0; i < text_->states.size(); ++i) {
      const Accumulator& each = text_->states[i];
      const Array found = tensor_or_number(text_->name, run_text(each.argument, names))
                              .array()
                              .cast(DType::kF64)
                              .contiguous();
      for (int64_t e = 0; e < found.size(); ++e) add(i, found.data<double>()[e]);
    }
  }

  double result() const override {
    runtime::EagerExecutor executor;
    const InterpreterScope scope(executor);
    lang::NamedValues names = options_;
    for (size_t i = 0; i < text_->states.size(); ++i)
      names.emplace_back(text_->states[i].name, Tensor(Array::from<double>({value(i)}, {})));
    const Array found =
        tensor_or_number(text_->name, run_text(text_->value, names)).array().cast(DType::kF64);
    if (found.size() != 1)
      fail(ErrorCode::kConfig, text_->name, ": its value has ", found.size(),
           " elements, expected one");
    return found.number();
  }

 private:
  using Kind = Accumulator::Kind;

  void add(size_t i, double number) {
    if (text_->states[i].kind == Kind::kSum) {
      state_.sum(i) += number;
      return;
    }
    if (std::isnan(number)) ++state_.count(0, i);
    state_.note_largest(i, text_->states[i].kind == Kind::kMax ? number : -number);
  }
  double value(size_t i) const {
    const Kind kind = text_->states[i].kind;
    if (kind == Kind::kSum) return state_.sum(i);
    if (state_.count(0, i) > 0) return std::numeric_limits<double>::quiet_NaN();
    return kind == Kind::kMax ? state_.largest(i) : -state_.largest(i);
  }

  std::shared_ptr<const MetricText> text_;
  lang::NamedValues options_;
};

/// `sum(x)`, `min(x)` or `max(x)`.
Accumulator read_accumulator(const config::Entry& state, const TextEntry& entry,
                             const std::vector<std::string>& names) {
  Accumulator out{.name = state.key.text, .argument = {}};
  const auto reject = [&]() {
    throw Error(
        ErrorCode::kConfig,
        str(entry.name, ": a state is one of sum(x), min(x) and max(x), found ",
            state.value.is_scalar() ? "'" + state.value.text + "'" : state.value.describe()),
        state.value.location());
  };
  if (!state.value.is_scalar()) reject();
  out.argument = code_of_entry(entry, state.value, names);
  std::vector<lang::Stmt>& statements = out.argument.code.statements;
  if (statements.size() != 1 || statements[0].kind != lang::StmtKind::kExpression) reject();
  lang::Expr& call = *statements[0].value;
  if (call.kind != lang::ExprKind::kCall || call.children[0]->kind != lang::ExprKind::kName ||
      call.arguments.size() != 1 || !call.arguments[0].name.empty())
    reject();
  const std::string& word = call.children[0]->text;
  if (word != "sum" && word != "min" && word != "max") reject();
  out.kind = word == "sum"   ? Accumulator::Kind::kSum
             : word == "min" ? Accumulator::Kind::kMin
                             : Accumulator::Kind::kMax;
  lang::ExprPtr argument = std::move(call.arguments[0].value);
  statements[0].value = std::move(argument);
  return out;
}

metrics::OptionInfo option_of(const KindKey& key, const TextEntry& entry) {
  using Type = KindKey::Type;
  if (key.required || key.type == Type::kText || !key.fallback)
    throw Error(ErrorCode::kConfig,
                str(entry.name, ": keys: ", key.name,
                    ": of a metric it is an integer, real or boolean with a default"),
                entry.section.location("keys"));
  config::Node map = config::parse_document("{}", entry.file);
  config::Diagnostics diagnostics;
  config::schema_of({key}).resolve(map, "keys", diagnostics);
  diagnostics.raise();
  const Section values(map);
  metrics::OptionInfo out{.name = key.name};
  if (key.type == Type::kInteger) {
    out.fallback = values.integer(key.name);
  } else if (key.type == Type::kReal) {
    out.kind = metrics::OptionKind::kReal;
    out.fallback = values.real(key.name);
  } else {
    out.kind = metrics::OptionKind::kBool;
    out.fallback = values.boolean(key.name);
  }
  return out;
}

/// The options that were given, and the defaults of the others.
lang::NamedValues values_of(const std::vector<metrics::OptionInfo>& options,
                            const metrics::Options& given) {
  lang::NamedValues out;
  for (const metrics::OptionInfo& option : options) {
    const auto at = given.find(option.name);
    const metrics::OptionValue& value = at == given.end() ? option.fallback : at->second;
    out.emplace_back(option.name, std::holds_alternative<bool>(value)
                                      ? lang::Value(std::get<bool>(value))
                                  : std::holds_alternative<int64_t>(value)
                                      ? lang::Value(std::get<int64_t>(value))
                                      : lang::Value(std::get<double>(value)));
  }
  return out;
}

}  // namespace

Spec metric_entry_spec() {
  Schema s;
  s.add("doc", Spec::text().required().doc("one line for the reference"));
  s.add("operands",
        Spec::list(Spec::text()).length(1, 16).required().doc("names of its tensors, in order"));
  s.add("keys", Spec::map_of(Spec::any()).fallback("{}").doc("options of a call"));
  s.add(
      "state",
      Spec::map_of(Spec::any()).required().doc("sum(x), min(x) or max(x) over the data, by name"));
  s.add("value", Spec::text().required().doc("an expression of the states"));
  s.add(
      "better",
      Spec::word({"unknown", "higher", "lower"}).fallback("unknown").doc("which value is better"));
  s.add("samples",
        Spec::list(Spec::text()).fallback("[]").doc("operands for the checks: x=f32[8] y=i64[8]"));
  return Spec::map(s);
}

metrics::MetricInfo read_metric(const TextEntry& entry) {
  const Section& s = entry.section;
  const auto text = std::make_shared<MetricText>();
  text->name = entry.name;
  text->operands = s.texts("operands");
  metrics::MetricInfo out{.name = entry.name, .doc = s.text("doc"), .operands = text->operands};
  std::vector<std::string> taken;
  for (const std::string& operand : text->operands) {
    if (!is_word(operand) || std::ranges::find(taken, operand) != taken.end())
      throw Error(ErrorCode::kConfig,
                  str(entry.name, ": operands: '", operand, "' is a duplicate, or not a name"),
                  s.location("operands"));
    taken.push_back(operand);
  }
  for (const KindKey& key : keys_of_entry(entry, taken)) {
    out.options.push_back(option_of(key, entry));
    taken.push_back(key.name);
  }
  check_names(s.at("state"), "a state", taken);
  if (s.at("state").entries.empty())
    throw Error(ErrorCode::kConfig, entry.name + ": has no state", s.location("state"));
  std::vector<std::string> names;
  for (const metrics::OptionInfo& option : out.options) names.push_back(option.name);
  for (const config::Entry& state : s.at("state").entries) {
    text->states.push_back(read_accumulator(state, entry, taken));
    names.push_back(state.key.text);
  }
  text->value = code_of_entry(entry, s.at("value"), std::move(names));
  const std::string& better = s.text("better");
  out.direction = better == "higher"  ? metrics::Direction::kHigher
                  : better == "lower" ? metrics::Direction::kLower
                                      : metrics::Direction::kUnknown;
  out.make = [text, options = out.options](const metrics::MetricSpec& spec) {
    return std::make_unique<StatedMetric>(text, values_of(options, spec.options));
  };
  return out;
}

}  // namespace paddle::plugin
