// Rules of attention.yaml.

#include "ops/sequence/attention.h"

#include <cmath>
#include <limits>
#include <utility>

#include "ops/core/compose.h"
#include "ops/core/cost.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/sequence_rules.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

const std::vector<int64_t> kHeadsFirst = {0, 2, 1, 3};

/// Scores [batch, heads, queries, keys] with -inf where mask or causal limit exclude a key.
Tensor masked(Tensor scores, const Tensor& mask, bool is_causal) {
  const Tensor excluded = Tensor::number(-std::numeric_limits<double>::infinity());
  if (mask.defined())
    scores = is_bool(mask.dtype()) ? ops::where(mask, scores, excluded) : scores + mask;
  if (is_causal) {
    const auto places = [&](const Dim& count) {
      return ops::cumsum(full_of({count}, 1, DType::kI64), 0);
    };
    const Tensor row = ops::unsqueeze(places(scores.dim(-2)), {1});
    const Tensor column = ops::unsqueeze(places(scores.dim(-1)), {0});
    scores = ops::where(ops::greater_equal(row, column), scores, excluded);
  }
  return scores;
}

/// Gradients for query, key, value and the scores, from the formula.
struct Parts {
  Tensor query, key, value, scores;
};

/// Shares of the keys [batch, heads, queries, keys]; q and k have heads first.
Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask, double scale,
                         bool is_causal) {
  return ops::softmax(masked(ops::matmul(q, k, false, true) * scale, mask, is_causal), -1);
}

Parts written_out(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                  const Tensor& mask, double scale, bool is_causal) {
  const Tensor q = ops::transpose(query, kHeadsFirst), k = ops::transpose(key, kHeadsFirst),
               v = ops::transpose(value, kHeadsFirst), g = ops::transpose(grad, kHeadsFirst);
  const Tensor weights = attention_weights(q, k, mask, scale, is_causal);
  const Tensor dweights = ops::matmul(g, v, false, true);
  const Tensor mixed = weights * dweights;
  Parts out;
  out.scores = mixed - weights * ops::sum(mixed, std::vector<int64_t>{-1}, {}, true);
  out.value = ops::transpose(ops::matmul(weights, g, true, false), kHeadsFirst);
  out.query = ops::transpose(ops::matmul(out.scores, k) * scale, kHeadsFirst);
  out.key = ops::transpose(ops::matmul(out.scores, q, true, false) * scale, kHeadsFirst);
  return out;
}

}  // namespace

void infer_attention(InferContext& c) {
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  c.check(q.size() == 4 && k.size() == 4 && v.size() == 4,
          "operands must be [batch, sequence, heads, dim], not ", c.type(0), ", ", c.type(1), ", ",
          c.type(2));
  c.require_equal(q[0], k[0], "batch sizes of query and key differ");
  c.require_equal(k[0], v[0], "batch sizes of key and value differ");
  c.require_equal(k[1], v[1], "lengths of key and value differ");
  c.require_equal(q[2], k[2], "heads of query and key differ");
  c.require_equal(k[2], v[2], "heads of key and value differ");
  c.require_equal(q[3], k[3], "widths of query and key differ");
  c.result(c.dtype(0), {q[0], q[1], q[2], v[3]});
}

/// As infer_attention, with heads of key and value that serve several heads of the query.
void infer_grouped_attention(InferContext& c) {
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  c.check(q.size() == 4 && k.size() == 4 && v.size() == 4,
          "operands must be [batch, sequence, heads, dim], not ", c.type(0), ", ", c.type(1), ", ",
          c.type(2));
  const bool grouped =
      q[2].is_constant() && k[2].is_constant() && k[2].value() > 0 && q[2].value() != k[2].value();
  if (!grouped) return infer_attention(c);
  c.check(
      c.attrs_as<ScaledDotProductAttentionAttrs>().enable_gqa && q[2].value() % k[2].value() == 0,
      "the ", q[2], " heads of query are not groups of the ", k[2], " of key");
  c.require_equal(q[0], k[0], "batch sizes of query and key differ");
  c.require_equal(k[0], v[0], "batch sizes of key and value differ");
  c.require_equal(k[1], v[1], "lengths of key and value differ");
  c.require_equal(k[2], v[2], "heads of key and value differ");
  c.require_equal(q[3], k[3], "widths of query and key differ");
  c.result(c.dtype(0), {q[0], q[1], q[2], v[3]});
}
namespace {

/// x [batch, sequence, heads, dim] with each head repeated for a group of the query's `heads`.
Tensor for_groups(const Tensor& x, const Dim& heads) {
  if (!heads.is_constant() || !x.dim(2).is_constant() || heads.value() == x.dim(2).value())
    return x;
  const Dim each = heads.value() / std::max<int64_t>(x.dim(2).value(), 1);
  const Tensor copies =
      ops::expand(ops::unsqueeze(x, {3}), {x.dim(0), x.dim(1), x.dim(2), each, x.dim(3)});
  return ops::reshape(copies, {x.dim(0), x.dim(1), heads, x.dim(3)});
}

}  // namespace

