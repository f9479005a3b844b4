// Attention, QAttention and (DecoderMasked)MultiHeadAttention of com.microsoft.

#include "onnx/contrib/attention_common.h"
#include "onnx/ops/helpers.h"
#include "onnx/ops/quantization.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// The additive mask: `filter` for masked keys. `mask` is [batch, keys], [batch, queries, keys], or
/// 1-D: the end of the keys per sample, optionally followed by the starts, or (three times the
/// batch plus two) by cumulative lengths.
Tensor additive_mask(const Tensor& mask, const Dim& batch, const Dim& keys, double filter,
                     DType dtype) {
  Tensor kept;
  if (mask.ndim() == 1) {
    const Tensor at = ops::reshape(iota(keys), {1, 1, 1, keys});
    const auto limits = [&](const Dim& from) {
      const Tensor lengths = ops::cast(slice_axis(mask, 0, from, from + batch), DType::kI64);
      return ops::reshape(lengths, {batch, Dim(1), Dim(1), Dim(1)});
    };
    kept = ops::less_than(at, limits(0));
    if (mask.dim(0).equals(batch * 2).value_or(false))
      kept = ops::logical_and(kept, ops::greater_equal(at, limits(batch)));
  } else {
    kept = ops::unsqueeze(ops::greater_equal(mask, int_scalar(1, mask.dtype())),
                          mask.ndim() == 2 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1});
  }
  return ops::where(kept, scalar(0, dtype), scalar(filter, dtype));
}

/// Attention options from input `mask_input` (mask), `bias_input` (bias) and attributes; the first
/// `past` keys are cached.
ScoreOptions score_options(const NodeCall& c, const Tensor& q, const Tensor& k, const Dim& past,
                           size_t i, size_t j) {
  ScoreOptions s;
  s.scale = c.float_attr("scale", 0);
  s.bias = c.optional_tensor(j);
  if (c.has_input(i))
    s.add(additive_mask(c.tensor(i), q.dim(0), k.dim(2), c.float_attr("mask_filter_value", -10000),
                        q.dtype()));
  if (c.bool_attr("unidirectional", false)) s.allowed = causal(q.dim(2), k.dim(2), past);
  return s;
}

/// Attention on packed queries, keys and values; cached ones (input `past`) come first.
Values packed_attention(const NodeCall& c, const Tensor& all, size_t mask, size_t past,
                        size_t bias) {
  const int64_t heads = c.int_attr("num_heads", 0);
  c.check(heads > 0, "num_heads is missing");
  auto sizes = c.ints_attr("qkv_hidden_sizes");
  const int64_t width = constant_dim(all, 2);
  if (sizes.empty()) sizes.assign(3, width / 3);
  c.check(sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == width,
          "qkv_hidden_sizes do not match the weight");
  const Tensor q = split_heads(slice_axis(all, 2, 0, sizes[0]), heads);
  Tensor k = split_heads(slice_axis(all, 2, sizes[0], sizes[0] + sizes[1]), heads);
  Tensor v = split_heads(slice_axis(all, 2, sizes[0] + sizes[1], width), heads);
  const Dim steps = k.dim(2);
  if (c.has_input(past)) {
    const auto before = [&](int64_t i) {
      return ops::squeeze(slice_axis(c.tensor(past), 0, i, i + 1), std::vector<int64_t>{0});
    };
    k = ops::concat({before(0), k}, 2);
    v = ops::concat({before(1), v}, 2);
  }
  Values out = {join_heads(attend(q, k, v, score_options(c, q, k, k.dim(2) - steps, mask, bias)))};
  if (c.has_output(1)) out.emplace_back(ops::stack({k, v}, 0));
  return out;
}

/// Projects queries, keys and values with one weight.
Values attention(NodeCall& c) {
  Tensor all = ops::matmul(c.tensor(0), c.tensor(1));
  if (c.has_input(2)) all = all + c.tensor(2);
  return packed_attention(c, all, 3, 4, 5);
}

/// Attention with int8 input and weight.
Values quantized_attention(NodeCall& c) {
  const Tensor y =
      quantized_matmul_to_float(c, c.tensor(0), c.optional_tensor(6), c.tensor(3), 1, 4, 7);
  return packed_attention(c, c.has_input(2) ? y + c.tensor(2) : y, 5, 8, c.input_count());
}

/// Indices of the inputs of attention with separate queries, keys and values.
struct AttentionInputs {
  size_t bias, mask, added, past, length, beams;
};

