// Arguments of calls as operands and attributes.

#include <algorithm>
#include <array>

#include "ops/core/attr_words.h"
#include "ops/core/run_time_attrs.h"

namespace paddle {

Attrs default_attrs(const Op& op) {
  Attrs attrs;
  attrs.values = op.defaults;
  return attrs;
}

AttrValue convert_attr(const AttrDef& def, const AttrValue& value, const std::string& where) {
  try {
    if (value.is_none()) {
      if (!def.optional && !(def.type == AttrType::kAny))
        fail(ErrorCode::kUsage, "none is not allowed");
      return value;
    }
    switch (def.type) {
      case AttrType::kBool:
        return value.as_bool();
      case AttrType::kInt:
        return value.as_int();
      case AttrType::kDim:
        return value.as_dim();
      case AttrType::kFloat:
        return value.as_double();
      case AttrType::kString:
        return value.as_string();
      case AttrType::kWord: {
        const std::string& word = value.as_string();
        require_word(word, def.words);
        return value;
      }
      case AttrType::kDType:
        if (value.is_string()) {
          if (const auto dtype = parse_dtype(value.as_string())) return *dtype;
          const auto names = dtype_names();
          fail(ErrorCode::kUsage, "'", value.as_string(), "' is not a dtype",
               did_you_mean(value.as_string(), names));
        }
        return value.as_dtype();
      case AttrType::kInts:
        return value.as_ints();
      case AttrType::kDims:
        return value.as_dims();
      case AttrType::kFloats:
        return value.as_doubles();
      case AttrType::kStrings:
        return value.as_strings();
      case AttrType::kNumber:
        if (value.is_bool() || value.is_int() || value.is_float() || value.is_complex())
          return value;
        fail(ErrorCode::kUsage, "expected a number, found ", value);
      case AttrType::kAny:
        return value;
    }
  } catch (const Error& e) {
    fail(ErrorCode::kUsage, where, def.name, ": ", e.message());
  }
  return value;
}

namespace {

/// The value of a tensor for an attribute: numbers, or dims of run time where it takes dims.
AttrValue value_of(const Tensor& t, const AttrDef& def, const std::string& where) {
  if (!t.is_concrete()) {
    if (takes_sizes(def)) {
      const Shape dims = dims_of(t, where);
      return t.ndim() == 0 ? AttrValue(dims[0]) : AttrValue(dims);
    }
    fail(ErrorCode::kUsage, where, kUnknownValue);
  }
  if (t.ndim() > 1 || t.array().size() > 1000000)
    fail(ErrorCode::kUsage, where, "expected a number or a list, found ", t.type());
  const Array a = t.array().on_host();
  const auto element = [&](int64_t i) {
    if (is_bool(a.dtype)) return AttrValue(a.integer(i) != 0);
    if (is_complex(a.dtype)) return AttrValue(a.complex_number(i));
    return is_float(a.dtype) ? AttrValue(a.number(i)) : AttrValue(a.integer(i));
  };
  if (a.ndim() == 0) return element(0);
  AttrValue::List items;
  for (int64_t i = 0; i < a.size(); ++i) items.push_back(element(i));
  return items;
}

Tensor number_operand(const AttrValue& v, const std::string& where) {
  if (v.is_bool()) return Tensor::boolean(v.as_bool());
  if (v.is_int() && v.as_dim().is_constant()) return Tensor::number(v.as_int());
  if (v.is_float()) return Tensor::number(v.as_double());
  if (v.is_complex()) return Tensor::number(v.as_complex());
  fail(ErrorCode::kUsage, where, "expected a tensor, found ", v);
}

}  // namespace

std::string parameter_name(const Op& op, const std::string& name) {
  const auto has = [&](const std::string& n) {
    return op.operand_index(n) >= 0 || op.attr_index(n) >= 0;
  };
  if (has(name)) return name;
  for (const auto& [synonym, declared] : generated::synonym_table())
    if (name == synonym && has(declared)) return declared;
  return name;
}

namespace {

/// Parameters of PaddlePaddle's functions that do not affect the values of results: accepted, if
/// they have no effect, by operations without a parameter of that name.
bool has_no_effect(const std::string& name, const Argument& value) {
  const auto names = generated::ignored_parameters();
  const auto* v = std::get_if<AttrValue>(&value);
  if (v && v->is_bool() && name == "inplace") return true;  // the memory plan decides
  return v && (v->is_none() || (v->is_bool() && !v->as_bool())) &&
         std::find(names.begin(), names.end(), name) != names.end();
}

/// `axis`, if given, takes a tensor for the attribute of this name whose value is not known.
Bound bind_form(const Op& op, std::vector<Argument> positional,
                std::vector<std::pair<std::string, Argument>>&& named, Tensor* axis) {
  std::vector<std::optional<Argument>> given(op.params().size());
  size_t callable = 0;  // hidden parameters come last and are not counted
  std::vector<std::string> names;
  for (const ParamDef& p : op.params()) {
    const auto i = static_cast<size_t>(p.index);
    const bool hidden = p.is_operand ? op.operands()[i].hidden : op.attrs()[i].hidden;
    names.emplace_back(p.is_operand ? op.operands()[i].name : op.attrs()[i].name);
    if (!hidden) callable = names.size();
  }
  if (positional.size() > callable)
    fail(ErrorCode::kUsage, op.name(), ": ", positional.size(), " arguments given, at most ",
         callable, " expected");
  for (size_t i = 0; i < positional.size(); ++i) given[i] = std::move(positional[i]);
  for (auto& [name, value] : named) {
    const auto it = std::find(names.begin(), names.end(), parameter_name(op, name));
    if (it == names.end() && has_no_effect(name, value)) continue;
    if (it == names.end())
      fail(ErrorCode::kUsage, op.name(), ": unknown argument '", name, "'",
           did_you_mean(name, std::span(names).subspan(0, callable)));
    auto& slot = given[static_cast<size_t>(it - names.begin())];
    if (slot) fail(ErrorCode::kUsage, op.name(), ": '", name, "' is given twice");
    slot = std::move(value);
  }

  Bound bound;
  bound.op = &op;
  bound.attrs = default_attrs(op);
  std::vector<Tensors> per_operand(op.operands().size());
  const std::string prefix = str(op.name(), ": ");
  for (size_t i = 0; i < given.size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    auto& value = given[i];
    if (!p.is_operand) {
      const AttrDef& def = op.attrs()[index];
      if (!value) {
        if (def.required) fail(ErrorCode::kUsage, prefix, "'", def.name, "' is missing");
        continue;
      }
      const std::string where = str(prefix, def.name, ": ");
      const auto* list = std::get_if<Tensors>(&*value);
      const auto* single = list && list->size() == 1 ? &(*list)[0] : std::get_if<Tensor>(&*value);
      if (axis && single && !single->is_concrete() && std::string_view(def.name) == "axis" &&
          (def.type == AttrType::kInt || def.type == AttrType::kInts)) {
        *axis = *single;
      } else if (const auto* t = std::get_if<Tensor>(&*value)) {
        AttrValue v = value_of(*t, def, where);
        const bool one = def.type == AttrType::kInt || def.type == AttrType::kFloat ||
                         def.type == AttrType::kNumber || def.type == AttrType::kBool ||
                         def.type == AttrType::kDim;
        if (one && v.is_list() && v.as_list().size() == 1) v = AttrValue(v.as_list()[0]);
        bound.attrs[index] = convert_attr(def, v, prefix);
      } else if (list) {
        AttrValue::List items;
        for (const Tensor& t : *list) items.push_back(value_of(t, def, where));
        bound.attrs[index] = convert_attr(def, items, prefix);
      } else {
        bound.attrs[index] = convert_attr(def, std::get<AttrValue>(*value), prefix);
      }
      continue;
    }
    const OperandDef& def = op.operands()[index];
    const std::string where = str(prefix, def.name, ": ");
    Tensors& slot = per_operand[index];
    if (!value ||
        (std::holds_alternative<AttrValue>(*value) && std::get<AttrValue>(*value).is_none())) {
      if (!def.optional && !def.hidden)
        fail(ErrorCode::kUsage, prefix, "'", def.name, "' is missing");
      if (def.kind == OperandKind::kTensor) slot.push_back(Tensor());
    } else if (def.kind == OperandKind::kList) {
      if (auto* ts = std::get_if<Tensors>(&*value)) {
        slot = std::move(*ts);
      } else if (auto* t = std::get_if<Tensor>(&*value)) {
        slot.push_back(std::move(*t));
      } else {
        const AttrValue& list = std::get<AttrValue>(*value);
        if (!list.is_list()) fail(ErrorCode::kUsage, where, "expected a list of tensors");
        for (const AttrValue& v : list.as_list()) slot.push_back(number_operand(v, where));
      }
    } else {
      auto* const list = std::get_if<Tensors>(&*value);
      if (auto* t = std::get_if<Tensor>(&*value))
        slot.push_back(std::move(*t));
      else if (list && are_numbers(*list))
        slot.push_back(stack_numbers(*list));
      else if (const auto* v = std::get_if<AttrValue>(&*value))
        slot.push_back(number_operand(*v, where));
      else
        fail(ErrorCode::kUsage, where, "expected one tensor, found a list");
    }
  }
  for (size_t d = 0; d < per_operand.size(); ++d) {
    if (op.operands()[d].kind == OperandKind::kList)
      bound.attrs.list_sizes.push_back(static_cast<int32_t>(per_operand[d].size()));
    for (Tensor& t : per_operand[d]) bound.operands.push_back(std::move(t));
  }
  return bound;
}

bool is_none(const Argument& value) {
  const auto* v = std::get_if<AttrValue>(&value);
  return v && v->is_none();
}

/// The place of a declared parameter that callers may give; none for other names.
std::optional<size_t> declared_place(const Op& op, const std::string& name) {
  for (size_t i = 0; i < op.params().size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    if (name == (p.is_operand ? op.operands()[index].name : op.attrs()[index].name)) return i;
  }
  return std::nullopt;
}

/// Binds most calls that are right, and does nothing for others: `bind_form` gives the same for
/// the former and says what is wrong with the latter, but eager programs bind at every call.
bool bind_at_once(const Op& op, const std::vector<Argument>& positional,
                  const std::vector<std::pair<std::string, Argument>>& named, Bound& bound) {
  constexpr size_t kMaxParameters = 24;
  std::array<const Argument*, kMaxParameters> given{};
  if (op.params().size() > kMaxParameters || op.operands().size() > kMaxParameters) return false;
  if (positional.size() > op.params().size()) return false;
  for (size_t i = 0; i < positional.size(); ++i) given[i] = &positional[i];
  for (const auto& [name, value] : named) {
    const auto place = declared_place(op, name);
    if (!place || given[*place]) return false;
    given[*place] = &value;
  }
  std::array<const Argument*, kMaxParameters> operands{};
  for (size_t i = 0; i < op.params().size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    if (p.is_operand) {
      const OperandDef& def = op.operands()[index];
      const bool absent = !given[i] || is_none(*given[i]);
      if (absent ? !(def.optional || def.hidden) : def.hidden) return false;
      operands[index] = absent ? nullptr : given[i];
    } else {
      const AttrDef& def = op.attrs()[index];
      if (given[i] ? def.hidden || !std::holds_alternative<AttrValue>(*given[i]) : def.required)
        return false;
    }
  }
  for (size_t d = 0; d < op.operands().size(); ++d) {
    const Argument* const value = operands[d];
    const bool list = op.operands()[d].kind == OperandKind::kList;
    if (value &&
        (list ? !std::holds_alternative<Tensors>(*value) : std::holds_alternative<Tensors>(*value)))
      return false;
    if (const auto* v = value ? std::get_if<AttrValue>(value) : nullptr)
      if (!(v->is_bool() || v->is_float() || (v->is_int() && v->as_dim().is_constant())))
        return false;
  }
  bound.op = &op;
  bound.attrs = default_attrs(op);
  for (size_t i = 0; i < op.params().size(); ++i) {
    const ParamDef& p = op.params()[i];
    const auto index = static_cast<size_t>(p.index);
    if (p.is_operand || !given[i]) continue;
    bound.attrs[index] =
        convert_attr(op.attrs()[index], std::get<AttrValue>(*given[i]), str(op.name(), ": "));
  }
  bound.operands.reserve(op.operands().size());
  for (size_t d = 0; d < op.operands().size(); ++d) {
    const Argument* const value = operands[d];
    if (op.operands()[d].kind == OperandKind::kList) {
      const Tensors none;
      const Tensors& list = value ? std::get<Tensors>(*value) : none;
      bound.attrs.list_sizes.push_back(static_cast<int32_t>(list.size()));
      bound.operands.insert(bound.operands.end(), list.begin(), list.end());
    } else if (!value) {
      bound.operands.emplace_back();
    } else if (const auto* t = std::get_if<Tensor>(value)) {
      bound.operands.push_back(*t);
    } else {
      bound.operands.push_back(number_operand(std::get<AttrValue>(*value), ""));
    }
  }
  return true;
}

}  // namespace

namespace {

Bound bind_any(const Op& op, std::vector<Argument> positional,
               std::vector<std::pair<std::string, Argument>> named, Tensor* axis) {
  const bool overloaded = *op.def->overloads != 0;
  try {
    if (Bound bound; bind_at_once(op, positional, named, bound)) return bound;
  } catch (const Error&) {
    if (!overloaded) throw;  // else the arguments may be those of an overload
  }
  if (!overloaded) return bind_form(op, std::move(positional), std::move(named), axis);
  std::vector<const Op*> forms = {&op};
  for (const std::string& name : split(op.def->overloads, '|')) {
    forms.push_back(&get_op(name));
    if (forms.back()->operand_index("axis") >= 0) axis = nullptr;
  }
  const auto takes = [](const Op& form, const std::string& given) {
    const std::string name = parameter_name(form, given);
    return form.operand_index(name) >= 0 || form.attr_index(name) >= 0;
  };
  const auto bind_to = [&](const Op& form) {
    // None for a parameter that another form has asks for nothing.
    auto kept = named;
    std::erase_if(kept, [&](const auto& argument) {
      return is_none(argument.second) && !takes(form, argument.first) &&
             std::any_of(forms.begin(), forms.end(),
                         [&](const Op* other) { return takes(*other, argument.first); });
    });
    return bind_form(form, positional, std::move(kept), axis);
  };
  try {
    return bind_to(op);
  } catch (const Error& first) {
    for (size_t i = 1; i < forms.size(); ++i) {
      try {
        return bind_to(*forms[i]);
      } catch (const Error&) {
        continue;  // the caller wrote the plain form's name: its error says more
      }
    }
    throw;
  }
}

}  // namespace

Bound bind_arguments(const Op& op, std::vector<Argument> positional,
                     std::vector<std::pair<std::string, Argument>> named) {
  return bind_any(op, std::move(positional), std::move(named), nullptr);
}

BoundCall bind_call(const Op& op, std::vector<Argument> positional,
                    std::vector<std::pair<std::string, Argument>> named) {
  Tensor axis;
  Bound bound = bind_any(op, std::move(positional), std::move(named), &axis);
  return {std::move(bound), std::move(axis)};
}

}  // namespace paddle
