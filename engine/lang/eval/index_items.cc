#include "lang/eval/index_items.h"

#include <functional>

namespace paddle::lang {
Dim to_dim(const Value& value) {
  if (const auto* dim = value.get<Dim>()) return *dim;
  if (!value.is_integer())
    fail(ErrorCode::kConfig, "a tensor is indexed by integers, found ", value.describe());
  return Dim(value.integer());
}

Tensor index_tensor(const Value& value) {
  Dims shape;
  for (const Value* level = &value; level->items(); level = &(*level->items())[0]) {
    shape.push_back(static_cast<int64_t>(level->items()->size()));
    if (level->items()->empty() || shape.size() > 8) break;
  }
  std::vector<int64_t> numbers;
  bool all_bool = true;
  const std::function<void(const Value&, size_t)> collect = [&](const Value& v, size_t depth) {
    if (const ValueList* items = v.items()) {
      if (depth >= shape.size() || static_cast<int64_t>(items->size()) != shape[depth]) {
        fail(ErrorCode::kConfig, "a list used as an index must be rectangular");
      }
      for (const Value& item : *items) collect(item, depth + 1);
      return;
    }
    if (!v.is_integer() || depth != shape.size()) {
      fail(ErrorCode::kConfig, "a list used as an index holds integers, found ", v.describe());
    }
    all_bool = all_bool && v.is<bool>();
    numbers.push_back(v.integer());
  };
  collect(value, 0);
  Array array = Array::from<int64_t>(numbers, shape);
  return Tensor(all_bool && !numbers.empty() ? array.cast(DType::kBool) : array);
}

int64_t consumed_axes(const IndexItem& item) {
  if (item.kind == IndexItem::Kind::kNew) return 0;
  if (item.kind == IndexItem::Kind::kTensor && is_bool(item.tensor.dtype()))
    return item.tensor.ndim();
  return 1;
}

std::vector<IndexItem> index_items(Evaluation& ev, const Tensor& base, const Expr& expr,
                                   Frame& frame) {
  std::vector<IndexItem> before, after;
  bool ellipsis = false;
  int64_t axes = 0;
  const auto add = [&](IndexItem item) {
    axes += consumed_axes(item);
    (ellipsis ? after : before).push_back(std::move(item));
  };
  const std::function<void(const Value&)> add_value = [&](const Value& value) {
    if (value.is_none()) {
      add({IndexItem::Kind::kNew, {}, {}, {}, {}, {}});
    } else if (value.is_tensor()) {
      add({IndexItem::Kind::kTensor, {}, {}, {}, {}, value.tensor()});
    } else if (value.is<Value::Tuple>()) {
      for (const Value& item : *value.items()) add_value(item);
    } else if (value.items()) {
      add({IndexItem::Kind::kTensor, {}, {}, {}, {}, index_tensor(value)});
    } else {
      add({IndexItem::Kind::kNumber, to_dim(value), {}, {}, {}, {}});
    }
  };
  for (size_t i = 1; i < expr.children.size(); ++i) {
    const Expr& child = *expr.children[i];
    if (child.kind == ExprKind::kEllipsis) {
      if (ellipsis) ev.reject(child.where, "the index has '...' twice");
      ellipsis = true;
    } else if (child.kind == ExprKind::kSlice) {
      const auto part = [&](size_t k) {
        return child.children[k] ? ev.evaluate(*child.children[k], frame) : Value();
      };
      add({IndexItem::Kind::kSlice, {}, part(0), part(1), part(2), {}});
    } else {
      const Value value = ev.evaluate(child, frame);
      ev.with_location_scope(child.where, [&] { add_value(value); });
    }
  }
  if (axes > base.ndim()) {
    ev.reject(expr.where, str("an index of ", axes, " axes on a tensor ", base.type()));
  }
  for (int64_t i = axes; i < base.ndim(); ++i) {
    if (ellipsis) before.push_back({IndexItem::Kind::kSlice, {}, {}, {}, {}, {}});
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

}  // namespace paddle::lang
