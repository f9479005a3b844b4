// Indexing of tensors: the basic part (numbers, slices, `...`, none) is one chain of views, on
// which tensors then gather or scatter.
#include "model/tensor_index.h"

#include <functional>

namespace paddle::model {
namespace {

/// One entry of a tensor's index.
struct Item {
  enum class Kind { kNumber, kSlice, kNew, kTensor } kind;
  Dim at;                   ///< kNumber
  Value start, stop, step;  ///< kSlice
  Tensor tensor;            ///< kTensor
};

Dim to_dim(const Value& value) {
  if (const auto* dim = value.get<Dim>()) return *dim;
  if (!value.is_integer())
    fail(ErrorCode::kConfig, "a tensor is indexed by integers, found ", value.describe());
  return Dim(value.integer());
}

/// A list of (lists of) numbers as a tensor of int64, or bool if all are.
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

int64_t consumed_axes(const Item& item) {
  if (item.kind == Item::Kind::kNew) return 0;
  if (item.kind == Item::Kind::kTensor && is_bool(item.tensor.dtype())) return item.tensor.ndim();
  return 1;
}

ValueList numbers(std::initializer_list<int64_t> values) {
  ValueList out;
  for (const int64_t value : values) out.emplace_back(value);
  return out;
}

/// A tensor's index, taken apart: the basic part as one view, then the tensors.
class TensorIndex {
 public:
  TensorIndex(Evaluation& evaluation, const Tensor& base, std::vector<Item> items,
              const Where& where)
      : ev_(evaluation), items_(std::move(items)), where_(where), view_(base) {
    int64_t axis = 0;
    for (const Item& item : items_) apply(item, axis);
  }

  const Tensor& view() const { return view_; }
  bool advanced() const { return !tensors_.empty(); }

  Tensor read() {
    if (!advanced()) return view_;
    return is_mask() ? read_mask() : gather();
  }

  void write(const Value& value) {
    const Tensor raw = ev_.to_tensor(value, where_, "index assignment");
    if (!advanced()) return assign(view_, raw);
    if (is_mask()) return write_mask(raw);
    write_positions(raw);
  }

 private:
  bool is_mask() const { return is_bool(tensors_[0].dtype()); }

  void apply(const Item& item, int64_t& axis) {
    switch (item.kind) {
      case Item::Kind::kNew:
        view_ = ev_.op("unsqueeze", {view_, Value(axis)}, where_).tensor();
        ++axis;
        return;
      case Item::Kind::kNumber:
        return select(item.at, axis);
      case Item::Kind::kSlice:
        return slice(item, axis);
      case Item::Kind::kTensor:
        if (tensors_.empty()) first_axis_ = axis;
        contiguous_ = contiguous_ && axis == first_axis_ + static_cast<int64_t>(tensors_.size());
        tensors_.push_back(item.tensor);
        axis += consumed_axes(item);
    }
  }

  void select(const Dim& at, int64_t axis) {
    const Dim& size = view_.dim(axis);
    const bool negative = at.less(Dim(0)).value_or(false);
    const Dim start = negative ? at + size : at;
    if (start.less(Dim(0)).value_or(false) || !start.less(size).value_or(true)) {
      ev_.refuse(where_, str("index ", at, " is outside the axis of size ", size));
    }
    view_ = ev_.op("strided_slice",
                   {view_, Value::list(numbers({axis})), Value::list({Value(start)}),
                    Value::list({Value(start + Dim(1))}), Value::list(numbers({1}))},
                   where_)
                .tensor();
    if (view_.dim(axis).equals(Dim(1)).value_or(false)) {
      view_ = ev_.op("squeeze", {view_, Value(axis)}, where_).tensor();
      return;
    }
    // Whether the place exists is known once dims are bound; the count of elements then checks it.
    ValueList shape;
    for (int64_t i = 0; i < view_.ndim(); ++i) {
      if (i != axis) shape.emplace_back(view_.dim(i));
    }
    view_ = ev_.op("reshape", {view_, Value::list(std::move(shape))}, where_).tensor();
  }

  void slice(const Item& item, int64_t& axis) {
    if (!item.start.is_none() || !item.stop.is_none() || !item.step.is_none()) {
      const int64_t step = item.step.is_none()      ? 1
                           : item.step.is_integer() ? item.step.integer()
                                                    : 0;
      if (step == 0) ev_.refuse(where_, "the step of a slice must be a number other than 0");
      const Dim& size = view_.dim(axis);
      const Dim start = item.start.is_none() ? (step > 0 ? Dim(0) : Dim(-1)) : to_dim(item.start);
      const Dim stop =
          item.stop.is_none() ? (step > 0 ? size : Dim(0) - size - Dim(1)) : to_dim(item.stop);
      view_ = ev_.op("strided_slice",
                     {view_, Value::list(numbers({axis})), Value::list({Value(start)}),
                      Value::list({Value(stop)}), Value::list(numbers({step}))},
                     where_)
                  .tensor();
    }
    ++axis;
  }

