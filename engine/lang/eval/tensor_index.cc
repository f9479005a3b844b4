// Indexing of tensors: the basic part (numbers, slices, `...`, none) is one chain of views, on
// which tensors then gather or scatter.
#include "lang/eval/tensor_index.h"

#include <algorithm>
#include <functional>

#include "lang/eval/index_items.h"

namespace paddle::lang {
namespace {

ValueList numbers(std::initializer_list<int64_t> values) {
  ValueList out;
  for (const int64_t value : values) out.emplace_back(value);
  return out;
}

/// A slice whose bounds are known only at run time.
bool is_tensor_slice(const IndexItem& item) {
  return item.kind == IndexItem::Kind::kSlice && (item.start.is_tensor() || item.stop.is_tensor());
}

/// A tensor's index, taken apart: the basic part as one view, then the tensors.
class TensorIndex {
 public:
  TensorIndex(Evaluation& evaluation, const Tensor& base, std::vector<IndexItem> items,
              const SourcePosition& where)
      : ev_(evaluation),
        operations_(evaluation.operations()),
        items_(std::move(items)),
        where_(where),
        base_(base),
        view_(base) {
    int64_t axis = 0;
    for (const IndexItem& item : items_) apply(item, axis);
  }

  Tensor read() {
    if (tensors_.empty()) return view_;
    return is_single_mask() ? read_mask() : gather();
  }

  void write(const Value& value) {
    const Tensor raw = operations_.to_tensor(value, where_, "index assignment");
    const bool slices = std::any_of(items_.begin(), items_.end(), is_tensor_slice);
    if (tensors_.empty() && !slices) return assign(view_, raw);
    if (slices || (!is_single_mask() && tensors_.size() > 1)) return write_places(raw);
    if (is_single_mask()) return write_mask(raw);
    write_positions(raw);
  }

 private:
  struct Advanced {
    Tensor tensor;
    int64_t axis;  ///< of `view_`, its first one for a mask
  };

  bool is_single_mask() const {
    return tensors_.size() == 1 && is_bool(tensors_[0].tensor.dtype());
  }

  void apply(const IndexItem& item, int64_t& axis) {
    switch (item.kind) {
      case IndexItem::Kind::kNew:
        view_ = operations_.op("unsqueeze", {view_, Value(axis)}, where_).tensor();
        ++axis;
        return;
      case IndexItem::Kind::kNumber:
        return select(item.at, axis);
      case IndexItem::Kind::kSlice:
        if (is_tensor_slice(item)) return select_between(item, axis);
        return slice(item, axis);
      case IndexItem::Kind::kTensor:
        check_index(item.tensor, axis);
        tensors_.push_back({item.tensor, axis});
        axis += consumed_axes(item);
    }
  }

  /// Rejects what can be seen to be wrong before anything runs.
  void check_index(const Tensor& index, int64_t axis) {
    if (is_bool(index.dtype())) {
      for (int64_t i = 0; i < index.ndim(); ++i) {
        if (index.dim(i).equals(view_.dim(axis + i)).value_or(true)) continue;
        ev_.reject(where_, str("a mask ", index.type(), " on axes of another size: the tensor is ",
                               base_.type()));
      }
      return;
    }
    if (!is_integer(index.dtype())) {
      ev_.reject(where_,
                 str("an index must hold integers or booleans, found a tensor ", index.type()));
    }
    const auto size = view_.dim(axis).constant();
    if (!size || !index.is_concrete()) return;
    const Array numbers = index.array().on_host();
    for (int64_t i = 0; i < numbers.size(); ++i) {
      const int64_t at = numbers.integer(i);
      if (at < -*size || at >= *size)
        ev_.reject(where_, str("index ", at, " is outside the axis of size ", *size));
    }
  }

  void select(const Dim& at, int64_t axis) {
    const Dim& size = view_.dim(axis);
    const bool negative = at.less(Dim(0)).value_or(false);
    const Dim start = negative ? at + size : at;
    if (start.less(Dim(0)).value_or(false) || !start.less(size).value_or(true)) {
      ev_.reject(where_, str("index ", at, " is outside the axis of size ", size));
    }
    view_ = operations_
                .op("strided_slice",
                    {view_, Value::list(numbers({axis})), Value::list({Value(start)}),
                     Value::list({Value(start + Dim(1))}), Value::list(numbers({1}))},
                    where_)
                .tensor();
    if (view_.dim(axis).equals(Dim(1)).value_or(false)) {
      view_ = operations_.op("squeeze", {view_, Value(axis)}, where_).tensor();
      return;
    }
    // Whether the place exists is known once dims are bound; the count of elements then checks it.
    ValueList shape;
    for (int64_t i = 0; i < view_.ndim(); ++i) {
      if (i != axis) shape.emplace_back(view_.dim(i));
    }
    view_ = operations_.op("reshape", {view_, Value::list(std::move(shape))}, where_).tensor();
  }

