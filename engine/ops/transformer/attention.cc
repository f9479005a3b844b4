// Rules of attention.yaml, in terms of scaled_dot_product_attention.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/core/cost.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "ops/generated/transformer_rules.h"
#include "ops/nn/window.h"
#include "ops/transformer/parts.h"

namespace paddle::rules {
namespace {

void check_heads(std::string_view op, const Tensor& q, const Tensor& k, const Tensor& v) {
  if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4)
    reject(op, "query, key and value must have 4 dimensions, not ", q.type(), ", ", k.type(), ", ",
           v.type());
}

Tensor rows_of(const Dim& count) { return ops::unsqueeze(range_of(count, DType::kI64), {1}); }
Tensor columns_of(const Dim& count) { return ops::unsqueeze(range_of(count, DType::kI64), {0}); }

/// Which keys each query sees, where the last query sees all.
Tensor causal_mask(const Dim& queries, const Dim& keys) {
  return ops::less_equal(columns_of(keys) - dim_value(keys - queries, DType::kI64),
                         rows_of(queries));
}

Tensor hide(const Tensor& visible, const Tensor& mask) {
  return mask.defined() ? ops::logical_and(mask, visible) : visible;
}

/// A mask [batch, 1, heads or a divisor of them, keys] for each of `heads` heads.
Tensor for_query_heads(const Tensor& mask, const Dim& heads) {
  if (is_one(mask.dim(1)) || mask.dim(1).equals(heads) != false) return mask;
  const Dim group = floor_divide(heads, mask.dim(1).value());
  return ops::reshape(ops::expand(ops::unsqueeze(mask, {2}),
                                  {mask.dim(0), mask.dim(1), group, mask.dim(2), mask.dim(3)}),
                      {mask.dim(0), heads, mask.dim(2), mask.dim(3)});
}

/// Integers for squares of 128 queries and keys as a mask [batch, heads, queries, keys].
Tensor squares_of(std::string_view op, const Tensor& blocks, const Dim& queries, const Dim& keys) {
  constexpr int64_t kSide = 128;
  const auto count = [](const Dim& size) { return floor_divide(size + (kSide - 1), kSide); };
  if (blocks.ndim() != 4 || blocks.dim(2).equals(count(queries)) == false ||
      blocks.dim(3).equals(count(keys)) == false)
    reject(op, "block_mask must be [batch, heads, ", count(queries), ", ", count(keys), "], not ",
           blocks.type());
  const auto square = [](const Dim& size) {
    return ops::floor_divide(range_of(size, DType::kI64), integer(kSide));
  };
  const Tensor rows = ops::index_select(blocks, square(queries), 2);
  return ops::not_equal(ops::index_select(rows, square(keys), 3), integer(0));
}

/// x [batch, sequence, …] times a matrix, in heads: [batch, sequence, heads, width / heads].
Tensor projected_heads(const char* name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       int64_t heads) {
  constexpr const char* kName = "multi_head_attention";
  if (x.ndim() != 3) reject(kName, name, " must be [batch, sequence, width], not ", x.type());
  if (weight.ndim() != 2 || weight.dim(0).equals(x.dim(2)) == false)
    reject(kName, "the weight of ", name, " must be [", x.dim(2), ", width], not ", weight.type());
  if (modulo(weight.dim(1), heads).constant().value_or(0) != 0)
    reject(kName, "num_heads ", heads, " must divide the width ", weight.dim(1));
  return ops::reshape(plus(ops::matmul(x, weight), bias),
                      {x.dim(0), x.dim(1), Dim(heads), floor_divide(weight.dim(1), heads)});
}

}  // namespace

Tensors decompose_multi_head_attention(CallContext& c) {
  const auto a = c.attrs_as<MultiHeadAttentionAttrs>();
  if (a.num_heads < 1)
    reject("multi_head_attention", "num_heads must be at least 1, not ", a.num_heads);
  const Tensor& query = c.operand(0);
  const Tensor key = c.has(1) ? c.operand(1) : query, value = c.has(2) ? c.operand(2) : key;
  const auto heads = [&](const char* name, const Tensor& x, size_t weight, const char* bias) {
    return projected_heads(name, x, c.operand(weight), optional(c, bias), a.num_heads);
  };
  const Tensor seen = ops::scaled_dot_product_attention(
      heads("query", query, 3, "q_bias"), heads("key", key, 4, "k_bias"),
      heads("value", value, 5, "v_bias"), optional(c, "attn_mask"), a.dropout_p, a.is_causal,
      a.training);
  const Tensor joined = ops::reshape(seen, {seen.dim(0), seen.dim(1), seen.dim(2) * seen.dim(3)});
  return {plus(ops::matmul(joined, c.operand(6)), optional(c, "out_bias"))};
}

