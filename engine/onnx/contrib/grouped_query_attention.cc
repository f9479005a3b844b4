// GroupQueryAttention and SparseAttention of com.microsoft.

#include "onnx/contrib/attention_common.h"
#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Writes new keys (or values) at `positions`, which differ per sample, into the cache or after
/// it; with `clears`, the rest becomes zero.
Tensor update_cache(const Tensor& past, const Tensor& now, const Tensor& positions,
                    const Dim& total, bool clears) {
  if (!past) return now;
  const Dim length = maximum(past.dim(2), total), room = past.dim(2) + now.dim(2);
  Tensor base = past;
  if (!length.same(past.dim(2))) {
    base = ops::concat({past, ops::full(now.shape(), 0.0, now.dtype())}, 2);
    if (!length.same(room)) base = slice_axis(base, 2, 0, length);
  }
  const Tensor each = ops::reshape(positions, {now.dim(0), Dim(1), now.dim(2), Dim(1)});
  if (clears) {
    const Tensor kept =
        ops::less_than(ops::reshape(iota(length), {1, 1, length, 1}), slice_axis(each, 2, 0, 1));
    base = ops::where(kept, base, scalar(0, base.dtype()));
  }
  return ops::scatter_along(base, ops::expand(each, now.shape()), now, 2, "assign");
}

/// Indices of the inputs of grouped-query attention after query, key, value and cache.
struct GroupedInputIndices {
  size_t ends, total, cosines, sines, position_ids;
  size_t valid;  ///< number of valid steps per sample; padding follows them
};

/// Grouped-query attention: query heads share key and value heads.
struct GroupedQueryInputs {
  Tensor q, k, v;        ///< [batch, heads, steps or keys, size]
  Tensor all_k, all_v;   ///< the new cache
  Tensor positions, at;  ///< of the steps: [batch, steps], [batch, 1, steps, 1]
  Tensor key_at;         ///< [1, 1, 1, keys]
};

/// The cache is a buffer whose rest is kept, or (with `clears`) zeroed; input `ends` holds the
/// number of keys per sample, or (with `clears`) the index of the last one.
GroupedQueryInputs prepare_grouped(const NodeCall& c, const GroupedInputIndices& inputs,
                                   bool clears) {
  const int64_t heads = c.int_attr("num_heads", 0), kv_heads = c.int_attr("kv_num_heads", 0);
  c.check(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "the numbers of heads do not match");
  c.check(c.has_input(1) == c.has_input(2) && c.has_input(3) == c.has_input(4),
          "keys must come with values");
  Tensor q = c.tensor(0), k = c.optional_tensor(1), v = c.optional_tensor(2);
  if (!k) {
    const int64_t size = constant_dim(q, 2) / (heads + 2 * kv_heads);
    const Tensor all = q;
    q = slice_axis(all, 2, 0, heads * size);
    k = slice_axis(all, 2, heads * size, (heads + kv_heads) * size);
    v = slice_axis(all, 2, (heads + kv_heads) * size, (heads + 2 * kv_heads) * size);
  }
  q = split_heads(q, heads);
  k = split_heads(k, kv_heads);
  v = split_heads(v, kv_heads);
  const Dim steps = q.dim(2);
  const Tensor past_k = c.optional_tensor(3), past_v = c.optional_tensor(4);
  // Longest sequence including the new steps. In a first call, padding may follow the last valid
  // step of a sample; later, every sample ends with its last step.
  const Dim total = past_k ? c.dims_operand(inputs.total).at(0) : steps;
  const Tensor count = ops::unsqueeze(iota(steps), {0});
  GroupedQueryInputs out;
  out.positions = ops::expand(count, {q.dim(0), steps});
  const bool counted = c.has_input(inputs.valid);
  if (counted || !total.same(steps)) {
    const auto of_samples = [&](size_t i) {
      return ops::reshape(ops::cast(c.tensor(i), DType::kI64), {q.dim(0), Dim(1)});
    };
    const Tensor valid = counted ? of_samples(inputs.valid) : dim_value(steps, DType::kI64);
    Tensor start =
        ops::maximum(of_samples(inputs.ends) + int_scalar(clears ? 1 : 0) - valid, int_scalar(0));
    if (!counted)
      start = ops::where(ops::equal(dim_value(total, DType::kI64), valid), int_scalar(0), start);
    out.positions = start + count;
  }
  if (c.bool_attr("do_rotary", false)) {
    const bool interleaved = c.bool_attr("rotary_interleaved", false);
    const Tensor position_ids = c.has_input(inputs.position_ids)
                                    ? ops::cast(c.tensor(inputs.position_ids), DType::kI64)
                                    : out.positions;
    const Tensor &cosines = c.tensor(inputs.cosines), &sines = c.tensor(inputs.sines);
    q = rotate_at(c, q, position_ids, cosines, sines, interleaved, 0);
    k = rotate_at(c, k, position_ids, cosines, sines, interleaved, 0);
  }
  const auto repeated = [&](const Tensor& x) {
    if (heads == kv_heads) return x;
    const Shape wide = {x.dim(0), x.dim(1), Dim(heads / kv_heads), x.dim(2), x.dim(3)};
    return ops::reshape(ops::expand(ops::unsqueeze(x, {2}), wide),
                        {x.dim(0), Dim(heads), x.dim(2), x.dim(3)});
  };
  out.all_k = update_cache(past_k, k, out.positions, total, clears);
  out.all_v = update_cache(past_v, v, out.positions, total, clears);
  out.q = q;
  out.k = repeated(out.all_k);
  out.v = repeated(out.all_v);
  const Dim keys = out.all_k.dim(2);
  out.at = ops::reshape(out.positions, {q.dim(0), Dim(1), steps, Dim(1)});
  out.key_at = ops::reshape(iota(keys), {1, 1, 1, keys});
  return out;
}

