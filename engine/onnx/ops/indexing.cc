// Gather, scatter and related operators.

#include <algorithm>
#include <optional>

#include "ir/tracer.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Indices in int64; those that are known are checked. Operations count negative ones from the end.
Tensor checked_index(const Tensor& index, const Dim& size) {
  const Tensor wide = ops::cast(index, DType::kI64);
  for (int64_t i = 0; wide.is_concrete() && size.is_constant() && i < wide.array().size(); ++i) {
    const int64_t at = wide.array().integer(i);
    if (at < -size.value() || at >= size.value())
      fail(ErrorCode::kModel, "the index ", at, " is out of range for the size ", size);
  }
  return wide;
}

/// x[…, i, …] as a view, for one constant index in range.
std::optional<Tensor> single_slice(const Tensor& x, const Value& index, int64_t axis) {
  if (!index.shape().empty() || !index.is_concrete() || !x.dim(axis).is_constant())
    return std::nullopt;
  const Tensor& number = index.tensor();
  if (!number.is_concrete()) return std::nullopt;
  const int64_t size = x.dim(axis).value(), given = number.array().integer(0);
  const int64_t at = given < 0 ? given + size : given;
  if (at < 0 || at >= size) return std::nullopt;
  return ops::squeeze(ops::slice(x, {axis}, Shape{at}, Shape{at + 1}), std::vector<int64_t>{axis});
}

Values gather(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", 0), x.ndim());
  if (const auto taken = single_slice(x, c.value(1), axis)) return {*taken};
  const Tensor index = checked_index(c.tensor(1), x.dim(axis));
  const Tensor flat = ops::index_select(x, ops::reshape(index, Shape{-1}), axis);
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, index.shape().begin(), index.shape().end());
  return {ops::reshape(flat, shape)};
}

Values gather_elements(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", 0), x.ndim());
  return {ops::take_along_axis(x, checked_index(c.tensor(1), x.dim(axis)), axis, false)};
}

/// Coordinate rows in int64, each column checked as `checked_index` does.
Tensor checked_rows(const Tensor& index, const Shape& shape, int64_t from) {
  const int64_t columns = constant_dim(index, -1);
  if (from + columns > static_cast<int64_t>(shape.size()))
    fail(ErrorCode::kModel, "indices have ", columns, " coordinates for a tensor of rank ",
         shape.size());
  for (int64_t i = 0; index.is_concrete() && i < columns; ++i)
    checked_index(slice_axis(index, -1, i, i + 1), shape[static_cast<size_t>(from + i)]);
  return ops::cast(index, DType::kI64);
}

/// GatherND with empty coordinates: each index selects its whole batch element.
Tensor gather_batches(const Tensor& x, const Tensor& index, int64_t batch) {
  Shape one = x.shape(), out(index.shape().begin(), index.shape().end() - 1);
  one.insert(one.begin() + batch, static_cast<size_t>(index.ndim() - 1 - batch), Dim(1));
  out.insert(out.end(), x.shape().begin() + batch, x.shape().end());
  return ops::expand(ops::reshape(x, one), out);
}

/// Prepends the coordinates of batch axes, so that one gather serves all batches.
Values gather_nd(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t batch = c.int_attr("batch_dims", 0);
  c.check(batch >= 0 && batch < std::min(x.ndim(), c.tensor(1).ndim()), "batch_dims is ", batch);
  if (constant_dim(c.tensor(1), -1) == 0) return {gather_batches(x, c.tensor(1), batch)};
  Tensor index = checked_rows(c.tensor(1), x.shape(), batch);
  if (batch > 0) {
    Tensors columns;
    Shape one = index.shape();
    one.back() = 1;
    for (int64_t b = 0; b < batch; ++b) {
      Shape shape(one.size(), Dim(1));
      shape[static_cast<size_t>(b)] = index.dim(b);
      const Tensor batch_index = iota(index.dim(b));
      columns.push_back(ops::expand(ops::reshape(batch_index, shape), one));
    }
    columns.push_back(index);
    index = ops::concat(columns, -1);
  }
  return {ops::gather_nd(x, index)};
}

const char* reduction_word(const NodeCall& c) {
  const std::string word = c.string_attr("reduction", "none");
  if (word == "none") return "assign";
  if (word == "add") return "add";
  if (word == "mul") return "mul";
  if (word == "max") return "amax";
  if (word == "min") return "amin";
  c.reject("unknown reduction '", word, "'");
}

Values scatter_elements(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", 0), x.ndim());
  return {ops::scatter_along(x, checked_index(c.tensor(1), x.dim(axis)), c.tensor(2), axis,
                             reduction_word(c))};
}