double cost_multi_head_attention(const Attrs&, const std::vector<Dims>& operands,
                                 const std::vector<Dims>&) {
  const Dims& query = operands[0];
  const Dims& key = operands[1].size() == 3 ? operands[1] : query;  // else it is absent
  const Dims &q_weight = operands[3], &k_weight = operands[4], &v_weight = operands[5];
  const double queries = element_product({query[0], query[1]});
  const double keys = element_product({key[0], key[1]});
  const double projections = queries * (element_product(q_weight) + element_product(operands[6])) +
                             keys * (element_product(k_weight) + element_product(v_weight));
  const double attention =
      queries * static_cast<double>(key[1]) * static_cast<double>(k_weight[1] + v_weight[1]);
  return 2 * (projections + attention);
}

Tensors decompose_flash_attention(CallContext& c) {
  const auto a = c.attrs_as<FlashAttentionAttrs>();
  const Tensor &q = c.operand(0), &k = c.operand(1), &v = c.operand(2);
  check_heads("flash_attention", q, k, v);
  const bool square = q.dim(1).equals(k.dim(1)) == true;
  const Tensor mask = a.causal && !square ? causal_mask(q.dim(1), k.dim(1)) : Tensor();
  Tensors out = {
      ops::scaled_dot_product_attention(q, k, v, mask, a.dropout, a.causal && square, a.training)};
  if (!a.return_softmax) return out;
  const auto heads_first = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
  Tensor scores = ops::matmul(heads_first(q), heads_first(k), false, true) *
                  ops::rsqrt(dim_value(q.dim(3), q.dtype()));
  if (a.causal) scores = ops::where(causal_mask(q.dim(1), k.dim(1)), scores, number(-INFINITY));
  out.push_back(ops::softmax(scores, -1));
  return out;
}

Tensors decompose_flashmask_attention(CallContext& c) {
  const auto a = c.attrs_as<FlashmaskAttentionAttrs>();
  constexpr const char* kName = "flashmask_attention";
  const Tensor &q = c.operand(0), &k = c.operand(1), &v = c.operand(2);
  check_heads(kName, q, k, v);
  if (a.return_seed_offset) reject(kName, "return_seed_offset is not supported");
  const Dim queries = q.dim(1), keys = k.dim(1);
  Tensor mask = a.causal ? causal_mask(queries, keys) : Tensor();
  if (!a.window_size.is_none()) {
    Axes window = window_sizes(a.window_size, 2, "flashmask_attention: window_size");
    const Tensor offset = columns_of(keys) - rows_of(queries);
    if (window[0] >= 0) mask = hide(ops::greater_equal(offset, integer(-window[0])), mask);
    if (window[1] >= 0 && !a.causal) mask = hide(ops::less_equal(offset, integer(window[1])), mask);
  }
  if (mask.defined()) mask = ops::unsqueeze(mask, {0, 1});
  const Tensor bounds = c.operand(3);
  if (bounds.defined()) {
    if (bounds.ndim() != 4 || bounds.dim(2).equals(keys) == false)
      reject(kName, "startend_row_indices must be [batch, heads, keys, 1, 2 or 4], not ",
             bounds.type());
    const int64_t count = bounds.dim(3).constant().value_or(0);
    if (!(count == 2 || (a.causal && count == 1) || (!a.causal && count == 4)))
      reject(kName, "startend_row_indices has ", bounds.dim(3), " rows per key; expected ",
             a.causal ? "1 or 2 with causal" : "2 or 4 without causal");
    const auto bound = [&](int64_t i) {  // [batch, heads, 1, keys]
      const Tensor own = ops::squeeze(slice_axis(bounds, 3, i, i + 1), Axes{3});
      return ops::cast(ops::unsqueeze(own, {2}), DType::kI64);
    };
    const Tensor row = ops::unsqueeze(rows_of(queries), {0, 1});
    const Tensor column = ops::unsqueeze(columns_of(keys), {0, 1});
    // Below the diagonal from a row on (up to another one), and above it.
    Tensor lower = ops::greater_equal(row, bound(0));
    if (count == 4 || (a.causal && count == 2))
      lower = ops::logical_and(lower, ops::less_than(row, bound(1)));
    lower = ops::logical_and(lower, ops::greater_equal(row, column));
    mask = hide(ops::logical_not(lower), mask);
    if (!a.causal) {
      Tensor upper = ops::less_than(row, bound(count == 4 ? 3 : 1));
      if (count == 4) upper = ops::logical_and(upper, ops::greater_equal(row, bound(2)));
      upper = ops::logical_and(upper, ops::less_than(row, column));
      mask = hide(ops::logical_not(upper), mask);
    }
    mask = for_query_heads(mask, q.dim(2));
  }
  if (c.has(5))
    mask = hide(for_query_heads(squares_of(kName, c.operand(5), queries, keys), q.dim(2)), mask);
  Tensors out = {ops::scaled_dot_product_attention(q, k, v, mask, a.dropout, false, a.training,
                                                   std::nullopt, a.softmax_scale)};
  if (!a.return_softmax_lse) return out;
  const auto heads_first = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
  const double width = static_cast<double>(q.dim(3).value());
  Tensor scores = ops::matmul(heads_first(q), heads_first(k), false, true) *
                  a.softmax_scale.value_or(1 / std::sqrt(width));
  if (mask.defined()) scores = ops::where(mask, scores, number(-INFINITY));
  out.push_back(ops::logsumexp(scores, Axes{3}));
  return out;
}

