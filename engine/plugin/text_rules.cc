#include "plugin/text_rules.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "ops/core/call.h"
#include "plugin/text_code.h"

namespace paddle::plugin {
namespace {

using lang::NamedValues;
using lang::Value;

Value value_of(const AttrValue& a) {
  if (a.is_none()) return {};
  if (a.is_bool()) return a.as_bool();
  if (a.is_int()) return Value(a.as_dim());
  if (a.is_float()) return a.as_double();
  if (a.is_string()) return a.as_string();
  if (a.is_dtype()) return text(a.as_dtype());
  if (!a.is_list()) fail(ErrorCode::kUsage, "a complex number cannot be passed to a body");
  lang::ValueList items;
  for (const AttrValue& item : a.as_list()) items.push_back(value_of(item));
  return Value::list(std::move(items));
}

Value value_of(const Tensors& tensors) {
  lang::ValueList items;
  for (const Tensor& t : tensors) items.emplace_back(t);
  return Value::list(std::move(items));
}

/// `operand(d)` and `list(d)` give those of the call.
template <class Context>
NamedValues arguments(const Context& c) {
  NamedValues names;
  const Op& op = c.op();
  for (size_t d = 0; d < op.operands().size(); ++d) {
    const OperandDef& def = op.operands()[d];
    if (def.kind == OperandKind::kList) {
      names.emplace_back(def.name, value_of(c.list(d)));
    } else {
      const Tensor& t = c.operand(d);
      names.emplace_back(def.name, t.defined() ? Value(t) : Value());
    }
  }
  for (size_t i = 0; i < op.attrs().size(); ++i)
    names.emplace_back(op.attrs()[i].name, value_of(c.attrs()[i]));
  return names;
}

template <class Context>
Tensors flat(const Context& c) {
  Tensors out;
  for (size_t d = 0; d < c.op().operands().size(); ++d)
    if (c.op().operands()[d].kind == OperandKind::kList)
      for (const Tensor& t : c.list(d)) out.push_back(t);
    else
      out.push_back(c.operand(d));
  return out;
}

/// Codes of expressions, which functions in C evaluate again and again.
struct ReadTexts {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const lang::Code>> codes;
};

std::shared_ptr<const lang::Code> code_of(const std::string& text, const std::string& file) {
  static auto* const all = new ReadTexts;
  constexpr size_t kMaxCodes = 10000;
  const std::lock_guard lock(all->mutex);
  if (all->codes.size() >= kMaxCodes) all->codes.clear();
  auto& code = all->codes[{file, text}];
  if (!code) {
    const auto source = config::parse_document("{}", file).source;
    code = std::make_shared<const lang::Code>(
        read_text_code(config::make_scalar(text, source), "", file).code);
  }
  return code;
}

}  // namespace

const TextRules& text_rules_of(const Op& op) {
  return *static_cast<const TextRules*>(op.def->context);
}

NamedValues names_of(const CallContext& c) { return arguments(c); }
NamedValues names_of(const VjpContext& c) { return arguments(c); }
Tensors flat_operands(const CallContext& c) { return flat(c); }
Tensors flat_operands(const VjpContext& c) { return flat(c); }

Tensor value_of_text(const Op& op, const std::string& text, const std::string& file,
                     const NamedValues& names) {
  std::shared_ptr<const lang::Code> code;
  try {
    code = code_of(text, file);
  } catch (const Error& e) {
    throw Error(ErrorCode::kUsage, str(op.name(), ": ", e.message()), e.location());
  }
  return tensor_result(op.name(), run_text(op.name(), file, *code, names));
}

TextRules read_text_rules(const config::Node& entry, const std::string& file) {
  TextRules out{file, {}, {}};
  const auto read = [&](const config::Node& node) { return read_text_code(node, "", file).code; };
  if (const config::Node* const body = entry.find("body")) out.body = read(*body);
  if (const config::Node* const vjp = entry.find("vjp")) {
    if (vjp->is_sequence())
      for (const config::Node& item : vjp->items) out.gradients.push_back(read(item));
    else if (!vjp->text.starts_with("none"))
      out.gradients.push_back(read(*vjp));
  }
  return out;
}

partition::RuleFn read_sharding_rule(const config::Node& node) {
  if (!node.is_scalar())
    throw Error(ErrorCode::kConfig,
                "sharding: expected a rule such as '[rows, n] -> [rows]', found " + node.describe(),
                node.location());
  try {
    return partition::parse_rule(node.text);
  } catch (const Error& e) {
    throw Error(ErrorCode::kConfig, "sharding: " + e.message(), node.location());
  }
}

Tensors decompose_by_text(CallContext& c) {
  const Op& op = c.op();
  const TextRules& rules = text_rules_of(op);
  const Value value = run_text(op.name(), rules.file, rules.body, arguments(c));
  Tensors out;
  if (const lang::ValueList* const items = value.items())
    for (const Value& item : *items) out.push_back(tensor_result(op.name(), item));
  else
    out.push_back(tensor_result(op.name(), value));
  if (out.size() != op.results().size())
    fail(ErrorCode::kUsage, op.name(), ": its body gives ", out.size(), " results, its signature ",
         op.results().size());
  return out;
}

void infer_by_text(InferContext& c) {
  std::map<std::string, Dim> run_time;
  for (const TypeText& type : text_rules_of(c.op()).types) c.result(type_of(type, c, run_time));
}

bool has_surrogate_gradient(const Op& op) {
  return op.def->provider && text_rules_of(op).surrogate_gradient;
}

Tensors vjp_by_text(VjpContext& c) {
  const Op& op = c.op();
  NamedValues names = arguments(c);
  for (size_t i = 0; i < c.result_count(); ++i) {
    const std::string result = op.results()[i].name;
    names.emplace_back(result, c.result(i));
    const Tensor cotangent = c.cotangent_or_zeros(i);
    names.emplace_back("g_" + result, cotangent);
    if (i == 0) names.emplace_back("g", cotangent);
  }
  Tensors out = c.gradients();
  const auto& gradients = text_rules_of(op).gradients;
  for (size_t d = 0; d < op.operands().size() && d < gradients.size(); ++d) {
    if (!c.needs(d)) continue;
    const Value value = run_text(op.name(), text_rules_of(op).file, gradients[d], names);
    if (value.is_none()) continue;
    const Tensor gradient = tensor_result(op.name(), value);
    const Tensor& operand = c.plain_operand(d);
    if (gradient.shape().size() != operand.shape().size())
      fail(ErrorCode::kUsage, op.name(), ": the gradient of '", op.operands()[d].name, "' is ",
           gradient.type(), ", the operand ", operand.type());
    out[c.map().begin(d)] = gradient;
  }
  return out;
}

}  // namespace paddle::plugin