Values group_query_attention(NodeCall& c) {
  c.check(!c.has_input(14) && !c.has_input(15), "norms of queries and keys are not supported");
  const GroupedQueryInputs g = prepare_grouped(
      c, {.ends = 5, .total = 6, .cosines = 7, .sines = 8, .position_ids = 9, .valid = 16}, true);
  ScoreOptions s;
  s.scale = c.float_attr("scale", 0);
  s.softcap = c.float_attr("softcap", 0);
  s.allowed = ops::less_equal(g.key_at, g.at);
  if (const int64_t window = c.int_attr("local_window_size", -1); window > 0)
    s.allowed = and_masks(s.allowed, ops::less_than(g.at - g.key_at, int_scalar(window)));
  s.bias = c.optional_tensor(10);
  s.sink = c.optional_tensor(11);
  if (!s.sink && c.bool_attr("smooth_softmax", false))
    s.sink = ops::full({g.q.dim(1)}, 0.0, g.q.dtype());
  return {join_heads(attend(g.q, g.k, g.v, s)), g.all_k, g.all_v};
}

/// Block mask [layouts, blocks, blocks] from compressed sparse rows: inputs 5 (row offsets) and 6
/// (columns).
Tensor block_mask(const NodeCall& c) {
  const Array starts = c.constant_array(5), columns = c.constant_array(6);
  c.check(starts.ndim() == 2 && columns.ndim() == 2 && starts.shape[0] == columns.shape[0] &&
              starts.shape[0] > 0 && starts.shape[1] > 1,
          "block_row_indices ", str(starts.shape), " do not match block_col_indices ",
          str(columns.shape));
  const int64_t layouts = starts.shape[0], blocks = starts.shape[1] - 1, width = columns.shape[1];
  c.check(blocks <= max_listed_indices() / layouts / blocks, "there are too many blocks");
  Array out = Array::zeros(DType::kBool, {layouts, blocks, blocks});
  auto* const mask = reinterpret_cast<uint8_t*>(out.storage->data());
  for (int64_t row = 0; row < layouts * blocks; ++row) {
    const int64_t layout = row / blocks, at = layout * (blocks + 1) + row % blocks;
    const int64_t begin = starts.integer(at), end = starts.integer(at + 1);
    c.check(begin >= 0 && begin <= end && end <= width, "block_row_indices are out of range");
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = columns.integer(layout * width + i);
      c.check(column >= 0 && column < blocks, "the block ", column, " is out of range");
      mask[row * blocks + column] = 1;
    }
  }
  return Tensor(out);
}

/// Heads cycle through the block layouts.
Values sparse_attention(NodeCall& c) {
  const GroupedQueryInputs g = prepare_grouped(c,
                                               {.ends = 8,
                                                .total = 7,
                                                .cosines = 9,
                                                .sines = 10,
                                                .position_ids = c.input_count(),
                                                .valid = c.input_count()},
                                               false);
  const int64_t size = c.int_attr("sparse_block_size", 0);
  c.check(size > 0, "sparse_block_size is ", size);
  const Tensor blocks = block_mask(c);
  const int64_t layouts = constant_dim(blocks, 0), last = constant_dim(blocks, 1) - 1;
  const auto block_of = [&](const Tensor& positions) {
    return ops::clip(ops::floor_divide(ops::reshape(positions, Shape{-1}), int_scalar(size)), 0.0,
                     static_cast<double>(last));
  };
  const Dim batch = g.q.dim(0), heads = g.q.dim(1), steps = g.q.dim(2), keys = g.k.dim(2);
  Tensor seen =
      ops::index_select(ops::index_select(blocks, block_of(g.key_at), 2), block_of(g.positions), 1);
  seen = ops::transpose(ops::reshape(seen, {Dim(layouts), batch, steps, keys}), {1, 0, 2, 3});
  seen = ops::index_select(seen, ops::remainder(iota(heads), int_scalar(layouts)), 1);
  ScoreOptions s;
  s.scale = c.float_attr("scale", 0);
  s.allowed = and_masks(ops::less_equal(g.key_at, g.at), seen);
  return {join_heads(attend(g.q, g.k, g.v, s)), g.all_k, g.all_v};
}

}  // namespace

OperatorTable contrib_grouped_query_attention_operators() {
  static constexpr Operator operators[] = {
      {"GroupQueryAttention", 1, group_query_attention},
      {"SparseAttention", 1, sparse_attention},
  };
  return operators;
}

}  // namespace paddle::onnx