  /// Positions along the indexed axes, flattened to one axis in front: [n, …rest].
  struct Flat {
    Tensor rows;       ///< the indexed axes first, as one
    Tensor positions;  ///< int64, the broadcast shape of the index tensors
    Shape indexed;     ///< sizes of the indexed axes
    Shape rest;
  };

  Flat flatten() {
    Flat out;
    const auto count = static_cast<int64_t>(tensors_.size());
    if (!contiguous_ && count > 1) {
      ev_.refuse(where_, "tensors in an index must stand side by side");
    }
    const Tensor moved = to_front(view_, count);
    for (int64_t i = 0; i < moved.ndim(); ++i) {
      (i < count ? out.indexed : out.rest).push_back(moved.dim(i));
    }
    Value position;
    for (int64_t i = 0; i < count; ++i) {
      if (!is_integer(tensors_[static_cast<size_t>(i)].dtype())) {
        ev_.refuse(where_, str("an index must hold integers or booleans, found ",
                               tensors_[static_cast<size_t>(i)].type()));
      }
      const Value size{out.indexed[static_cast<size_t>(i)]};
      Value wide = ev_.op("cast", {tensors_[static_cast<size_t>(i)], Value("int64")}, where_);
      // Negative positions count from the end.
      const Value below = ev_.compare("<", wide, Value(int64_t{0}), where_);
      wide = ev_.op("where", {below, ev_.binary("+", wide, size, where_), wide}, where_);
      position =
          i == 0 ? wide : ev_.binary("+", ev_.binary("*", position, size, where_), wide, where_);
    }
    out.positions = position.tensor();
    ValueList shape{Value(element_count(std::span<const Dim>(out.indexed)))};
    for (const Dim& dim : out.rest) shape.emplace_back(dim);
    out.rows = ev_.op("reshape", {moved, Value::list(std::move(shape))}, where_).tensor();
    return out;
  }

  Tensor gather() {
    const Flat flat = flatten();
    const Tensor line =
        ev_.op("reshape", {flat.positions, Value::list(numbers({-1}))}, where_).tensor();
    const Tensor rows =
        ev_.op("index_select", {flat.rows, line, Value(int64_t{0})}, where_).tensor();
    ValueList shape;
    for (const Dim& dim : flat.positions.shape()) shape.emplace_back(dim);
    for (const Dim& dim : flat.rest) shape.emplace_back(dim);
    const Tensor out = ev_.op("reshape", {rows, Value::list(std::move(shape))}, where_).tensor();
    return back_in_place(out, flat.positions.ndim());
  }

  /// The elements (or rows) where the mask is true; how many is known at run time alone.
  Tensor read_mask() {
    const Tensor& mask = tensors_[0];
    if (tensors_.size() > 1) ev_.refuse(where_, "a mask in an index stands alone");
    if (mask.ndim() == view_.ndim()) {
      return ev_.op("masked_select", {view_, mask}, where_).tensor();
    }
    const Value places = ev_.op("nonzero", {mask}, where_);
    const Tensor rows =
        ev_.op("gather_nd", {to_front(view_, mask.ndim()), places}, where_).tensor();
    return back_in_place(rows, 1);
  }

  void write_mask(const Tensor& value) {
    Tensor mask = tensors_[0];
    if (tensors_.size() > 1) ev_.refuse(where_, "a mask in an index stands alone");
    const int64_t behind = view_.ndim() - first_axis_ - mask.ndim();
    if (first_axis_ == 0 && value.ndim() > behind) {
      // One value for each true element.
      return assign(
          view_,
          ev_.op("index_put", {view_, Value::list({mask}), cast_like(value)}, where_).tensor());
    }
    for (int64_t i = 0; i < behind; ++i) {
      mask = ev_.op("unsqueeze", {mask, Value(int64_t{-1})}, where_).tensor();
    }
    assign(view_, ev_.op("where", {mask, cast_like(value), view_}, where_).tensor());
  }

  void write_positions(const Tensor& value) {
    const Flat flat = flatten();
    const int64_t fresh = flat.positions.ndim();
    // The value has the shape that reading would give; then its index axes go to the front.
    const auto count = static_cast<int64_t>(tensors_.size());
    ValueList shape;
    for (int64_t i = 0; i < first_axis_; ++i) shape.emplace_back(view_.dim(i));
    for (const Dim& dim : flat.positions.shape()) shape.emplace_back(dim);
    for (int64_t i = first_axis_ + count; i < view_.ndim(); ++i) shape.emplace_back(view_.dim(i));
    Tensor rows =
        ev_.op("expand", {cast_like(value), Value::list(std::move(shape))}, where_).tensor();
    rows = to_front(rows, fresh);
    const Tensor line =
        ev_.op("reshape", {flat.positions, Value::list(numbers({-1}))}, where_).tensor();
    ValueList flat_shape{Value(line.dim(0))};
    for (const Dim& dim : flat.rest) flat_shape.emplace_back(dim);
    rows = ev_.op("reshape", {rows, Value::list(std::move(flat_shape))}, where_).tensor();
    const Tensor written = ev_.op("scatter", {flat.rows, line, rows}, where_).tensor();
    const Tensor moved = to_front(view_, count);
    ValueList back;
    for (const Dim& dim : moved.shape()) back.emplace_back(dim);
    assign(moved, ev_.op("reshape", {written, Value::list(std::move(back))}, where_).tensor());
  }

