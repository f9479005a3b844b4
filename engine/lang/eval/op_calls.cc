// Calls of operations by the text: their layer forms, the mode of the run, and the records of
// calls.
#include "ir/tracer.h"
#include "lang/eval/evaluation.h"

namespace paddle::lang {
namespace {

/// A value that is known while tracing, as print shows it.
std::string shown(const Value& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
  if (const auto* dim = value.get<Dim>()) return dim->text();
  if (value.is_integer()) return str(value.integer());
  if (value.is_number()) return str(value.number());
  return value.describe();
}

/// `print("message", x, 3, y)` prints each tensor with the other values before it; the result is
/// the last tensor. Named arguments are those of the operation.
Value print_values(Evaluation& ev, const Op& op, const Arguments& arguments, const Site& site) {
  std::string message;
  if (const Value* named = arguments.find("message")) message = shown(*named);
  Value last;
  bool printed = false;
  for (const Value& value : arguments.positional) {
    if (!value.is_tensor()) {
      if (!message.empty()) message += " ";
      message += shown(value);
      continue;
    }
    Arguments one;
    for (const auto& [name, argument] : arguments.named)
      if (name != "message") one.named.emplace_back(name, argument);
    one.positional.push_back(value);
    one.named.emplace_back("message", Value(std::exchange(message, "")));
    last = ev.operations().invoke(op, one, site.where);
    printed = true;
  }
  if (!printed && arguments.find("input")) return ev.operations().invoke(op, arguments, site.where);
  if (!printed) ev.reject(site.where, "print needs at least one tensor");
  if (!message.empty()) ev.reject(site.where, "print: a message must come before its tensor");
  return last;
}

/// Operations of the family debug: they say where they are. nullopt for other operations.
std::optional<Value> debug_call(Evaluation& ev, const Op& op, Arguments& arguments,
                                const Site& site) {
  const bool prints = op.name() == "print";
  if (!prints && op.name() != "assert_true") return std::nullopt;
  if (!arguments.find("place"))
    arguments.named.emplace_back(
        "place",
        Value(ev.with_location_scope(site.where, [] { return ir::LocationScope::current(); })));
  if (prints) return print_values(ev, op, arguments, site);
  if (!arguments.positional.empty() && !arguments.positional[0].is_tensor()) {
    // Known while tracing.
    if (truth(arguments.positional[0])) return Value();
    ev.reject(site.where,
              "assert: " + (arguments.positional.size() > 1 ? shown(arguments.positional[1])
                                                            : "the condition does not hold"));
  }
  return ev.operations().invoke(op, arguments, site.where);
}

}  // namespace

Value Evaluation::call_op(const Op& op, Arguments arguments, const Site& site, Frame& frame) {
  if (auto shown = debug_call(*this, op, arguments, site)) return *shown;
  CallRecord record;
  if (options().observer && !is_abstract()) {
    record.callee = op.name();
    record.where = site.where;
    for (const Value& value : arguments.positional) {
      if (value.is_tensor()) record.inputs.push_back(value.tensor().type());
    }
  }
  variables_.forget_used();
  Value result;
  if (auto value = call_layer(op, arguments, site, frame)) {
    result = *value;
  } else {
    for (const char* word : {"name", "share"}) {
      if (find_param(op, word) || !arguments.find(word)) continue;
      reject(site.where,
             str(op.name(), ": '", word, "' names parameters, and this operation has none"));
    }
    // Operations with two behaviors follow the mode of the run.
    if (find_param(op, "training") && !arguments.find("training")) {
      bool given = false;
      for (size_t i = 0; i < arguments.positional.size() && i < op.params().size(); ++i) {
        given |= !op.params()[i].is_operand &&
                 std::string_view(op.attrs()[static_cast<size_t>(op.params()[i].index)].name) ==
                     "training";
      }
      if (!given) arguments.named.emplace_back("training", Value(options().training));
    }
    result = operations_.invoke(op, arguments, site.where);
  }
  if (options().observer && !is_abstract()) {
    if (result.is_tensor()) record.outputs.push_back(result.tensor().type());
    if (const ValueList* items = result.items()) {
      for (const Value& item : *items) {
        if (item.is_tensor()) record.outputs.push_back(item.tensor().type());
      }
    }
    record.parameters = variables_.used();
    if (!record.parameters.empty()) {
      const std::string& first = record.parameters.front().first;
      record.path = first.substr(0, first.rfind('.'));
    }
    this->record(std::move(record));
  }
  return result;
}

}  // namespace paddle::lang
