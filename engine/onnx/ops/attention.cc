// Scaled dot-product attention and rotary position embedding.

#include <cmath>
#include <limits>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// [batch, steps, heads * size] to [batch, heads, steps, size].
Tensor split_heads(const NodeCall& c, const Tensor& x, int64_t heads) {
  c.check(heads > 0, "q_num_heads and kv_num_heads are needed for inputs of rank 3");
  return ops::transpose(
      ops::reshape(x, {x.dim(0), x.dim(1), Dim(heads), floor_divide(x.dim(2), heads)}),
      {0, 2, 1, 3});
}

/// Grouped-query attention: repeats key and value heads for the query heads that share them.
Tensor repeat_heads(const Tensor& x, const Dim& heads) {
  if (x.dim(1).equals(heads).value_or(false)) return x;
  const Dim each = floor_divide(heads, x.dim(1));
  const Shape wide = {x.dim(0), x.dim(1), each, x.dim(2), x.dim(3)};
  return ops::reshape(ops::expand(ops::unsqueeze(x, {2}), wide),
                      {x.dim(0), heads, x.dim(2), x.dim(3)});
}

/// Additive attention bias: the mask, causality, windows and padding.
struct Bias {
  Tensor value;    ///< undefined if nothing is added
  Tensor allowed;  ///< bool; undefined if no position is masked

  void forbid(const Tensor& keep) { allowed = allowed ? ops::logical_and(allowed, keep) : keep; }
};

Bias bias_of(const NodeCall& c, const Tensor& q, const Tensor& k) {
  Bias bias;
  const Dim queries = q.dim(2), keys = k.dim(2);
  if (c.has_input(3)) {
    Tensor mask = c.tensor(3);
    const Dim missing = keys - mask.dim(-1);
    if (!missing.equals(0).value_or(false) && !mask.dim(-1).equals(1).value_or(false)) {
      Shape more = mask.shape();
      more.back() = missing;
      const bool logical = is_bool(mask.dtype());
      const Tensor rest =
          logical ? ops::full(more, false, DType::kBool)
                  : ops::full(more, -std::numeric_limits<double>::infinity(), mask.dtype());
      mask = ops::concat({mask, rest}, -1);
    }
    if (is_bool(mask.dtype()))
      bias.forbid(mask);
    else
      bias.value = mask;
  }
  // The position of each query among the keys.
  Tensor at = ops::unsqueeze(iota(queries), {1});
  if (c.has_input(4))
    at = at + dim_value(c.tensor(4).dim(2), DType::kI64);
  else if (c.has_input(6))
    at = at + ops::reshape(ops::cast(c.tensor(6), DType::kI64) - dim_value(queries, DType::kI64),
                           {q.dim(0), 1, 1, 1});
  const Tensor key_at = ops::unsqueeze(iota(keys), {0});
  if (c.bool_attr("is_causal", false)) bias.forbid(ops::less_equal(key_at, at));
  const int64_t left = c.int_attr("left_window_size", -1),
                right = c.int_attr("right_window_size", -1);
  if (left >= 0) bias.forbid(ops::less_equal(at - key_at, int_scalar(left)));
  if (right >= 0) bias.forbid(ops::less_equal(key_at - at, int_scalar(right)));
  if (c.has_input(6))
    bias.forbid(
        ops::less_than(ops::reshape(iota(keys), {1, 1, 1, keys}),
                       ops::reshape(ops::cast(c.tensor(6), DType::kI64), {q.dim(0), 1, 1, 1})));
  return bias;
}

/// True for rows in which every key is masked.
Tensor fully_masked_rows(const Bias& bias) {
  Tensor open;
  if (bias.value) open = ops::logical_not(ops::isneginf(bias.value));
  if (bias.allowed) open = open ? ops::logical_and(open, bias.allowed) : bias.allowed;
  return ops::logical_not(ops::any(open, std::vector<int64_t>{-1}, true));
}

/// The case that has a fused kernel: no cache, mask or other options, and causal only if square.
bool has_fused_kernel(const NodeCall& c, const Tensor& q, const Tensor& k) {
  for (size_t i = 3; i < 7; ++i)
    if (c.has_input(i)) return false;
  if (c.has_output(3) || c.float_attr("softcap", 0) != 0 || c.has_attribute("softmax_precision") ||
      c.int_attr("left_window_size", -1) >= 0 || c.int_attr("right_window_size", -1) >= 0)
    return false;
  return !c.bool_attr("is_causal", false) || q.dim(2).equals(k.dim(2)).value_or(false);
}

