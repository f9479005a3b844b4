// Rules of pool.yaml: adaptive pooling.

#include <algorithm>
#include <limits>

#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/nn_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/nn/channels.h"

namespace paddle::rules {
namespace {

/// Sizes of an adaptive result; none keeps an axis.
Shape output_sizes(const char* op, const AttrValue& value, const Tensor& x, int64_t first,
                   size_t n) {
  Shape out;
  if (value.is_list() && value.as_list().size() != n && value.as_list().size() != 1)
    reject(op, "output_size must be a number or ", n, ", not ", value);
  for (size_t i = 0; i < n; ++i) {
    const AttrValue& each =
        value.is_list() ? value.as_list().at(value.as_list().size() == n ? i : 0) : value;
    const Dim kept = x.dim(first + static_cast<int64_t>(i));
    const Dim size = each.is_none() ? kept : Dim(each.as_int());
    if (size.less(1).value_or(false)) reject(op, "output_size must be positive, not ", size);
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    if (Dim(kMax).less(size).value_or(false))
      reject(op, "output_size must be ", kMax, " at most, not ", size);
    out.push_back(size);
  }
  return out;
}

/// Whether the n axes from `first` on have sizes that are known only at run time.
bool has_symbolic_axis(const Tensor& x, int64_t first, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (!x.dim(first + static_cast<int64_t>(i)).is_constant()) return true;
  return false;
}

/// Window i of `count` windows that divide an axis.
std::pair<Dim, Dim> adaptive_window(const Dim& size, int64_t i, int64_t count) {
  return {floor_divide(size * i, count), ceil_divide(size * (i + 1), count)};
}

/// The number of windows of an axis, which a decomposition writes out one by one.
int64_t window_total(const char* op, const Dim& out) {
  if (!out.is_constant()) reject(op, "output_size ", out, " must be known");
  if (out.value() > 4096) reject(op, "an axis has at most 4096 windows, not ", out);
  return out.value();
}

/// Means of windows, for sizes that are known only at run time.
Tensor symbolic_mean(const char* op, Tensor x, const Shape& out, int64_t first) {
  Axes whole;  // axes that one window covers
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i].same(1)) whole.push_back(first + static_cast<int64_t>(i));
  if (!whole.empty()) x = ops::mean(x, whole, true);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t axis = first + static_cast<int64_t>(i);
    const Dim size = x.dim(axis);
    if (size.same(out[i])) continue;
    const int64_t count = window_total(op, out[i]);
    Tensors means;
    for (int64_t k = 0; k < count; ++k) {
      const auto [begin, end] = adaptive_window(size, k, count);
      means.push_back(ops::mean(slice_axis(x, axis, begin, end), Axes{axis}, true));
    }
    x = ops::concat(means, axis);
  }
  return x;
}

constexpr int64_t kMaxWeights = int64_t{1} << 26;  // of the matrix that pools an axis

Tensor adaptive_mean(const char* op, Tensor x, const AttrValue& size, int64_t first, size_t n) {
  const Shape sizes = output_sizes(op, size, x, first, n);
  if (has_symbolic_axis(x, first, n)) return symbolic_mean(op, x, sizes, first);
  const Dims out = concrete(sizes);
  if (n == 2) {
    const int64_t rows = x.dim(first).value(), columns = x.dim(first + 1).value();
    if (is_float(x.dtype()) && rows > 0 && columns > 0 && rows % out[0] == 0 &&
        columns % out[1] == 0)
      return ops::avg_pool2d(x, pair_of(rows / out[0], columns / out[1]), {}, 0, false, true, {},
                             first == 1 ? "NHWC" : "NCHW");
  }
  for (size_t i = 0; i < n; ++i) {
    const int64_t axis = first + static_cast<int64_t>(i), in = x.dim(axis).value();
    if (out[i] > kMaxWeights / std::max<int64_t>(in, 1))
      reject(op, "output_size ", out[i], " is too large for an axis of ", in, " elements");
    std::vector<double> matrix(static_cast<size_t>(out[i] * in), 0.0);
    for (int64_t o = 0; o < out[i]; ++o) {
      const int64_t begin = o * in / out[i], end = ((o + 1) * in + out[i] - 1) / out[i];
      for (int64_t k = begin; k < end; ++k)
        matrix[static_cast<size_t>(o * in + k)] = 1.0 / static_cast<double>(end - begin);
    }
    x = map_axis(x, axis, matrix, out[i], in);
  }
  return x;
}