  /// `count` axes from `first_axis_` on brought to the front, as a view.
  Tensor to_front(const Tensor& x, int64_t count) {
    if (first_axis_ == 0) return x;
    ValueList perm;
    for (int64_t i = 0; i < count; ++i) perm.emplace_back(first_axis_ + i);
    for (int64_t i = 0; i < x.ndim(); ++i) {
      if (i < first_axis_ || i >= first_axis_ + count) perm.emplace_back(i);
    }
    return ev_.op("transpose", {x, Value::list(std::move(perm))}, where_).tensor();
  }

  /// The other way: `count` axes in front go to where the indexed ones stood.
  Tensor back_in_place(const Tensor& x, int64_t count) {
    if (first_axis_ == 0) return x;
    ValueList perm;
    for (int64_t i = 0; i < first_axis_; ++i) perm.emplace_back(count + i);
    for (int64_t i = 0; i < count; ++i) perm.emplace_back(i);
    for (int64_t i = count + first_axis_; i < x.ndim(); ++i) perm.emplace_back(i);
    return ev_.op("transpose", {x, Value::list(std::move(perm))}, where_).tensor();
  }

  Tensor cast_like(const Tensor& value) {
    if (value.dtype() == view_.dtype() && !value.type().weak) return value;
    return ev_.op("cast", {value, Value(text(view_.dtype()))}, where_).tensor();
  }

  /// Writes `value`, broadcast and cast, into the cell of `target` and all that share its memory.
  void assign(const Tensor& target, const Tensor& value) {
    Tensor fitted = cast_like(value);
    if (!same_shape(fitted.shape(), target.shape())) {
      ValueList shape;
      for (const Dim& dim : target.shape()) shape.emplace_back(dim);
      fitted = ev_.op("expand", {fitted, Value::list(std::move(shape))}, where_).tensor();
    }
    ev_.placed(where_, [&] { target.assign(fitted); });
  }

  Evaluation& ev_;
  std::vector<Item> items_;
  Where where_;
  Tensor view_;
  std::vector<Tensor> tensors_;
  int64_t first_axis_ = 0;
  bool contiguous_ = true;
};

/// The entries of an index over a tensor, `...` and what is left out filled up with whole slices.
std::vector<Item> tensor_items(Evaluation& ev, const Tensor& base, const Expr& expr, Frame& frame) {
  std::vector<Item> before, after;
  bool ellipsis = false;
  int64_t axes = 0;
  const auto add = [&](Item item) {
    axes += consumed_axes(item);
    (ellipsis ? after : before).push_back(std::move(item));
  };
  const std::function<void(const Value&)> add_value = [&](const Value& value) {
    if (value.is_none()) {
      add({Item::Kind::kNew, {}, {}, {}, {}, {}});
    } else if (value.is_tensor()) {
      add({Item::Kind::kTensor, {}, {}, {}, {}, value.tensor()});
    } else if (value.is<Value::Tuple>()) {
      for (const Value& item : *value.items()) add_value(item);
    } else if (value.items()) {
      add({Item::Kind::kTensor, {}, {}, {}, {}, index_tensor(value)});
    } else {
      add({Item::Kind::kNumber, to_dim(value), {}, {}, {}, {}});
    }
  };
  for (size_t i = 1; i < expr.children.size(); ++i) {
    const Expr& child = *expr.children[i];
    if (child.kind == ExprKind::kEllipsis) {
      if (ellipsis) ev.refuse(child.where, "'...' stands twice in the index");
      ellipsis = true;
    } else if (child.kind == ExprKind::kSlice) {
      const auto part = [&](size_t k) {
        return child.children[k] ? ev.evaluate(*child.children[k], frame) : Value();
      };
      add({Item::Kind::kSlice, {}, part(0), part(1), part(2), {}});
    } else {
      const Value value = ev.evaluate(child, frame);
      ev.placed(child.where, [&] { add_value(value); });
    }
  }
  if (axes > base.ndim()) {
    ev.refuse(expr.where, str("an index of ", axes, " axes on a tensor ", base.type()));
  }
  for (int64_t i = axes; i < base.ndim(); ++i) {
    if (ellipsis) before.push_back({Item::Kind::kSlice, {}, {}, {}, {}, {}});
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

}  // namespace

Value read_index(Evaluation& evaluation, const Tensor& base, const Expr& expr, Frame& frame) {
  std::vector<Item> items = tensor_items(evaluation, base, expr, frame);
  return evaluation.placed(expr.where, [&] {
    return TensorIndex(evaluation, base, std::move(items), expr.where).read();
  });
}

void write_index(Evaluation& evaluation, const Tensor& base, const Expr& target, const Value& value,
                 Frame& frame) {
  std::vector<Item> items = tensor_items(evaluation, base, target, frame);
  evaluation.placed(target.where, [&] {
    TensorIndex(evaluation, base, std::move(items), target.where).write(value);
  });
}

}  // namespace paddle::model