/// The cached keys (or values) that each beam follows: `from` [batch, beams, steps] holds the beam
/// within its batch at each step but the last.
Tensor reorder_by_beams(const Tensor& cache, const Tensor& from, const Dim& past) {
  const Dim samples = cache.dim(0);
  const Tensor sample = ops::unsqueeze(iota(samples), {1});
  const Tensor beams = dim_value(from.dim(1), DType::kI64);
  const Tensor beam =
      ops::cast(ops::reshape(slice_axis(from, 2, 0, past), {samples, past}), DType::kI64);
  const Tensor first = sample - ops::remainder(sample, beams);
  const Tensor rows = ops::concat({first + beam, ops::expand(sample, {samples, Dim(1)})}, 1);
  const Tensor steps = ops::expand(ops::unsqueeze(iota(past + 1), {0}), rows.shape());
  const Tensor picked =
      ops::gather_nd(ops::transpose(cache, {0, 2, 1, 3}), ops::stack({rows, steps}, 2));
  return ops::transpose(picked, {0, 2, 1, 3});
}

/// Keys and values may have split heads. With a past length, the cache is a buffer of fixed size
/// into which new steps are written.
Values separate_qkv_attention(NodeCall& c, const AttentionInputs& at) {
  const int64_t heads = c.int_attr("num_heads", 0);
  c.check(heads > 0, "num_heads is missing");
  c.check(c.has_input(1) && c.has_input(2), "packed queries, keys and values are not supported");
  Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2);
  if (c.has_input(at.bias)) {
    const Dim width = q.dim(2);
    const auto bias = [&](const Dim& from, const Dim& to) {
      return slice_axis(c.tensor(at.bias), 0, from, to);
    };
    q = q + bias(0, width);
    if (k.ndim() == 3) k = k + bias(width, width * 2);
    if (v.ndim() == 3) v = v + bias(width * 2, width * 2 + v.dim(2));
  }
  q = split_heads(q, heads);
  if (k.ndim() == 3) k = split_heads(k, heads);
  if (v.ndim() == 3) v = split_heads(v, heads);
  Tensor all_k = k, all_v = v;
  Dim past = 0;
  if (c.has_input(at.past) && c.has_input(at.length)) {
    past = c.dims_operand(at.length).at(0);
    const Dim steps = k.dim(2);
    const auto written = [&](size_t i, const Tensor& now) {
      const Tensor& cache = c.tensor(i);
      return ops::concat(
          {slice_axis(cache, 2, 0, past), now, slice_axis(cache, 2, past + steps, cache.dim(2))},
          2);
    };
    all_k = written(at.past, k);
    all_v = written(at.past + 1, v);
    k = slice_axis(all_k, 2, 0, past + steps);
    v = slice_axis(all_v, 2, 0, past + steps);
    if (c.has_input(at.beams) && !c.tensor(at.beams).dim(1).equals(1).value_or(false)) {
      k = reorder_by_beams(k, c.tensor(at.beams), past);
      v = reorder_by_beams(v, c.tensor(at.beams), past);
    }
  } else if (c.has_input(at.past)) {
    past = c.tensor(at.past).dim(2);
    all_k = k = ops::concat({c.tensor(at.past), k}, 2);
    all_v = v = ops::concat({c.tensor(at.past + 1), v}, 2);
  }
  const ScoreOptions scores = score_options(c, q, k, past, at.mask, at.added);
  Values out = {join_heads(attend(q, k, v, scores)), all_k, all_v};
  if (c.has_output(3)) out.emplace_back(masked_scores(q, k, scores));
  return out;
}

Values multi_head_attention(NodeCall& c) {
  return separate_qkv_attention(
      c, {.bias = 3, .mask = 4, .added = 5, .past = 6, .length = 8, .beams = 9});
}

/// One new step per sample.
Values decoder_attention(NodeCall& c) {
  return separate_qkv_attention(
      c, {.bias = 10, .mask = 3, .added = 4, .past = 5, .length = 7, .beams = 9});
}

}  // namespace

OperatorTable contrib_attention_operators() {
  static constexpr Operator operators[] = {
      {"Attention", 1, attention},
      {"QAttention", 1, quantized_attention},
      {"MultiHeadAttention", 1, multi_head_attention},
      {"DecoderMaskedMultiHeadAttention", 1, decoder_attention},
  };
  return operators;
}

}  // namespace paddle::onnx
