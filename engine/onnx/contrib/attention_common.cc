#include "onnx/contrib/attention_common.h"

#include <cmath>
#include <limits>

#include "onnx/ops/helpers.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

double scale_of(const Tensor& q, const ScoreOptions& s) {
  return s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(constant_dim(q, 3)));
}

/// Stands for minus infinity, so that softmax of a fully masked row is finite.
double lowest_finite(DType dtype) {
  return dtype == DType::kF16 ? -65504.0
                              : static_cast<double>(std::numeric_limits<float>::lowest());
}

}  // namespace

Tensor split_heads(const Tensor& x, int64_t heads) {
  return ops::transpose(
      ops::reshape(x, {x.dim(0), x.dim(1), Dim(heads), floor_divide(x.dim(2), heads)}),
      {0, 2, 1, 3});
}
Tensor join_heads(const Tensor& y) {
  return ops::reshape(ops::transpose(y, {0, 2, 1, 3}), {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)});
}

Tensor masked_scores(const Tensor& q, const Tensor& k, const ScoreOptions& s) {
  Tensor x = ops::matmul(q, k, false, true) * scale_of(q, s);
  if (s.softcap != 0) x = ops::tanh(x / s.softcap) * s.softcap;
  if (s.bias) x = x + s.bias;
  if (s.allowed) x = ops::where(s.allowed, x, scalar(lowest_finite(x.dtype()), x.dtype()));
  return x;
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& s) {
  if (!s.bias && !s.allowed && !s.sink && s.softcap == 0) {
    const auto swap_axes = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
    return swap_axes(ops::attention(swap_axes(q), swap_axes(k), swap_axes(v), {}, scale_of(q, s)));
  }
  const Tensor x = masked_scores(q, k, s);
  if (!s.sink) return ops::matmul(ops::softmax(x, -1), v);
  const Tensor sink = ops::expand(ops::reshape(ops::cast(s.sink, x.dtype()), {1, -1, 1, 1}),
                                  {x.dim(0), x.dim(1), x.dim(2), Dim(1)});
  return ops::matmul(slice_axis(ops::softmax(ops::concat({x, sink}, 3), -1), 3, 0, x.dim(3)), v);
}

Tensor causal(const Dim& queries, const Dim& keys, const Dim& past) {
  const Tensor position = ops::unsqueeze(iota(queries), {1});
  const Tensor at = ops::unsqueeze(iota(keys), {0});
  const Tensor before = ops::less_equal(at, position + dim_value(past, DType::kI64));
  if (keys.same(queries + past)) return before;
  return ops::logical_or(before, ops::equal(position, dim_value(queries - 1, DType::kI64)));
}

Tensor and_masks(const Tensor& a, const Tensor& b) { return a ? ops::logical_and(a, b) : b; }

}  // namespace paddle::onnx