/// Maxima of windows along one axis, and their indices in the axis.
Tensors axis_maxima(const char* op, const Tensor& x, int64_t axis, const Dim& out) {
  const Dim size = x.dim(axis);
  if (size.same(out)) {
    Shape along(x.shape().size(), Dim(1));
    along[static_cast<size_t>(axis)] = size;
    const Tensor index = ops::arange(AttrValue(0), AttrValue(size), AttrValue(1), DType::kI64);
    return {x, ops::expand(ops::reshape(index, along), x.shape())};
  }
  const int64_t count = window_total(op, out);
  Tensors values, indices;
  for (int64_t k = 0; k < count; ++k) {
    const auto [begin, end] = adaptive_window(size, k, count);
    const Tensor window = slice_axis(x, axis, begin, end);
    const Tensor at = ops::argmax(window, axis, true);
    values.push_back(ops::gather_along(window, at, axis));
    indices.push_back(at + dim_value(begin, DType::kI64));
  }
  return {ops::concat(values, axis), ops::concat(indices, axis)};
}

/// Adaptive max pooling for sizes that are known only at run time: along the rows, then across.
/// The first of equal maxima counts, as in max_pool2d.
Tensors symbolic_max(const char* op, const Tensor& x, const Shape& out) {
  const Tensors in_rows = axis_maxima(op, x, 3, out[1]);
  const Tensors in_columns = axis_maxima(op, in_rows[0], 2, out[0]);
  const Tensor& row = in_columns[1];
  const Tensor column = ops::gather_along(in_rows[1], row, 2);
  const Tensor index = row * dim_value(x.dim(3), DType::kI64) + column;
  return {in_columns[0], ops::cast(index, DType::kI32)};
}

/// Adaptive max pooling of [n, c, rows, columns], with the indices of the maxima in the plane.
Tensors adaptive_max(const char* op, const Tensor& x, const Shape& sizes) {
  if (has_symbolic_axis(x, 2, 2)) return symbolic_max(op, x, sizes);
  const Dims out = concrete(sizes);
  const int64_t rows = x.dim(2).value(), columns = x.dim(3).value();
  if (rows % out[0] == 0 && columns % out[1] == 0)
    return ops::max_pool2d(x, pair_of(rows / out[0], columns / out[1]));
  if (out[0] * out[1] > 4096) reject(op, "at most 4096 uneven windows are supported");
  Tensors values, places;
  for (int64_t i = 0; i < out[0]; ++i)
    for (int64_t j = 0; j < out[1]; ++j) {
      const int64_t top = i * rows / out[0], bottom = ((i + 1) * rows + out[0] - 1) / out[0];
      const int64_t left = j * columns / out[1], right = ((j + 1) * columns + out[1] - 1) / out[1];
      const Tensor window = slice_axis(slice_axis(x, 2, top, bottom), 3, left, right);
      const Tensor flat =
          ops::reshape(window, {x.dim(0), x.dim(1), Dim((bottom - top) * (right - left))});
      const Tensor at = ops::argmax(flat, 2, true);
      values.push_back(ops::gather_along(flat, at, 2));
      const Tensor width = Tensor::number(right - left);
      const Tensor row = ops::floor_divide(at, width) + Tensor::number(top);
      const Tensor column = ops::remainder(at, width) + Tensor::number(left);
      places.push_back(ops::cast(row * Tensor::number(columns) + column, DType::kI32));
    }
  const Shape shape = {x.dim(0), x.dim(1), Dim(out[0]), Dim(out[1])};
  return {ops::reshape(ops::concat(values, 2), shape), ops::reshape(ops::concat(places, 2), shape)};
}

}  // namespace

Tensors decompose_adaptive_avg_pool1d(CallContext& c) {
  check_rank("adaptive_avg_pool1d", c.operand(0), 3);
  return {adaptive_mean("adaptive_avg_pool1d", c.operand(0),
                        c.attrs_as<AdaptiveAvgPool1dAttrs>().output_size, 2, 1)};
}

Tensors decompose_adaptive_avg_pool2d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveAvgPool2dAttrs>();
  check_rank("adaptive_avg_pool2d", c.operand(0), 4);
  return {adaptive_mean("adaptive_avg_pool2d", c.operand(0), a.output_size,
                        a.data_format == "NHWC" ? 1 : 2, 2)};
}

Tensors decompose_adaptive_max_pool1d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveMaxPool1dAttrs>();
  check_rank("adaptive_max_pool1d", c.operand(0), 3);
  const auto size = output_sizes("adaptive_max_pool1d", a.output_size, c.operand(0), 2, 1);
  const Tensors pooled =
      adaptive_max("adaptive_max_pool1d", ops::unsqueeze(c.operand(0), {2}), {Dim(1), size[0]});
  Tensors out = {ops::squeeze(pooled[0], Axes{2})};
  if (a.return_mask) out.push_back(ops::squeeze(pooled[1], Axes{2}));
  return out;
}

Tensors decompose_adaptive_max_pool2d(CallContext& c) {
  const auto a = c.attrs_as<AdaptiveMaxPool2dAttrs>();
  check_rank("adaptive_max_pool2d", c.operand(0), 4);
  Tensors out =
      adaptive_max("adaptive_max_pool2d", c.operand(0),
                   output_sizes("adaptive_max_pool2d", a.output_size, c.operand(0), 2, 2));
  if (!a.return_mask) out.resize(1);
  return out;
}

}  // namespace paddle::rules