  void slice(const IndexItem& item, int64_t& axis) {
    if (!item.start.is_none() || !item.stop.is_none() || !item.step.is_none()) {
      const int64_t step = item.step.is_none()      ? 1
                           : item.step.is_integer() ? item.step.integer()
                                                    : 0;
      if (step == 0) ev_.reject(where_, "the step of a slice must be a number other than 0");
      const Dim& size = view_.dim(axis);
      const Dim start = item.start.is_none() ? (step > 0 ? Dim(0) : Dim(-1)) : to_dim(item.start);
      const Dim stop =
          item.stop.is_none() ? (step > 0 ? size : Dim(0) - size - Dim(1)) : to_dim(item.stop);
      view_ = operations_
                  .op("strided_slice",
                      {view_, Value::list(numbers({axis})), Value::list({Value(start)}),
                       Value::list({Value(stop)}), Value::list(numbers({step}))},
                      where_)
                  .tensor();
    }
    ++axis;
  }

  /// A slice whose bounds are tensors: how many elements it has is known at run time only.
  void select_between(const IndexItem& item, int64_t& axis) {
    if (!item.step.is_none() && !(item.step.is_integer() && item.step.integer() > 0)) {
      ev_.reject(where_, "the step of a slice between tensors must be a number above 0");
    }
    const Value size{view_.dim(axis)};
    const Value positions = operations_.op("arange", {size}, where_, {{"dtype", Value("int64")}});
    const auto bound = [&](const Value& value) -> Value {
      if (!value.is_tensor()) return value;
      const Tensor& tensor = value.tensor();
      if (!is_integer(tensor.dtype()) ||
          !element_count(std::span<const Dim>(tensor.shape())).equals(Dim(1)).value_or(false)) {
        ev_.reject(where_, str("a slice takes integers, found a tensor ", tensor.type()));
      }
      Value number = operations_.op("cast", {tensor, Value("int64")}, where_);
      if (tensor.ndim() > 0) number = operations_.op("reshape", {number, Value::list({})}, where_);
      return from_end(number, size);
    };
    const auto edge = [&](const Value& value) {
      if (!value.is_integer() || value.integer() >= 0) return bound(value);
      return operations_.binary("+", size, value, where_);
    };
    const Value start = item.start.is_none() ? Value(int64_t{0}) : edge(item.start);
    Value inside = operations_.compare(">=", positions, start, where_);
    if (!item.stop.is_none()) {
      const Value below = operations_.compare("<", positions, edge(item.stop), where_);
      inside = operations_.op("logical_and", {inside, below}, where_);
    }
    if (item.step.is_integer() && item.step.integer() > 1) {
      // Steps count from the first element that is there.
      const Value first =
          start.is_tensor() ? operations_.op("maximum", {start, Value(int64_t{0})}, where_) : start;
      const Value left = operations_.binary("%", operations_.binary("-", positions, first, where_),
                                            item.step, where_);
      inside = operations_.op("logical_and",
                              {inside, operations_.compare("==", left, Value(int64_t{0}), where_)},
                              where_);
    }
    const Value places = operations_.op(
        "reshape", {operations_.op("nonzero", {inside}, where_), Value::list(numbers({-1}))},
        where_);
    view_ = operations_.op("index_select", {view_, places, Value(axis)}, where_).tensor();
    ++axis;
  }

  /// Negative positions count from the end.
  Value from_end(const Value& position, const Value& size) {
    const Value below = operations_.compare("<", position, Value(int64_t{0}), where_);
    return operations_.op(
        "where", {below, operations_.binary("+", position, size, where_), position}, where_);
  }

  /// Integer tensors only, one axis each: a mask stands for the columns of its coordinates.
  std::vector<Advanced> integer_tensors() {
    std::vector<Advanced> out;
    for (const Advanced& entry : tensors_) {
      if (!is_bool(entry.tensor.dtype())) {
        out.push_back(entry);
        continue;
      }
      const Tensor places = operations_.op("nonzero", {entry.tensor}, where_).tensor();
      for (int64_t i = 0; i < entry.tensor.ndim(); ++i) {
        const Tensor column =
            operations_
                .op("index_select",
                    {places, Value(index_tensor(Value::list(numbers({i})))), Value(int64_t{1})},
                    where_)
                .tensor();
        out.push_back(
            {operations_.op("reshape", {column, Value::list(numbers({-1}))}, where_).tensor(),
             entry.axis + i});
      }
    }
    return out;
  }