Tensors decompose_attention(CallContext& c) {
  const auto a = c.attrs_as<ScaledDotProductAttentionAttrs>();
  const bool drops = a.dropout_p > 0 && a.training;
  const Dim &width_of_heads = c.operand(0).dim(3), &heads = c.operand(0).dim(2);
  const Tensor key = for_groups(c.operand(1), heads), value = for_groups(c.operand(2), heads);
  if (!drops && width_of_heads.is_constant() && width_of_heads.value() > 0)
    return {ops::attention(
        c.operand(0), key, value, c.has(3) ? c.operand(3) : Tensor(),
        a.scale.value_or(1 / std::sqrt(static_cast<double>(width_of_heads.value()))), a.is_causal)};
  const Tensor q = ops::transpose(c.operand(0), kHeadsFirst);
  const Tensor k = ops::transpose(key, kHeadsFirst);
  const Tensor v = ops::transpose(value, kHeadsFirst);
  const Tensor width =
      a.scale ? full_of({}, *a.scale, q.dtype()) : ops::rsqrt(dim_value(q.dim(3), q.dtype()));
  const Tensor scores = masked(ops::matmul(q * width, k, false, true),
                               c.has(3) ? c.operand(3) : Tensor(), a.is_causal);
  Tensor weights = ops::softmax(scores, -1);
  if (drops) weights = ops::dropout(weights, a.dropout_p);
  return {ops::transpose(ops::matmul(weights, v), kHeadsFirst)};
}

namespace {

/// The mask must broadcast to the scores.
void check_mask(InferContext& c, size_t operand, const Shape& scores) {
  c.check(c.shape(operand).size() <= scores.size(), "mask ", c.type(operand),
          " has more dimensions than the scores ", text(scores));
  c.broadcast(c.shape(operand), scores);
}

}  // namespace

void infer_attention_kernel(InferContext& c) {
  infer_attention(c);
  const Shape q = c.shape(0), k = c.shape(1);
  if (c.has(3)) check_mask(c, 3, {q[0], q[2], q[1], k[1]});
  c.result(c.dtype(0) == DType::kF64 ? DType::kF64 : DType::kF32, {q[0], q[2], q[1]});
}

Tensors vjp_attention(VjpContext& c) {
  const auto a = c.attrs_as<AttentionAttrs>();
  Tensors out = c.gradients();
  const Tensor grad = c.cotangent_or_zeros(0);
  if (c.needs(3)) {
    const Parts parts = written_out(grad, c.operand(0), c.operand(1), c.operand(2), c.operand(3),
                                    a.scale, a.is_causal);
    out[0] = parts.query;
    out[1] = parts.key;
    out[2] = parts.value;
    out[3] = sum_to(parts.scores, c.operand(3).shape());
    return out;
  }
  const Tensors all =
      ops::attention_grad(grad, c.operand(0), c.operand(1), c.operand(2), c.operand(3), c.result(0),
                          c.result(1), a.scale, a.is_causal);
  std::copy(all.begin(), all.end(), out.begin());
  return out;
}

void infer_attention_grad(InferContext& c) {
  const Shape &grad = c.shape(0), &q = c.shape(1), &k = c.shape(2), &v = c.shape(3);
  c.check(grad.size() == 4 && q.size() == 4 && k.size() == 4 && v.size() == 4 && c.rank(5) == 4,
          "operands must be [batch, sequence, heads, dim], not ", c.type(0), ", ", c.type(1), ", ",
          c.type(2), ", ", c.type(3), " and ", c.type(5));
  for (const size_t i : {size_t{0}, size_t{2}}) {
    c.require_equal(q[i], k[i], "query and key differ in batch or heads");
    c.require_equal(k[i], v[i], "key and value differ in batch or heads");
  }
  c.require_equal(k[1], v[1], "lengths of key and value differ");
  c.require_equal(q[3], k[3], "widths of query and key differ");
  const Shape out = {q[0], q[1], q[2], v[3]};
  for (size_t i = 0; i < 4; ++i) {
    c.require_equal(grad[i], out[i], "grad differs from the result of attention");
    c.require_equal(c.shape(5)[i], out[i], "out differs from the result of attention");
  }
  const DType sums = c.dtype(1) == DType::kF64 ? DType::kF64 : DType::kF32;
  c.check(c.rank(6) == 3 && c.dtype(6) == sums, "log_sum must be ", text(sums),
          " [batch, heads, queries], not ", c.type(6));
  for (const auto& [axis, of] : {std::pair<size_t, size_t>{0, 0}, {1, 2}, {2, 1}})
    c.require_equal(c.shape(6)[axis], q[of], "log_sum has no number for each query and head");
  if (c.has(4)) check_mask(c, 4, {q[0], q[2], q[1], k[1]});
  for (size_t i = 1; i <= 3; ++i) c.result(c.dtype(i), c.shape(i));
}