/// An arithmetic sequence of indices along one axis.
struct IndexSequence {
  int64_t first, step;
};

/// The arithmetic sequence of indices along axis `along` of `numbers`, if they are constant over
/// the other axes, evenly spaced and in range; nullopt otherwise.
std::optional<IndexSequence> arithmetic_sequence(const Array& numbers, size_t along,
                                                 const Dim& size) {
  const int64_t count = numbers.shape[along], stride = numbers.strides[along];
  const int64_t* const at = numbers.data<int64_t>();
  const IndexSequence sequence{at[0], count > 1 ? at[stride] - at[0] : 1};
  if (sequence.first < 0 || sequence.step < 1 || !size.is_constant() ||
      sequence.first >= size.value() || sequence.step > size.value() ||
      sequence.first + (count - 1) * sequence.step >= size.value())
    return std::nullopt;
  Dims index(numbers.shape.size(), 0);
  for (int64_t i = 0; i < numbers.size(); ++i) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < index.size(); ++axis)
      offset += index[axis] * numbers.strides[axis];
    if (at[offset] != sequence.first + index[along] * sequence.step) return std::nullopt;
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < numbers.shape[axis]) break;
      index[axis] = 0;
    }
  }
  return sequence;
}

/// Coordinates along each axis, [counts…] or [counts…, 1], of coordinate rows [counts…, axes] that
/// are constant or a concatenation of constants; empty otherwise.
std::vector<Array> constant_columns(const Tensor& rows) {
  std::vector<Array> columns;
  if (rows.is_concrete()) {
    const Array& all = rows.array();
    Array column = all;
    column.shape.back() = 1;
    for (int64_t i = 0; i < all.shape.back(); ++i) {
      columns.push_back(column);
      column.offset += all.strides.back();
    }
    return columns;
  }
  const ir::Value* const value = ir::traced_value(rows);
  const ir::Operation* const join = value ? value->producer : nullptr;
  if (!join || join->op->name() != "concat") return {};
  const int64_t axis = join->attrs[0].as_int();
  if (axis != -1 && axis != rows.ndim() - 1) return {};
  for (const ir::Value* part : join->operands) {
    if (!part->constant || part->constant->shape.back() != 1) return {};
    columns.push_back(*part->constant);
  }
  return columns;
}

/// ScatterND as a strided slice assignment x[first::step, …] = values, if constant coordinate rows
/// [counts…, axes] enumerate such a slice in order, as exporters write it.
std::optional<Tensor> scatter_as_slice(const Tensor& x, const Tensor& rows, const Tensor& values) {
  if (rows.dtype() != DType::kI64 || rows.ndim() == 0 || values.ndim() != x.ndim())
    return std::nullopt;
  const std::vector<Array> columns = constant_columns(rows);
  if (columns.empty() || columns.size() + 1 != static_cast<size_t>(rows.ndim()) ||
      columns.size() > static_cast<size_t>(x.ndim()))
    return std::nullopt;
  std::vector<int64_t> which, steps;
  Shape begin, end;
  for (size_t axis = 0; axis < columns.size(); ++axis) {
    const auto number = static_cast<int64_t>(axis);
    if (columns[axis].size() == 0) return std::nullopt;
    const auto sequence = arithmetic_sequence(columns[axis], axis, x.dim(number));
    if (!sequence) return std::nullopt;
    which.push_back(number);
    steps.push_back(sequence->step);
    begin.emplace_back(sequence->first);
    end.emplace_back(sequence->first + (columns[axis].shape[axis] - 1) * sequence->step + 1);
  }
  return ops::strided_slice_scatter(x, values, which, begin, end, steps);
}

