#include "ops/nn/channels.h"
#include "ops/core/compose.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "ops/nn/window.h"

namespace paddle::rules {

void check_rank(const char* op, const Tensor& x, int64_t rank) {
  if (x.ndim() != rank) reject(op, "x must have ", rank, " dimensions, not ", x.type());
}

bool channels_last(const std::string& format) { return format.size() > 2 && format.back() == 'C'; }

Tensor first_channels(const Tensor& x) {
  Axes perm = {0, x.ndim() - 1};
  for (int64_t i = 1; i + 1 < x.ndim(); ++i) perm.push_back(i);
  return ops::transpose(x, perm);
}

Tensor last_channels(const Tensor& x) {
  Axes perm = {0};
  for (int64_t i = 2; i < x.ndim(); ++i) perm.push_back(i);
  perm.push_back(1);
  return ops::transpose(x, perm);
}

Tensor per_channel(const Tensor& v, int64_t rank, bool last) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[last ? shape.size() - 1 : 1] = -1;
  return ops::reshape(v, shape);
}

Tensor map_axis(const Tensor& x, int64_t axis, const Tensor& matrix) {
  const Tensor weights = ops::cast(matrix, x.dtype());
  Axes perm, back(x.shape().size());
  for (int64_t i = 0; i < x.ndim(); ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const bool last = axis + 1 == x.ndim();
  const Tensor mapped = ops::matmul(last ? x : ops::transpose(x, perm), weights, false, true);
  return last ? mapped : ops::transpose(mapped, back);
}

Tensor map_axis(const Tensor& x, int64_t axis, const std::vector<double>& matrix, int64_t out,
                int64_t in) {
  return map_axis(x, axis, Tensor(Array::from(matrix, {out, in})));
}

AttrValue pair_of(int64_t a, int64_t b) { return AttrValue(std::vector<int64_t>{a, b}); }

/// Padding of a 1-D operation for its 2-D form, [0, 0, before, after].
AttrValue line_padding(const AttrValue& padding, const Tensor& x, int64_t axis, int64_t kernel,
                       int64_t stride, int64_t dilation, bool last, const char* what) {
  const auto p = window_padding(padding, {x.dim(axis)}, {kernel}, {stride}, {dilation}, last, what);
  return AttrValue(std::vector<int64_t>{0, 0, p[0], p[1]});
}

/// Transposes NDHWC to NCDHW.
Tensor to_channels_first(const Tensor& x, const std::string& format) {
  return format == "NDHWC" ? ops::transpose(x, {0, 4, 1, 2, 3}) : x;
}

Tensor from_channels_first(const Tensor& x, const std::string& format) {
  return format == "NDHWC" ? ops::transpose(x, {0, 2, 3, 4, 1}) : x;
}

Tensor volume_operand(CallContext& c, const std::string& format) {
  const Tensor& x = c.operand(0);
  if (x.ndim() != 5) reject(c.op().name(), "x must have 5 dimensions, not ", x.type());
  return to_channels_first(x, format);
}

AttrValue int_list(const Axes& numbers) { return AttrValue(numbers); }

}  // namespace paddle::rules