Tensors decompose_attention_grad(CallContext& c) {
  const auto a = c.attrs_as<AttentionGradAttrs>();
  const Parts parts = written_out(c.operand(0), c.operand(1), c.operand(2), c.operand(3),
                                  c.has(4) ? c.operand(4) : Tensor(), a.scale, a.is_causal);
  return {parts.query, parts.key, parts.value};
}

void infer_rotary_embedding(InferContext& c) {
  const Shape& x = c.shape(0);
  c.check(!x.empty(), "x must have an axis of features");
  const Dim n = x.back();
  c.check(!n.is_constant() || n.value() % 2 == 0, "the last axis of x, ", n, ", is odd");
  for (const size_t i : {size_t{1}, size_t{2}}) {
    Shape angles = c.shape(i);
    c.check(!angles.empty() && angles.size() <= x.size(), i == 1 ? "cos " : "sin ", c.type(i),
            " does not broadcast to ", c.type(0));
    const Dim width = angles.back();
    if (!width.equals(n).value_or(false))
      c.require_equal(
          width * 2, n,
          i == 1 ? "cos has neither n nor n/2 features" : "sin has neither n nor n/2 features");
    angles.back() = n;
    const Shape both = c.broadcast(angles, x);
    for (size_t k = 0; k < x.size(); ++k)
      c.require_equal(both[k], x[k],
                      i == 1 ? "cos does not broadcast to x" : "sin does not broadcast to x");
  }
  c.result(c.dtype(0), x);
}

Tensors decompose_rotary_embedding(CallContext& c) {
  const bool neighbors = c.attrs_as<RotaryEmbeddingAttrs>().interleaved;
  const Tensor& x = c.operand(0);
  const int64_t axis = x.ndim() - 1;
  const Dim n = x.dim(-1), half = floor_divide(n, 2);
  const auto joined = [&](const Tensor& a, const Tensor& b) {
    if (!neighbors) return ops::concat({a, b}, -1);
    Shape shape = a.shape();
    shape.back() = shape.back() * 2;
    return ops::reshape(ops::stack({a, b}, a.ndim()), shape);
  };
  const auto whole = [&](const Tensor& angles) {
    return angles.dim(-1).equals(n).value_or(false) ? angles : joined(angles, angles);
  };
  const Tensor a = neighbors ? slice_axis(x, axis, 0, n, 2) : slice_axis(x, axis, 0, half),
               b = neighbors ? slice_axis(x, axis, 1, n, 2) : slice_axis(x, axis, half, n);
  return {x * whole(c.operand(1)) + joined(ops::neg(b), a) * whole(c.operand(2))};
}

Tensors decompose_sequence_mask(CallContext& c) {
  const auto a = c.attrs_as<SequenceMaskAttrs>();
  const Tensor& x = c.operand(0);
  if (a.maxlen && *a.maxlen < 1)
    reject("sequence_mask", "maxlen must be positive, not ", *a.maxlen);
  if (!is_integer(x.dtype())) reject("sequence_mask", "x must be of integers, not ", x.type());
  Tensor places;
  if (a.maxlen) {
    places = range_of(*a.maxlen, x.dtype());
  } else {
    const Tensor longest =
        ops::max(ops::cast(ops::reshape(x, Shape{-1}), DType::kI64), std::vector<int64_t>{0}, true);
    const Tensor first = Tensor(Array::from<int64_t>({0}, {1}));
    places = ops::cast(ops::concat_ranges(first, ops::maximum(longest, first)), x.dtype());
  }
  return {ops::cast(ops::less_than(places, ops::unsqueeze(x, {-1})), a.dtype)};
}

// --- cost ---

/// Two products of [queries, dim] and [keys, dim]; a causal limit is not taken off, as elsewhere.
double cost_attention(const Attrs&, const std::vector<Dims>& operands, const std::vector<Dims>&) {
  const Dims &q = operands[0], &k = operands[1], &v = operands[2];
  return 2 * element_product({q[0], q[2], q[1], k[1]}) * static_cast<double>(q[3] + v[3]);
}

double cost_attention_grad(const Attrs&, const std::vector<Dims>& operands,
                           const std::vector<Dims>&) {
  const Dims &q = operands[1], &k = operands[2], &v = operands[3];
  return 2 * element_product({q[0], q[2], q[1], k[1]}) * static_cast<double>(2 * q[3] + 2 * v[3]);
}

}  // namespace paddle::rules

namespace paddle {

Tensor written_out_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                             const Tensor& mask, double scale, bool is_causal,
                             const std::function<Tensor(const Tensor&)>& change) {
  const Tensor q = ops::transpose(query, rules::kHeadsFirst),
               k = ops::transpose(key, rules::kHeadsFirst),
               v = ops::transpose(value, rules::kHeadsFirst);
  const Tensor weights = change(rules::attention_weights(q, k, mask, scale, is_causal));
  return ops::transpose(ops::matmul(weights, v), rules::kHeadsFirst);
}

}  // namespace paddle