/// For reductions, the leading axes are flattened, so that a coordinate row becomes one index.
Values scatter_nd(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const std::string reduction = c.string_attr("reduction", "none");
  if (reduction == "none")
    if (const auto written = scatter_as_slice(x, c.tensor(1), c.tensor(2))) return {*written};
  const Tensor index = checked_rows(c.tensor(1), x.shape(), 0);
  const int64_t columns = constant_dim(index, -1);
  if (columns > 0 && (reduction == "none" || reduction == "add"))
    return {reduction == "add" ? ops::scatter_nd_add(x, index, c.tensor(2))
                               : ops::scatter_nd_put(x, index, c.tensor(2))};
  Dim rows = 1, rest = 1;
  Tensor flat = ops::full(Shape{}, int64_t{0}, DType::kI64);
  for (int64_t i = 0; i < columns; ++i) {
    rows = rows * x.dim(i);
    const Tensor given = ops::squeeze(slice_axis(index, -1, i, i + 1), std::vector<int64_t>{-1});
    const Tensor column = ops::where(ops::less_than(given, int_scalar(0)),
                                     given + dim_value(x.dim(i), DType::kI64), given);
    flat = flat * dim_value(x.dim(i), DType::kI64) + column;
  }
  for (int64_t i = columns; i < x.ndim(); ++i) rest = rest * x.dim(i);
  const Dim count = element_count(std::span<const Dim>(flat.shape()));
  const Tensor indices = ops::expand(ops::reshape(flat, {count, 1}), {count, rest});
  const Tensor out =
      ops::scatter_along(ops::reshape(x, {rows, rest}), indices,
                         ops::reshape(c.tensor(2), {count, rest}), 0, reduction_word(c));
  return {ops::reshape(out, x.shape())};
}

/// Writes new steps into a cache along an axis, from an index per sample on.
Values tensor_scatter(NodeCall& c) {
  const Tensor &cache = c.tensor(0), &update = c.tensor(1);
  const int64_t axis = c.axis(c.int_attr("axis", -2), cache.ndim());
  const Dim steps = update.dim(axis);
  Shape along(static_cast<size_t>(cache.ndim()), Dim(1));
  along[static_cast<size_t>(axis)] = steps;
  Tensor at = ops::reshape(iota(steps), along);
  if (c.has_input(2)) {
    Shape first(static_cast<size_t>(cache.ndim()), Dim(1));
    first[0] = cache.dim(0);
    at = at + ops::reshape(ops::cast(c.tensor(2), DType::kI64), first);
  }
  if (c.string_attr("mode", "linear") == "circular")
    at = ops::remainder(at, dim_value(cache.dim(axis), DType::kI64));
  return {ops::scatter_along(cache, ops::expand(at, update.shape()), update, axis, "assign")};
}

Values one_hot(NodeCall& c) {
  const Tensor& index = c.tensor(0);
  const double wanted = c.constant_float(1);
  c.check(wanted >= 0 && wanted < 0x1p40, "the depth is ", wanted);
  const auto depth = static_cast<int64_t>(wanted);
  const Tensor& values = c.tensor(2);
  int64_t axis = c.int_attr("axis", -1);
  if (axis < 0) axis += index.ndim() + 1;
  c.check(axis >= 0 && axis <= index.ndim(), "the axis is out of range");
  const Tensor whole = ops::cast(index, DType::kI64);
  const Tensor wrapped_index =
      ops::where(ops::less_than(whole, int_scalar(0)), whole + int_scalar(depth), whole);
  Shape shape(static_cast<size_t>(index.ndim() + 1), Dim(1));
  shape[static_cast<size_t>(axis)] = depth;
  const Tensor classes = ops::reshape(iota(depth), shape);
  const Tensor hot = ops::equal(ops::unsqueeze(wrapped_index, {axis}), classes);
  const auto value = [&](int64_t i) {
    return ops::reshape(slice_axis(values, 0, i, i + 1), Shape());
  };
  return {ops::where(hot, value(1), value(0))};
}

Values nonzero(NodeCall& c) {
  Tensor x = c.tensor(0);
  if (x.ndim() == 0) x = ops::reshape(x, Shape{1});
  return {ops::transpose(ops::nonzero_rows(x), {1, 0})};
}

/// The condition is 1-D; exporters of masks also write one of x's shape, which is flattened.
Values compress(NodeCall& c) {
  Tensor x = c.tensor(0);
  const bool flat = !c.has_attribute("axis");
  if (flat) x = ops::reshape(x, Shape{-1});
  const int64_t axis = flat ? 0 : c.axis(c.int_attr("axis", 0), x.ndim());
  const Tensor rows =
      ops::reshape(ops::nonzero_rows(ops::reshape(c.tensor(1), Shape{-1})), Shape{-1});
  return {ops::index_select(x, rows, axis)};
}

}  // namespace

OperatorTable indexing_operators() {
  static constexpr Operator operators[] = {
      {"Gather", 1, gather},
      {"GatherElements", 1, gather_elements},
      {"GatherND", 1, gather_nd},
      {"Scatter", 1, scatter_elements},
      {"ScatterElements", 1, scatter_elements},
      {"ScatterND", 1, scatter_nd},
      {"TensorScatter", 1, tensor_scatter},
      {"OneHot", 1, one_hot},
      {"NonZero", 1, nonzero},
      {"Compress", 1, compress},
  };
  return operators;
}

}  // namespace paddle::onnx