Tensors decompose_fused_dot_product_attention(CallContext& c) {
  const auto a = c.attrs_as<FusedDotProductAttentionAttrs>();
  return {ops::scaled_dot_product_attention(
      c.operand(0), c.operand(1), c.operand(2), c.has(3) ? c.operand(3) : Tensor(), a.dropout_p,
      a.is_causal, a.training, std::nullopt, a.scaling_factor)};
}

Tensors decompose_memory_efficient_attention(CallContext& c) {
  const auto a = c.attrs_as<MemoryEfficientAttentionAttrs>();
  return {ops::scaled_dot_product_attention(c.operand(0), c.operand(1), c.operand(2),
                                            c.has(3) ? c.operand(3) : Tensor(), a.p, false,
                                            a.training, std::nullopt, a.scale)};
}

Tensors decompose_variable_length_memory_efficient_attention(CallContext& c) {
  const auto a = c.attrs_as<VariableLengthMemoryEfficientAttentionAttrs>();
  constexpr const char* kName = "variable_length_memory_efficient_attention";
  const Tensor &q = c.operand(0), &k = c.operand(1), &v = c.operand(2);
  check_heads(kName, q, k, v);
  if (a.pre_cache_length < 0) reject(kName, "pre_cache_length must not be negative");
  const auto lengths = [&](size_t i) {
    const Tensor& t = c.operand(i);
    if (element_count(std::span<const Dim>(t.shape())).equals(q.dim(0)) == false)
      reject(kName, c.op().operands()[i].name, " must have a number for each sequence, not ",
             t.type());
    return ops::reshape(ops::cast(t, DType::kI64), {q.dim(0), 1, 1, 1});
  };
  const Dim queries = q.dim(2), keys = k.dim(2);
  const auto last = [](const Dim& count) {
    return ops::reshape(range_of(count, DType::kI64), {1, 1, 1, count});
  };
  const Tensor row = ops::reshape(range_of(queries, DType::kI64), {1, 1, queries, 1});
  Tensor visible = ops::less_than(last(keys), lengths(4) + integer(a.pre_cache_length));
  visible = ops::expand(visible, {q.dim(0), Dim(1), queries, keys});
  if (a.causal)
    visible =
        ops::logical_and(visible, ops::less_equal(last(keys), row + integer(a.pre_cache_length)));
  const Tensor inside = ops::less_than(row, lengths(3));
  // Queries after the end see everything, so that nothing is undefined, and become zero.
  visible = ops::logical_or(visible, ops::logical_not(inside));
  Tensor mask =
      ops::where(visible, ops::full_like(ops::cast(visible, q.dtype()), 0.0), number(-INFINITY));
  if (c.has(5)) mask = mask + c.operand(5);
  const auto swap = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
  const Tensor out = swap(ops::scaled_dot_product_attention(swap(q), swap(k), swap(v), mask, 0.0,
                                                            false, false, std::nullopt, a.scale));
  return {ops::where(inside, out, number(0.0))};
}

namespace {

/// Queries and keys of qkv [batch, 3, heads, dim] turned by `angles`.
Tensor with_turned_heads(const Tensor& qkv, const Tensor& angles, bool adjacent) {
  constexpr const char* kName = "masked_multihead_attention";
  const Dim batch = qkv.dim(0), width = qkv.dim(3);
  const bool fits =
      angles.ndim() == 5 && angles.dim(0).equals(2) != false &&
      (angles.dim(1).equals(1) == true || angles.dim(1).equals(batch) != false) &&
      angles.dim(2).equals(1) != false && angles.dim(3).equals(1) != false &&
      (angles.dim(4).equals(width) != false || (angles.dim(4) * 2).equals(width) != false);
  if (!fits)
    reject(kName, "rotary_tensor must be the cosines and sines [2, batch or 1, 1, 1, dim or ",
           "dim / 2] of the new tokens, not ", angles.type());
  const auto part = [&](int64_t i) {
    return ops::squeeze(slice_axis(angles, 0, i, i + 1), Axes{0});
  };
  const auto token = [&](int64_t i) {
    return turned(slice_axis(qkv, 1, i, i + 1), part(0), part(1), adjacent);
  };
  return ops::concat({token(0), token(1), slice_axis(qkv, 1, 2, 3)}, 1);
}

}  // namespace

