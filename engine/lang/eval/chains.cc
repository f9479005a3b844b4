// Chains: items applied one after the other, and YAML values by the declared type of what takes
// them.
#include <algorithm>

#include "lang/eval/evaluation.h"
#include "lang/layers/experts.h"
#include "lang/layers/initializer_words.h"
#include "lang/layers/layer_call.h"

namespace paddle::lang {
namespace {

/// "An operation with several results passes on the first."
Value first_of(const Value& value) {
  const ValueList* items = value.items();
  return items && !items->empty() ? items->front() : value;
}

bool is_word_of(const AttrDef& def, const std::string& text) {
  if (def.type == AttrType::kWord || def.type == AttrType::kString) return true;
  if (def.type == AttrType::kDType) return parse_dtype(text).has_value();
  return def.type == AttrType::kAny &&
         (text == "SAME" || text == "VALID" || text == "same" || text == "valid");
}

Value as_text(const YamlValue& value) {
  if (value.node.is_null()) return {};
  if (value.node.is_scalar()) return Value(value.node.text);
  ValueList items;
  for (const YamlValue& item : value.items) items.push_back(as_text(item));
  return Value::list(std::move(items));
}

}  // namespace

Value Evaluation::evaluate_yaml(const YamlValue& value, Frame& frame, bool quoted_is_text) {
  const Node& node = value.node;
  switch (node.kind) {
    case Node::Kind::kNull:
      return {};
    case Node::Kind::kSequence: {
      ValueList items;
      for (const YamlValue& item : value.items)
        items.push_back(evaluate_yaml(item, frame, quoted_is_text));
      return Value::list(std::move(items));
    }
    case Node::Kind::kMap: {
      NamedValues entries;
      for (const auto& [key, entry] : value.entries) {
        entries.emplace_back(key, evaluate_yaml(entry, frame, quoted_is_text));
      }
      return Value::map(std::move(entries));
    }
    case Node::Kind::kScalar:
      break;
  }
  // In JSON strings are always quoted, so quotes say nothing there; nor do double ones on the
  // command line.
  const bool says_text =
      node.source_kind() == SourceKind::kYaml ||
      (node.source_kind() == SourceKind::kCommandLine && node.quote == Node::Quote::kSingle);
  if (quoted_is_text && node.is_quoted() && says_text) return Value(node.text);
  if (!value.expression) {
    Error error = *value.not_an_expression;
    if (node.source_kind() == SourceKind::kYaml && !node.is_quoted() && quoted_is_text) {
      throw Error(ErrorCode::kConfig, error.message() + " (text needs quotes)", error.location());
    }
    throw error;
  }
  return evaluate(*value.expression, frame);
}

/// An option of `experts` where words need no quotes.
Value Evaluation::with_experts_words(const YamlValue& value, Frame& frame) {
  if (value.node.is_scalar() && is_experts_word(value.node.text)) return Value(value.node.text);
  if (value.node.kind != Node::Kind::kMap) return evaluate_yaml(value, frame, true);
  NamedValues entries;
  for (const auto& [key, entry] : value.entries)
    entries.emplace_back(key, with_experts_words(entry, frame));
  return Value::map(std::move(entries));
}

Value Evaluation::chain_value(const Op& op, const std::string& parameter, const YamlValue& value,
                              Frame& frame) {
  if (parameter == "name" || parameter == "share") return as_text(value);
  const bool init = parameter == "init" || parameter.ends_with("_init");
  if (init && value.expression) return evaluate_initializer(*value.expression, frame);
  const int attr = op.attr_index(parameter);
  const bool scalar = value.node.is_scalar();
  if (attr >= 0) {
    const AttrDef& def = op.attrs()[static_cast<size_t>(attr)];
    if (def.type == AttrType::kStrings) return as_text(value);
    if (scalar && is_word_of(def, value.node.text)) return Value(value.node.text);
    if (def.type == AttrType::kAny && scalar && value.node.is_quoted() &&
        value.node.source_kind() == SourceKind::kYaml) {
      return Value(value.node.text);
    }
  } else if (const LayerForm* form = layer_form(op)) {
    for (const LayerForm::Item& item : form->items) {
      if (item.name == parameter && item.has_fallback && item.fallback.is<std::string>())
        return as_text(value);
    }
  }
  return evaluate_yaml(value, frame, false);
}

Arguments Evaluation::chain_arguments(const ChainItem& item, const Callable& target,
                                      std::vector<Value> operands, Frame& frame) {
  Arguments out;
  const Op* op = target.op;
  const LayerForm* form = op ? layer_form(*op) : nullptr;
  // A list operand takes all of `from` as one list; where operands do not come first, they go by
  // name.
  const bool list = op && op->operands().size() > 0 && op->operands()[0].kind == OperandKind::kList;
  if (list && !(operands.size() == 1 && operands[0].items())) {
    operands = {Value::list(std::move(operands))};
  }
  const bool by_name = op && !form && !op->params().empty() && !op->params()[0].is_operand;
  if (by_name) {
    if (operands.size() > op->operands().size()) {
      reject(item.where, str(item.callee.text, " takes ", op->operands().size(),
                             " operands, found ", operands.size()));
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      out.named.emplace_back(op->operands()[i].name, std::move(operands[i]));
    }
  } else {
    out.positional = std::move(operands);
  }
  // A builtin such as `sum` calls the operation of that name for tensors; its attributes say which
  // arguments are words.
  const Op* const same_named = op || target.block || target.host ? nullptr : find_op(target.name);
  for (const ChainArgument& argument : item.arguments) {
    const std::string& name = argument.name.text;
    if (!name.empty()) out.places[name] = argument.name.where;
    if (!op) {
      const bool init = name == "init" || name.ends_with("_init");
      const bool naming = name == "name" || name == "share";
      Value value = naming ? as_text(argument.value)
                    : init && argument.value.expression
                        ? evaluate_initializer(*argument.value.expression, frame)
                    : same_named && same_named->attr_index(name) >= 0
                        ? chain_value(*same_named, name, argument.value, frame)
                    : target.name == "experts" && (name == "gate" || name == "activation")
                        ? with_experts_words(argument.value, frame)
                        : evaluate_yaml(argument.value, frame, true);
      if (name.empty()) {
        out.positional.push_back(std::move(value));
      } else {
        out.named.emplace_back(name, std::move(value));
      }
      continue;
    }
    if (!name.empty()) {
      out.named.emplace_back(name, chain_value(*op, name, argument.value, frame));
      continue;
    }
    // A bare value is the first parameter that is still free.
    const size_t at = out.positional.size();
    std::string parameter;
    if (form) {
      if (at < form->items.size()) parameter = form->items[at].name;
    } else if (at < op->params().size()) {
      const ParamDef& p = op->params()[at];
      const auto i = static_cast<size_t>(p.index);
      parameter = p.is_operand ? op->operands()[i].name : op->attrs()[i].name;
    }
    if (parameter.empty()) {
      reject(item.callee.where, str(item.callee.text, " has no parameter for the value ",
                                    argument.value.node.describe()));
    }
    out.positional.push_back(chain_value(*op, parameter, argument.value, frame));
  }
  return out;
}

Value Evaluation::evaluate_from(const Name& name, Frame& frame) {
  Expr read;
  read.kind = ExprKind::kName;
  read.text = name.text;
  read.where = name.where;
  const bool known = frame.locals.count(name.text) || frame.bound->count(name.text) ||
                     name.text == "training" || find_callable(name.text, frame) ||
                     (program_ && (program_->find_param(name.text) || program_->is_dim(name.text)));
  if (known) return evaluate_name(read, frame);
  std::vector<std::string> names(frame.bound->begin(), frame.bound->end());
  for (const auto& [local, value] : frame.locals) names.push_back(local);
  std::sort(names.begin(), names.end());
  reject(name.where, str("unknown value '", name.text, "'", did_you_mean(name.text, names)));
}

Value Evaluation::chain_item(const ChainItem& item, const Value& current, Frame& frame) {
  std::vector<Value> operands;
  if (item.from.empty()) {
    if (current.is_none()) {
      reject(item.where, "the chain has no current value here: 'from:' says which to take");
    }
    operands.push_back(current);
  }
  for (const Name& name : item.from) {
    if (name.text == "_") {
      if (current.is_none()) reject(name.where, "the chain has no current value here");
      operands.push_back(current);
      continue;
    }
    operands.push_back(evaluate_from(name, frame));
  }
  if (item.callee.text.empty()) return operands[0];
  const Callable target = resolve_callee(item.callee.text, item.callee.where, frame);
  const Site site{&item, item.site, item.callee.where};
  Arguments arguments = chain_arguments(item, target, std::move(operands), frame);
  return call_target(target, std::move(arguments), site, frame);
}

Value Evaluation::run_chain(const Code& code, Value current, Frame& frame) {
  for (const ChainItem& item : code.chain) {
    if (!current.is_none()) frame.locals["_"] = current;
    const Value result =
        with_location(item.where, [&] { return chain_item(item, current, frame); });
    if (item.as.size() == 1) {
      frame.locals[item.as[0].text] = first_of(result);
    } else if (item.as.size() > 1) {
      // An LSTM's states stand in a tuple of their own; two names take them apart as given.
      const ValueList* items = result.items();
      if (!items || items->size() != item.as.size()) {
        reject(item.as[0].where, str("'as' has ", item.as.size(), " names, the operation gives ",
                                     items ? items->size() : size_t{1}, " values"));
      }
      for (size_t i = 0; i < items->size(); ++i) frame.locals[item.as[i].text] = (*items)[i];
    }
    current = first_of(result);
  }
  return current;
}

}  // namespace paddle::lang
