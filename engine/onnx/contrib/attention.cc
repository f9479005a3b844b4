// Attention operators of com.microsoft.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "onnx/ops/helpers.h"
#include "onnx/ops/quantization.h"

namespace paddle::onnx {
namespace {

/// [batch, steps, heads * size] to [batch, heads, steps, size].
Tensor split_heads(const Tensor& x, int64_t heads) {
  return ops::transpose(
      ops::reshape(x, {x.dim(0), x.dim(1), Dim(heads), floor_divide(x.dim(2), heads)}),
      {0, 2, 1, 3});
}
Tensor joined(const Tensor& y) {
  return ops::reshape(ops::transpose(y, {0, 2, 1, 3}), {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)});
}

struct ScoreOptions {
  double scale = 0;  ///< 0: 1 / sqrt(size)
  double softcap = 0;
  Tensor bias;     ///< added; may be undefined
  Tensor allowed;  ///< bool mask; may be undefined
  Tensor sink;     ///< attention sink: a logit per head without a value; may be undefined

  void add(const Tensor& more) { bias = bias ? bias + more : more; }
};

double scale_of(const Tensor& q, const ScoreOptions& s) {
  return s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(constant_dim(q, 3)));
}

/// Stands for minus infinity, so that softmax of a fully masked row is finite.
double lowest_finite(DType dtype) {
  return dtype == DType::kF16 ? -65504.0
                              : static_cast<double>(std::numeric_limits<float>::lowest());
}

/// The input of softmax: scaled and masked scores.
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

/// Causal mask with `past` cached keys. As in ONNX Runtime, the last query sees all keys even if
/// there are more keys than queries.
Tensor causal(const Dim& queries, const Dim& keys, const Dim& past) {
  const Tensor position = ops::unsqueeze(iota(queries), {1});
  const Tensor at = ops::unsqueeze(iota(keys), {0});
  const Tensor before = ops::less_equal(at, position + dim_value(past, DType::kI64));
  if (keys.same(queries + past)) return before;
  return ops::logical_or(before, ops::equal(position, dim_value(queries - 1, DType::kI64)));
}