Tensors decompose_masked_multihead_attention(CallContext& c) {
  const auto a = c.attrs_as<MaskedMultiheadAttentionAttrs>();
  constexpr const char* kName = "masked_multihead_attention";
  const auto given = [&](const char* name) {
    return c.operand(static_cast<size_t>(c.op().operand_index(name)));
  };
  if (given("beam_cache_offset").defined())
    reject(kName, "beam_cache_offset is not supported: reorder cache_kv, for example by gather");
  if (a.seq_len < 1) reject(kName, "seq_len must be positive, not ", a.seq_len);
  const Tensor &x = c.operand(0), &cache = c.operand(1);
  if (x.ndim() != 2 || cache.ndim() != 5 || cache.dim(0).equals(2) == false)
    reject(kName,
           "x must be [batch, 3 * heads * dim] and cache_kv [2, batch, heads, length, dim], ",
           "not ", x.type(), " and ", cache.type());
  const Dim batch = x.dim(0), heads = cache.dim(2), length = cache.dim(3), width = cache.dim(4);
  if (x.dim(1).equals(heads * width * 3) == false)
    reject(kName, "x ", x.type(), " does not match cache_kv ", cache.type());
  Tensor qkv = ops::reshape(x, {batch, Dim(3), heads, width});
  const Tensor scale = given("qkv_out_scale");
  if (is_integer(x.dtype()) != scale.defined())
    reject(kName, "qkv_out_scale needs an integer x, found x ", x.type());
  if (scale.defined())
    qkv = ops::cast(qkv, cache.dtype()) *
          ops::reshape(ops::cast(scale, cache.dtype()), {1, 3, heads, width});
  if (qkv.dtype() != cache.dtype())
    reject(kName, "x ", x.type(), " and cache_kv ", cache.type(), " must have the same dtype");
  if (c.has(2)) qkv = qkv + ops::reshape(c.operand(2), {1, 3, heads, width});
  if (const Tensor angles = given("rotary_tensor"); angles.defined())
    qkv = with_turned_heads(qkv, angles, !a.use_neox_rotary_style);
  const Tensor mask = given("src_mask"), lengths = given("sequence_lengths");
  Tensor place;  // [batch]
  if (lengths.defined())
    place = ops::reshape(ops::cast(lengths, DType::kI64), {batch});
  else if (mask.defined())
    place = ops::expand(dim_value(mask.dim(-1) - 1, DType::kI64), {batch});
  else
    reject(kName, "sequence_lengths or src_mask must be given");
  // The new key and value, written at their place.
  const Tensor index =
      ops::expand(ops::reshape(place, {1, batch, 1, 1, 1}), {Dim(2), batch, heads, Dim(1), width});
  const Tensor fresh = ops::unsqueeze(ops::transpose(slice_axis(qkv, 1, 1, 3), {1, 0, 2, 3}), {3});
  const Tensor next = ops::scatter_along(cache, index, fresh, 3, "assign");
  Tensor visible =
      ops::where(ops::less_equal(ops::reshape(range_of(length, DType::kI64), {1, 1, 1, length}),
                                 ops::reshape(place, {batch, 1, 1, 1})),
                 full_of({}, 0, qkv.dtype()), number(-INFINITY));
  if (mask.defined())
    visible = visible + ops::pad(ops::cast(mask, qkv.dtype()),
                                 {0, 0, 0, 0, 0, 0, 0, length.value() - mask.dim(-1).value()});
  const auto part = [&](int64_t i) {
    return ops::transpose(ops::squeeze(slice_axis(next, 0, i, i + 1), Axes{0}), {0, 2, 1, 3});
  };
  const Tensor out =
      ops::scaled_dot_product_attention(slice_axis(qkv, 1, 0, 1), part(0), part(1), visible);
  const auto flat_or_none = [&](const char* name) {
    return given(name).defined() ? ops::cast(flat(given(name)), out.dtype()) : Tensor();
  };
  Tensor y = plus(ops::reshape(out, {batch, heads * width}), flat_or_none("out_shift"));
  if (given("out_smooth").defined()) y = y * flat_or_none("out_smooth");
  return {quantized_result(kName, y, a.out_scale,
                           {a.quant_round_type, a.quant_max_bound, a.quant_min_bound}),
          next};
}

}  // namespace paddle::rules
