// Rules of pool.yaml: adaptive pooling.

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
std::vector<int64_t> output_sizes(const char* op, const AttrValue& value, const Tensor& x,
                                  int64_t first, size_t n) {
  std::vector<int64_t> out;
  if (value.is_list() && value.as_list().size() != n && value.as_list().size() != 1)
    refuse(op, "output_size must be a number or ", n, ", not ", value);
  for (size_t i = 0; i < n; ++i) {
    const AttrValue& each =
        value.is_list() ? value.as_list().at(value.as_list().size() == n ? i : 0) : value;
    const int64_t size =
        each.is_none() ? x.dim(first + static_cast<int64_t>(i)).value() : each.as_int();
    if (size < 1) refuse(op, "output_size must be positive, not ", size);
    out.push_back(size);
  }
  return out;
}

Tensor adaptive_mean(const char* op, Tensor x, const AttrValue& size, int64_t first, size_t n) {
  const auto out = output_sizes(op, size, x, first, n);
  if (n == 2) {
    const int64_t rows = x.dim(first).value(), columns = x.dim(first + 1).value();
    if (is_float(x.dtype()) && rows > 0 && columns > 0 && rows % out[0] == 0 &&
        columns % out[1] == 0)
      return ops::avg_pool2d(x, pair_of(rows / out[0], columns / out[1]), {}, 0, false, true, {},
                             first == 1 ? "NHWC" : "NCHW");
  }
  for (size_t i = 0; i < n; ++i) {
    const int64_t axis = first + static_cast<int64_t>(i), in = x.dim(axis).value();
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

/// Adaptive max pooling of [n, c, rows, columns] with the indices of the maxima.
Tensors adaptive_max(const char* op, const Tensor& x, const std::vector<int64_t>& out) {
  const int64_t rows = x.dim(2).value(), columns = x.dim(3).value();
  if (rows % out[0] == 0 && columns % out[1] == 0)
    return ops::max_pool2d(x, pair_of(rows / out[0], columns / out[1]));
  if (out[0] * out[1] > 4096) refuse(op, "uneven windows are offered for at most 4096 of them");
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
      adaptive_max("adaptive_max_pool1d", ops::unsqueeze(c.operand(0), {2}), {1, size[0]});
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