Values attention(NodeCall& c) {
  Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2);
  const bool packed = q.ndim() == 3;
  if (packed) {
    q = split_heads(c, q, c.int_attr("q_num_heads", 0));
    k = split_heads(c, k, c.int_attr("kv_num_heads", 0));
    v = split_heads(c, v, c.int_attr("kv_num_heads", 0));
  }
  if (c.has_input(4)) {
    k = ops::concat({c.tensor(4), k}, 2);
    v = ops::concat({c.tensor(5), v}, 2);
  }
  const Tensor present_k = k, present_v = v;
  const DType dtype = q.dtype();
  const double scale = c.has_attribute("scale")
                           ? c.float_attr("scale", 1)
                           : 1 / std::sqrt(static_cast<double>(constant_dim(q, 3)));
  k = repeat_heads(k, q.dim(1));
  v = repeat_heads(v, q.dim(1));
  Tensor y, scores;
  if (has_fused_kernel(c, q, k)) {
    const auto turned = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
    y = turned(ops::attention(turned(q), turned(k), turned(v), {}, scale,
                              c.bool_attr("is_causal", false)));
  } else {
    const Bias bias = bias_of(c, q, k);
    const double root = std::sqrt(scale);
    Tensor s = ops::matmul(q * root, k * root, false, true);
    const int64_t shown = c.int_attr("qk_matmul_output_mode", 0);
    scores = s;
    if (const double cap = c.float_attr("softcap", 0); cap != 0) s = ops::tanh(s / cap) * cap;
    if (shown == 1) scores = s;
    if (bias.value) s = s + bias.value;
    if (bias.allowed)
      s = ops::where(bias.allowed, s, scalar(-std::numeric_limits<double>::infinity(), s.dtype()));
    if (shown == 2) scores = s;
    Tensor weights = ops::softmax(ops::cast(s, c.dtype_attr("softmax_precision", s.dtype())), -1);
    if (bias.value || bias.allowed)
      weights = ops::where(fully_masked_rows(bias), scalar(0, weights.dtype()), weights);
    weights = ops::cast(weights, dtype);
    if (shown == 3) scores = weights;
    y = ops::matmul(weights, v);
  }
  if (packed)
    y = ops::reshape(ops::transpose(y, {0, 2, 1, 3}), {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)});
  return {y, present_k, present_v, scores};
}

/// Rotates pairs of features by the angles of their positions; a pair is adjacent (interleaved) or
/// half the size apart.
Values rotary_embedding(NodeCall& c) {
  const Tensor& in = c.tensor(0);
  const bool packed = in.ndim() == 3;
  const int64_t heads = c.int_attr("num_heads", 0);
  c.check(!packed || heads > 0, "num_heads is needed for an input of rank 3");
  // [batch, steps, heads, size]
  const Tensor x =
      packed ? ops::reshape(in, {in.dim(0), in.dim(1), Dim(heads), floor_divide(in.dim(2), heads)})
             : ops::transpose(in, {0, 2, 1, 3});
  const int64_t size = constant_dim(x, 3);
  int64_t rotated = c.int_attr("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = size;
  const auto angles = [&](size_t i) {
    Tensor cache = c.tensor(i);
    if (c.has_input(3)) {
      const Tensor& at = c.tensor(3);
      const Tensor rows = ops::index_select(cache, ops::reshape(at, Shape{-1}), 0);
      cache = ops::reshape(rows, {at.dim(0), at.dim(1), cache.dim(1)});
    }
    return ops::unsqueeze(cache, {2});
  };
  Tensor out = ops::rotary_embedding(slice_axis(x, 3, 0, rotated), angles(1), angles(2),
                                     c.bool_attr("interleaved", false));
  if (rotated < size) out = ops::concat({out, slice_axis(x, 3, rotated, size)}, 3);
  return {packed ? ops::reshape(out, in.shape()) : ops::transpose(out, {0, 2, 1, 3})};
}

}  // namespace

OperatorTable attention_operators() {
  static constexpr Operator operators[] = {
      {"Attention", 1, attention},
      {"RotaryEmbedding", 1, rotary_embedding},
  };
  return operators;
}

}  // namespace paddle::onnx