Tensor both(const Tensor& a, const Tensor& b) { return a ? ops::logical_and(a, b) : b; }

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
  Values out = {joined(attend(q, k, v, score_options(c, q, k, k.dim(2) - steps, mask, bias)))};
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
struct InputIndices {
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
Values multi_head_attention(NodeCall& c, const InputIndices& at) {
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
  Values out = {joined(attend(q, k, v, scores)), all_k, all_v};
  if (c.has_output(3)) out.emplace_back(masked_scores(q, k, scores));
  return out;
}

Values multi_head_attention(NodeCall& c) {
  return multi_head_attention(
      c, {.bias = 3, .mask = 4, .added = 5, .past = 6, .length = 8, .beams = 9});
}

/// One new step per sample.
Values decoder_attention(NodeCall& c) {
  return multi_head_attention(
      c, {.bias = 10, .mask = 3, .added = 4, .past = 5, .length = 7, .beams = 9});
}

/// Rows of a cosine or sine table at `positions` [batch, steps], for all heads.
Tensor lookup_angles(const Tensor& table, const Tensor& positions) {
  const Tensor rows = ops::index_select(table, ops::reshape(positions, Shape{-1}), 0);
  return ops::reshape(rows, {positions.dim(0), Dim(1), positions.dim(1), table.dim(1)});
}

/// Rotates the first `width` features of x [batch, heads, steps, size]; 0 means all that the angles
/// cover.
Tensor rotate(const NodeCall& c, const Tensor& x, const Tensor& cosines, const Tensor& sines,
              bool interleaved, int64_t width) {
  const int64_t size = constant_dim(x, 3);
  if (width == 0) width = 2 * constant_dim(cosines, 3);
  c.check(width <= size && width % 2 == 0, "the rotary dimension ", width, " does not match ",
          size);
  const Tensor out = ops::rotary_embedding(slice_axis(x, 3, 0, width), cosines, sines, interleaved);
  return width == size ? out : ops::concat({out, slice_axis(x, 3, width, size)}, 3);
}

/// Rotates x by the angles of `positions` [batch, steps].
Tensor rotate_at(const NodeCall& c, const Tensor& x, const Tensor& positions, const Tensor& cosines,
                 const Tensor& sines, bool interleaved, int64_t width) {
  return rotate(c, x, lookup_angles(cosines, positions), lookup_angles(sines, positions),
                interleaved, width);
}

/// Splits heads unless x is [batch, heads, steps, size] already.
Tensor with_split_heads(const NodeCall& c, const Tensor& x, const Tensor& cosines) {
  if (x.ndim() != 3) return x;
  int64_t heads = c.int_attr("num_heads", 0);
  if (heads == 0) heads = constant_dim(x, 2) / (2 * constant_dim(cosines, 1));
  c.check(heads > 0, "num_heads is ", heads);
  return split_heads(x, heads);
}

/// Three rows of positions (time, height, width) share the angles: in sections, or interleaved up
/// to the count of each.
Values multimodal_rotary_embedding(NodeCall& c) {
  const Tensor &in = c.tensor(0), &cosines = c.tensor(2), &sines = c.tensor(3);
  const Tensor positions = ops::cast(c.tensor(1), DType::kI64);
  const auto counts = c.ints_attr("mrope_section");
  const int64_t columns = constant_dim(cosines, 1), layout = c.int_attr("mrope_layout", 0);
  c.check(counts.size() == 3 &&
              std::ranges::all_of(counts, [&](int64_t n) { return n >= 0 && n <= columns; }) &&
              counts[0] + counts[1] + counts[2] == columns,
          "mrope_section does not match ", columns, " angles");
  c.check(layout == 0 || layout == 1, "unknown mrope_layout ", layout);
  c.check(positions.ndim() == 3 && positions.dim(0).equals(3).value_or(true),
          "position_ids must be [3, batch, steps]");
  std::array<std::vector<int64_t>, 3> owned = {};
  for (int64_t i = 0; i < columns; ++i) {
    size_t row = i < counts[0] ? 0 : i < counts[0] + counts[1] ? 1 : 2;
    if (layout == 1)
      row =
          i % 3 != 0 && i < 3 * counts[static_cast<size_t>(i % 3)] ? static_cast<size_t>(i % 3) : 0;
    for (size_t k = 0; k < 3; ++k) owned[k].push_back(k == row ? 1 : 0);
  }
  const double scale = c.float_attr("scale", 1);
  const auto angles = [&](const Tensor& table) {
    Tensor out;
    for (int64_t k = 2; k >= 0; --k) {
      const Tensor each = lookup_angles(
          table, ops::squeeze(slice_axis(positions, 0, k, k + 1), std::vector<int64_t>{0}));
      const Tensor own = int_vector(owned[static_cast<size_t>(k)], DType::kBool);
      out = out ? ops::where(own, each, out) : each;
    }
    return scale == 1 ? out : out * scale;
  };
  const Tensor y = rotate(c, with_split_heads(c, in, cosines), angles(cosines), angles(sines),
                          c.bool_attr("interleaved", false), c.int_attr("rotary_embedding_dim", 0));
  return {in.ndim() == 3 ? joined(y) : y};
}

/// Positions are one start for all samples, or one number per step.
Values rotary_embedding(NodeCall& c) {
  const Tensor& in = c.tensor(0);
  const Tensor &cosines = c.tensor(2), &sines = c.tensor(3);
  const Tensor x = with_split_heads(c, in, cosines);
  Tensor positions = ops::cast(c.tensor(1), DType::kI64);
  if (positions.ndim() < 2 || !positions.dim(0).equals(x.dim(0)).value_or(true))
    positions = ops::expand(ops::reshape(positions, {1, 1}) + ops::unsqueeze(iota(x.dim(2)), {0}),
                            {x.dim(0), x.dim(2)});
  const Tensor y = rotate_at(c, x, positions, cosines, sines, c.bool_attr("interleaved", false),
                             c.int_attr("rotary_embedding_dim", 0));
  return {in.ndim() == 3 ? joined(y) : y};
}

/// Writes new keys (or values) at `positions`, which differ per sample, into the cache or behind
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

/// Indices of the inputs of grouped-query attention behind query, key, value and cache.
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
    s.allowed = both(s.allowed, ops::less_than(g.at - g.key_at, int_scalar(window)));
  s.bias = c.optional_tensor(10);
  s.sink = c.optional_tensor(11);
  if (!s.sink && c.bool_attr("smooth_softmax", false))
    s.sink = ops::full({g.q.dim(1)}, 0.0, g.q.dtype());
  return {joined(attend(g.q, g.k, g.v, s)), g.all_k, g.all_v};
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
  s.allowed = both(ops::less_equal(g.key_at, g.at), seen);
  return {joined(attend(g.q, g.k, g.v, s)), g.all_k, g.all_v};
}

constexpr Operator kOperators[] = {
    {"Attention", 1, attention},
    {"QAttention", 1, quantized_attention},
    {"MultiHeadAttention", 1, multi_head_attention},
    {"DecoderMaskedMultiHeadAttention", 1, decoder_attention},
    {"MRotaryEmbedding", 1, multimodal_rotary_embedding},
    {"GroupQueryAttention", 1, group_query_attention},
    {"SparseAttention", 1, sparse_attention},
    {"RotaryEmbedding", 1, rotary_embedding},
};

}  // namespace

OperatorTable contrib_attention_operators() { return kOperators; }

}  // namespace paddle::onnx
