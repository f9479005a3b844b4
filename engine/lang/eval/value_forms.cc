#include "lang/eval/value_forms.h"

#include <algorithm>

#include "lang/eval/shape_interpreter.h"

namespace paddle::lang {

TensorType merged_type(const TensorType& a, const TensorType& b) {
  TensorType out = a;
  out.dtype = a.dtype == b.dtype ? a.dtype : promote(a.dtype, b.dtype);
  if (a.shape.size() != b.shape.size()) {
    out.shape = a.shape.size() > b.shape.size() ? a.shape : b.shape;
    return out;
  }
  for (size_t i = 0; i < out.shape.size(); ++i) {
    if (!a.shape[i].same(b.shape[i])) out.shape[i] = Dim::unknown();
  }
  return out;
}

namespace {

TensorType scalar_type(const Value& value) {
  TensorType type;
  type.dtype = value.is<bool>() ? DType::kBool : value.is<double>() ? DType::kF32 : DType::kI64;
  return type;
}

bool is_same_constant(const Value& a, const Value& b) {
  if (a.is_scalar() != b.is_scalar()) return false;
  if (a.is<bool>() != b.is<bool>() || a.is<double>() != b.is<double>()) return false;
  if (a.is_dim() || b.is_dim()) {
    return a.is_dim() && b.is_dim() && a.get<Dim>()->same(*b.get<Dim>());
  }
  return same_value(a, b);
}

[[noreturn]] void different_kinds(const std::string& name, const Value& a, const Value& b,
                                  std::string_view what) {
  fail(ErrorCode::kConfig, what, ": ", name, " is ", a.describe(), " in one case and ",
       b.describe(), " in the other");
}

Value join_values(const std::string& name, const Value& a, const Value& b, std::string_view what,
                  WalkBudget& budget, int depth) {
  budget.take();
  const ValueList *left = a.items(), *right = b.items();
  if (left && right) {
    if (a.is<Value::List>() != b.is<Value::List>() || left->size() != right->size() ||
        depth > kMaxNesting) {
      different_kinds(name, a, b, what);
    }
    ValueList out;
    for (size_t i = 0; i < left->size(); ++i) {
      out.push_back(
          join_values(str(name, "[", i, "]"), (*left)[i], (*right)[i], what, budget, depth + 1));
    }
    return a.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  if (!a.is_tensor() && !b.is_tensor() && !left && !right && is_same_constant(a, b)) return a;
  const bool tensors = (a.is_tensor() || a.is_scalar()) && (b.is_tensor() || b.is_scalar());
  if (!tensors) different_kinds(name, a, b, what);
  const TensorType x = a.is_tensor() ? a.tensor().type() : scalar_type(a);
  const TensorType y = b.is_tensor() ? b.tensor().type() : scalar_type(b);
  TensorType type = merged_type(x, y);
  const bool weak_x = !a.is_tensor() || x.weak, weak_y = !b.is_tensor() || y.weak;
  if (weak_x && !weak_y) type.dtype = promote_weak(y.dtype, x.dtype);
  if (weak_y && !weak_x) type.dtype = promote_weak(x.dtype, y.dtype);
  type.weak = false;
  return abstract_tensor(type);
}

Value with_tensor_leaves(const Value& value, WalkBudget& budget, int depth) {
  budget.take();
  if (value.is_scalar()) return abstract_tensor(scalar_type(value));
  if (value.is_tensor()) {
    TensorType type = value.tensor().type();
    if (type.weak && type.dtype == DType::kF64) type.dtype = DType::kF32;
    type.weak = false;
    return abstract_tensor(type);
  }
  const ValueList* items = value.items();
  if (!items || depth > kMaxNesting) return value;
  ValueList out;
  for (const Value& item : *items) out.push_back(with_tensor_leaves(item, budget, depth + 1));
  return value.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

}  // namespace

Value join_values(const std::string& name, const Value& a, const Value& b, std::string_view what) {
  WalkBudget budget;
  return join_values(name, a, b, what, budget, 0);
}

Value with_tensor_leaves(const Value& value) {
  WalkBudget budget;
  return with_tensor_leaves(value, budget, 0);
}

bool same_types(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor()) return a.tensor().dtype() == b.tensor().dtype();
  const ValueList *left = a.items(), *right = b.items();
  if (left && right) {
    if (left->size() != right->size()) return false;
    for (size_t i = 0; i < left->size(); ++i) {
      if (!same_types((*left)[i], (*right)[i])) return false;
    }
    return true;
  }
  return !a.is_tensor() && !b.is_tensor();
}

void flatten(Evaluation& ev, const Value& form, const Value& value, const SourcePosition& where,
             Tensors& out) {
  if (form.is_tensor()) {
    const TensorType& type = form.tensor().type();
    Tensor tensor = ev.operations().to_tensor(value, where, "if");
    if (tensor.dtype() != type.dtype || tensor.type().weak) {
      tensor = ev.operations().op("cast", {tensor, Value(text(type.dtype))}, where).tensor();
    }
    const bool known = std::none_of(type.shape.begin(), type.shape.end(),
                                    [](const Dim& dim) { return dim.is_unknown(); });
    if (tensor.ndim() == 0 && !type.shape.empty() && known) {
      ValueList shape;
      for (const Dim& dim : type.shape) shape.emplace_back(dim);
      tensor =
          ev.operations().op("expand", {tensor, Value::list(std::move(shape))}, where).tensor();
    }
    out.push_back(tensor);
    return;
  }
  const ValueList *forms = form.items(), *items = value.items();
  if (!forms) return;
  if (!items || items->size() != forms->size()) {
    ev.reject(where, str("a list changes its length under a condition on a tensor"));
  }
  for (size_t i = 0; i < forms->size(); ++i) flatten(ev, (*forms)[i], (*items)[i], where, out);
}

void flatten_zeros(Evaluation& ev, const Value& form, const SourcePosition& where, Tensors& out) {
  if (form.is_tensor()) {
    const TensorType& type = form.tensor().type();
    ValueList shape;
    for (const Dim& dim : type.shape) shape.emplace_back(dim.is_unknown() ? Dim(0) : dim);
    out.push_back(ev.operations()
                      .op("full", {Value::list(std::move(shape)), Value(int64_t{0})}, where,
                          {{"dtype", Value(text(type.dtype))}})
                      .tensor());
    return;
  }
  if (const ValueList* forms = form.items()) {
    for (const Value& item : *forms) flatten_zeros(ev, item, where, out);
  }
}

Value restore(const Value& form, const Tensors& flat, size_t& next) {
  if (form.is_tensor()) return flat.at(next++).fresh_cell();
  const ValueList* forms = form.items();
  if (!forms) return form;
  ValueList out;
  for (const Value& item : *forms) out.push_back(restore(item, flat, next));
  return form.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

}  // namespace paddle::lang
