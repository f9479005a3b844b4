// The only file, with layers.cc, that knows how operations are called.
#include "lang/eval/operations.h"

#include "ops/core/access.h"
#include "ops/core/run_time_attrs.h"

namespace paddle::lang {
namespace {

[[noreturn]] void not_an_attribute(const Op& op, const Value& value) {
  fail(ErrorCode::kConfig, op.name(), ": expected a number, text, list or tensor, found ",
       value.describe());
}

AttrValue to_attr(const Op& op, const Value& value, int depth = 0) {
  if (value.is_none()) return {};
  if (value.is<bool>()) return value.integer() != 0;
  if (value.is<int64_t>()) return value.integer();
  if (value.is<double>()) return value.number();
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* dim = value.get<Dim>()) return *dim;
  const ValueList* items = value.items();
  if (!items || depth > 16) not_an_attribute(op, value);
  AttrValue::List out;
  for (const Value& item : *items) out.push_back(to_attr(op, item, depth + 1));
  return out;
}

/// A list of sizes with tensors among them, whose values may be known only at run time; nothing for
/// attributes and lists of other kinds.
std::optional<AttrValue> sizes_of(const Op& op, const AttrDef& def, const Value& value) {
  if (!takes_sizes(def)) return {};
  const std::string where = str(op.name(), ": ", def.name, ": ");
  AttrValue::List out;
  for (const Value& item : *value.items()) {
    if (!item.is_tensor()) {
      out.push_back(to_attr(op, item));
      continue;
    }
    const Shape dims = dims_of(item.tensor(), where);
    if (dims.size() != 1) return {};
    out.emplace_back(dims[0]);
  }
  return out;
}

/// Where a last list operand takes all further positional arguments (`einsum(equation, x, y)`);
/// SIZE_MAX where it does not.
size_t star_position(const Op& op, const std::vector<Value>& positional) {
  size_t last = op.params().size();
  while (last > 0) {
    const ParamDef& p = op.params()[last - 1];
    const auto i = static_cast<size_t>(p.index);
    if (!(p.is_operand ? op.operands()[i].hidden : op.attrs()[i].hidden)) break;
    --last;
  }
  if (last == 0 || positional.size() < last) return SIZE_MAX;
  const ParamDef& p = op.params()[last - 1];
  const bool list =
      p.is_operand && op.operands()[static_cast<size_t>(p.index)].kind == OperandKind::kList;
  return list && !positional[last - 1].items() ? last - 1 : SIZE_MAX;
}

/// Results that flags add are dropped when the flag is off: `mask` belongs to `return_mask`.
void drop_unasked_results(const Op& op, const Attrs& attrs, Tensors& results) {
  while (results.size() > 1 && results.size() <= op.results().size()) {
    const ResultDef& last = op.results()[results.size() - 1];
    const int flag = op.attr_index(str("return_", last.name));
    if (last.variadic || flag < 0 || attrs[static_cast<size_t>(flag)].as_bool()) return;
    results.pop_back();
  }
}

/// One value, or several: a list where their number depends on the arguments.
Value to_value(const Op& op, const Attrs& attrs, Tensors results) {
  const auto defs = op.results();
  bool variadic = !defs.empty() && defs[0].variadic;
  const int as_tuple = op.attr_index("as_tuple");
  if (as_tuple >= 0) variadic = attrs[static_cast<size_t>(as_tuple)].as_bool();
  // Where a flag adds results, their number is known from the text.
  for (const AttrDef& attr : op.attrs())
    variadic = variadic && !std::string_view(attr.name).starts_with("return_");
  if (results.size() == 1 && !variadic) return results[0];
  ValueList values;
  for (Tensor& tensor : results)
    values.push_back(tensor.defined() ? Value(std::move(tensor)) : Value());
  return variadic ? Value::list(std::move(values)) : Value::tuple(std::move(values));
}

}  // namespace

const ParamDef* find_param(const Op& op, std::string_view name) {
  for (const ParamDef& p : op.params()) {
    const auto i = static_cast<size_t>(p.index);
    if (name == (p.is_operand ? op.operands()[i].name : op.attrs()[i].name)) return &p;
  }
  return nullptr;
}

Value Operations::invoke(const Op& op, const Arguments& arguments, const SourcePosition& where,
                         Tensors* all) {
  context_.step(where);
  if (const std::string error = access_error(op); !error.empty()) context_.reject(where, error);
  const auto convert = [&](const Value& value, const ParamDef* param) -> paddle::Argument {
    if (value.is_tensor()) return value.tensor();
    const bool operand = param && param->is_operand;
    if (operand && value.is_dim()) return to_tensor(value, where, op.name());
    if (value.items() && holds_tensor(value)) {
      if (param && !operand)
        if (auto sizes = sizes_of(op, op.attrs()[static_cast<size_t>(param->index)], value))
          return std::move(*sizes);
      Tensors tensors;
      for (const Value& item : *value.items()) tensors.push_back(to_tensor(item, where, op.name()));
      return tensors;
    }
    return to_attr(op, value);
  };
  std::vector<paddle::Argument> positional;
  std::vector<std::pair<std::string, paddle::Argument>> named;
  return context_.with_location_scope(where, [&] {
    return with_argument_location(arguments.places, [&] {
      const size_t star = star_position(op, arguments.positional);
      for (size_t i = 0; i < arguments.positional.size(); ++i) {
        if (i == star) {
          Tensors rest;
          for (size_t k = i; k < arguments.positional.size(); ++k) {
            rest.push_back(to_tensor(arguments.positional[k], where, op.name()));
          }
          positional.push_back(std::move(rest));
          break;
        }
        const ParamDef* param = i < op.params().size() ? &op.params()[i] : nullptr;
        positional.push_back(convert(arguments.positional[i], param));
      }
      for (const auto& [name, value] : arguments.named) {
        named.emplace_back(name, convert(value, find_param(op, name)));
      }
      const BoundCall bound = bind_call(op, std::move(positional), std::move(named));
      // The arguments may have chosen among several operations of one name.
      const Op& meant = *bound.op;
      Tensors results = paddle::call(bound);
      for (const Tensor& result : results) {
        // Rejects what 64 bits cannot count.
        if (result.defined()) element_count(std::span<const Dim>(result.shape()));
      }
      if (all) *all = results;
      size_t hidden = 0;
      for (const ResultDef& result : meant.results()) hidden += result.hidden;
      results.resize(results.size() - std::min(hidden, results.size()));
      drop_unasked_results(meant, bound.attrs, results);
      return to_value(meant, bound.attrs, std::move(results));
    });
  });
}

Value Operations::op(std::string_view name, std::vector<Value> positional,
                     const SourcePosition& where, NamedValues named) {
  const Op* found = find_op(name);
  if (!found) context_.reject(where, str("operation '", name, "' not found"));
  return invoke(*found, {std::move(positional), std::move(named), {}}, where);
}

}  // namespace paddle::lang