  /// As PyTorch: the axes of the index tensors stand where those were if they stood side by side,
  /// and in front if they did not; a 0-D tensor takes its axis away like a number.
  Tensor gather() {
    const std::vector<Advanced> entries = integer_tensors();
    std::vector<int64_t> indexed;
    int64_t removed = 0, first = -1, last = -1;
    bool side_by_side = true;
    for (const Advanced& entry : entries) {
      indexed.push_back(entry.axis);
      if (entry.tensor.ndim() == 0) {
        ++removed;
        continue;
      }
      const int64_t at = entry.axis - removed;
      if (first < 0) first = at;
      side_by_side = side_by_side && (last < 0 || at == last + 1);
      last = at;
    }
    ValueList perm;
    for (const int64_t axis : indexed) perm.emplace_back(axis);
    for (int64_t axis = 0; axis < view_.ndim(); ++axis) {
      if (std::find(indexed.begin(), indexed.end(), axis) == indexed.end()) perm.emplace_back(axis);
    }
    const Tensor moved =
        operations_.op("transpose", {view_, Value::list(std::move(perm))}, where_).tensor();
    ValueList columns;
    for (size_t i = 0; i < entries.size(); ++i) {
      const Value wide = operations_.op("cast", {entries[i].tensor, Value("int64")}, where_);
      columns.push_back(from_end(wide, Value(moved.dim(static_cast<int64_t>(i)))));
    }
    if (columns.size() > 1) {
      const Value common = operations_.op("broadcast_tensors", {Value::list(columns)}, where_);
      columns = *common.items();
    }
    const int64_t fresh = columns[0].tensor().ndim();
    const Value index =
        operations_.op("stack", {Value::list(std::move(columns)), Value(int64_t{-1})}, where_);
    const Tensor out = operations_.op("gather_nd", {moved, index}, where_).tensor();
    if (!side_by_side || first <= 0 || fresh == 0) return out;
    // The new axes go from the front to where the first of the indexed ones was.
    ValueList back;
    for (int64_t i = 0; i < first; ++i) back.emplace_back(fresh + i);
    for (int64_t i = 0; i < fresh; ++i) back.emplace_back(i);
    for (int64_t i = fresh + first; i < out.ndim(); ++i) back.emplace_back(i);
    return operations_.op("transpose", {out, Value::list(std::move(back))}, where_).tensor();
  }

  /// The elements (or rows) where the mask is true; how many is known at run time only.
  Tensor read_mask() {
    const Tensor& mask = tensors_[0].tensor;
    if (mask.ndim() == view_.ndim() && mask.ndim() > 0)
      return operations_.op("masked_select", {view_, mask}, where_).tensor();
    const int64_t axis = tensors_[0].axis;
    if (mask.ndim() == 0) return read_flag(mask, axis);
    const Value places = operations_.op("nonzero", {mask}, where_);
    const Tensor rows =
        operations_.op("gather_nd", {to_front(view_, axis, mask.ndim()), places}, where_).tensor();
    return back_in_place(rows, axis);
  }

  /// As NumPy: a further axis, of size 1 if the flag is true, else 0.
  Tensor read_flag(const Tensor& flag, int64_t axis) {
    const Value line = operations_.op("reshape", {flag, Value::list(numbers({1}))}, where_);
    const Value places = operations_.op(
        "reshape", {operations_.op("nonzero", {line}, where_), Value::list(numbers({-1}))}, where_);
    const Value one = operations_.op("unsqueeze", {view_, Value(axis)}, where_);
    return operations_.op("index_select", {one, places, Value(axis)}, where_).tensor();
  }

  void write_mask(const Tensor& value) {
    Tensor mask = tensors_[0].tensor;
    const int64_t axis = tensors_[0].axis;
    const int64_t behind = view_.ndim() - axis - mask.ndim();
    if (value.ndim() > behind) {
      if (axis > 0) return write_places(value);
      // One value for each true element.
      return assign(
          view_, operations_.op("index_put", {view_, Value::list({mask}), cast_like(value)}, where_)
                     .tensor());
    }
    for (int64_t i = 0; i < behind; ++i) {
      mask = operations_.op("unsqueeze", {mask, Value(int64_t{-1})}, where_).tensor();
    }
    assign(view_, operations_.op("where", {mask, cast_like(value), view_}, where_).tensor());
  }

  /// One index tensor of integers.
  void write_positions(const Tensor& value) {
    const auto& [index, axis] = tensors_[0];
    const Value wide = operations_.op("cast", {index, Value("int64")}, where_);
    const Tensor positions = from_end(wide, Value(view_.dim(axis))).tensor();
    // The value has the shape that reading would give; then its index axes go to the front.
    ValueList shape;
    for (int64_t i = 0; i < axis; ++i) shape.emplace_back(view_.dim(i));
    for (const Dim& dim : positions.shape()) shape.emplace_back(dim);
    for (int64_t i = axis + 1; i < view_.ndim(); ++i) shape.emplace_back(view_.dim(i));
    Tensor rows =
        operations_.op("expand", {cast_like(value), Value::list(std::move(shape))}, where_)
            .tensor();
    rows = to_front(rows, axis, positions.ndim());
    const Tensor line =
        operations_.op("reshape", {positions, Value::list(numbers({-1}))}, where_).tensor();
    const Tensor moved = to_front(view_, axis, 1);
    ValueList flat_shape{Value(line.dim(0))};
    for (int64_t i = 1; i < moved.ndim(); ++i) flat_shape.emplace_back(moved.dim(i));
    rows = operations_.op("reshape", {rows, Value::list(std::move(flat_shape))}, where_).tensor();
    assign(moved, operations_.op("scatter", {moved, line, rows}, where_).tensor());
  }

  /// Writes at the places that reading the same index finds in a tensor of places.
  void write_places(const Tensor& value) {
    const Dim count = element_count(std::span<const Dim>(base_.shape()));
    ValueList shape;
    for (const Dim& dim : base_.shape()) shape.emplace_back(dim);
    const Value line =
        operations_.op("arange", {Value(count)}, where_, {{"dtype", Value("int64")}});
    const Tensor all = operations_.op("reshape", {line, Value::list(shape)}, where_).tensor();
    const Tensor places = TensorIndex(ev_, all, items_, where_).read();
    ValueList read_shape;
    for (const Dim& dim : places.shape()) read_shape.emplace_back(dim);
    const Value values =
        operations_.op("expand", {cast_like(value), Value::list(std::move(read_shape))}, where_);
    const Value flat_shape = Value::list(numbers({-1}));
    const Value written = operations_.op("scatter",
                                         {operations_.op("reshape", {base_, flat_shape}, where_),
                                          operations_.op("reshape", {places, flat_shape}, where_),
                                          operations_.op("reshape", {values, flat_shape}, where_)},
                                         where_);
    assign(base_,
           operations_.op("reshape", {written, Value::list(std::move(shape))}, where_).tensor());
  }

  /// `count` axes from `first` on brought to the front, as a view.
  Tensor to_front(const Tensor& x, int64_t first, int64_t count) {
    if (first == 0) return x;
    ValueList perm;
    for (int64_t i = 0; i < count; ++i) perm.emplace_back(first + i);
    for (int64_t i = 0; i < x.ndim(); ++i) {
      if (i < first || i >= first + count) perm.emplace_back(i);
    }
    return operations_.op("transpose", {x, Value::list(std::move(perm))}, where_).tensor();
  }

  /// The other way: the first axis goes to place `first`.
  Tensor back_in_place(const Tensor& x, int64_t first) {
    if (first == 0) return x;
    ValueList perm;
    for (int64_t i = 0; i < first; ++i) perm.emplace_back(i + 1);
    perm.emplace_back(int64_t{0});
    for (int64_t i = first + 1; i < x.ndim(); ++i) perm.emplace_back(i);
    return operations_.op("transpose", {x, Value::list(std::move(perm))}, where_).tensor();
  }

  Tensor cast_like(const Tensor& value) {
    if (value.dtype() == view_.dtype() && !value.type().weak) return value;
    return operations_.op("cast", {value, Value(text(view_.dtype()))}, where_).tensor();
  }

  /// Writes `value`, broadcast and cast, into the cell of `target` and all that share its memory.
  void assign(const Tensor& target, const Tensor& value) {
    Tensor fitted = cast_like(value);
    if (!same_shape(fitted.shape(), target.shape())) {
      ValueList shape;
      for (const Dim& dim : target.shape()) shape.emplace_back(dim);
      fitted = operations_.op("expand", {fitted, Value::list(shape)}, where_).tensor();
      // Sizes that are equal only once dims are bound.
      if (!same_shape(fitted.shape(), target.shape()))
        fitted =
            operations_.op("reshape", {fitted, Value::list(std::move(shape))}, where_).tensor();
    }
    ev_.with_location_scope(where_, [&] { target.assign(fitted); });
  }

  Evaluation& ev_;
  Operations& operations_;
  std::vector<IndexItem> items_;
  SourcePosition where_;
  Tensor base_, view_;
  std::vector<Advanced> tensors_;
};

}  // namespace

Value read_index(Evaluation& evaluation, const Tensor& base, const Expr& expr, Frame& frame) {
  std::vector<IndexItem> items = index_items(evaluation, base, expr, frame);
  return evaluation.with_location_scope(expr.where, [&] {
    return TensorIndex(evaluation, base, std::move(items), expr.where).read();
  });
}

void write_index(Evaluation& evaluation, const Tensor& base, const Expr& target, const Value& value,
                 Frame& frame) {
  std::vector<IndexItem> items = index_items(evaluation, base, target, frame);
  evaluation.with_location_scope(target.where, [&] {
    TensorIndex(evaluation, base, std::move(items), target.where).write(value);
  });
}

}  // namespace paddle::lang
