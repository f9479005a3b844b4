// Attention in the forms of com.microsoft.

#include <cmath>
#include <limits>

#include "onnx/operators.h"
#include "onnx/quantization.h"

namespace paddle::onnx {
namespace {

/// [batch, steps, heads * size] as [batch, heads, steps, size].
Tensor heads_of(const Tensor& x, int64_t heads) {
  return ops::transpose(
      ops::reshape(x, {x.dim(0), x.dim(1), Dim(heads), floor_divide(x.dim(2), heads)}),
      {0, 2, 1, 3});
}
Tensor joined(const Tensor& y) {
  return ops::reshape(ops::transpose(y, {0, 2, 1, 3}), {y.dim(0), y.dim(2), y.dim(1) * y.dim(3)});
}

Tensor count_up(const Dim& n) {
  return ops::arange(AttrValue(0), AttrValue(n), AttrValue(1), DType::kI64);
}

struct Scores {
  double scale = 0;  ///< 0: 1 / sqrt(size)
  double softcap = 0;
  Tensor bias;     ///< added; may be absent
  Tensor allowed;  ///< bool; may be absent
  Tensor sink;     ///< a score per head that takes its part and gives nothing; may be absent

  void add(const Tensor& more) { bias = bias ? bias + more : more; }
};

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Scores& s) {
  const double scale =
      s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(known_size(q, 3)));
  if (!s.bias && !s.allowed && !s.sink && s.softcap == 0) {
    const auto turned = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
    return turned(ops::attention(turned(q), turned(k), turned(v), {}, scale));
  }
  Tensor x = ops::matmul(q, k, false, true) * scale;
  if (s.softcap != 0) x = ops::tanh(x / s.softcap) * s.softcap;
  if (s.bias) x = x + s.bias;
  if (s.allowed)
    x = ops::where(s.allowed, x, scalar(-std::numeric_limits<double>::infinity(), x.dtype()));
  if (!s.sink) return ops::matmul(ops::softmax(x, -1), v);
  const Tensor sink = ops::expand(ops::reshape(ops::cast(s.sink, x.dtype()), {1, -1, 1, 1}),
                                  {x.dim(0), x.dim(1), x.dim(2), Dim(1)});
  return ops::matmul(part(ops::softmax(ops::concat({x, sink}, 3), -1), 3, 0, x.dim(3)), v);
}

/// Which keys each query may look at, when those before it come first.
Tensor causal(const Dim& queries, const Dim& keys) {
  const Tensor at = ops::unsqueeze(count_up(queries), {1}) + dim_value(keys - queries, DType::kI64);
  return ops::less_equal(ops::unsqueeze(count_up(keys), {0}), at);
}

Tensor both(const Tensor& a, const Tensor& b) { return a ? ops::logical_and(a, b) : b; }

/// What a mask adds to the scores: `filter` where it forbids a key. It is [batch, keys], [batch,
/// queries, keys], or a vector of where the keys end, behind which where they begin or (three
/// times the batch and two) sums of lengths may stand.
Tensor scores_of_mask(const Tensor& mask, const Dim& batch, const Dim& keys, double filter,
                      DType dtype) {
  Tensor kept;
  if (mask.ndim() == 1) {
    const Tensor at = ops::reshape(count_up(keys), {1, 1, 1, keys});
    const auto limits = [&](const Dim& from) {
      const Tensor taken = ops::cast(part(mask, 0, from, from + batch), DType::kI64);
      return ops::reshape(taken, {batch, Dim(1), Dim(1), Dim(1)});
    };
    kept = ops::less_than(at, limits(0));
    if (mask.dim(0).equals(batch * 2).value_or(false))
      kept = ops::logical_and(kept, ops::greater_equal(at, limits(batch)));
  } else {
    kept = ops::unsqueeze(ops::greater_equal(mask, integer_scalar(1, mask.dtype())),
                          mask.ndim() == 2 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1});
  }
  return ops::where(kept, scalar(0, dtype), scalar(filter, dtype));
}

/// What inputs i (a mask) and j (a bias) and attributes say of scores of q and k.
Scores scores_of(const NodeCall& c, const Tensor& q, const Tensor& k, size_t i, size_t j) {
  Scores s;
  s.scale = c.real("scale", 0);
  s.bias = c.tensor_or_none(j);
  if (c.has(i))
    s.add(scores_of_mask(c.tensor(i), q.dim(0), k.dim(2), c.real("mask_filter_value", -10000),
                         q.dtype()));
  if (c.flag("unidirectional", false)) s.allowed = causal(q.dim(2), k.dim(2));
  return s;
}

/// Attention of queries, keys and values that lie side by side, past ones (input `past`) first.
Values attention_of(const NodeCall& c, const Tensor& all, size_t mask, size_t past, size_t bias) {
  const int64_t heads = c.integer("num_heads", 0);
  c.check(heads > 0, "num_heads is missing");
  auto sizes = c.integers("qkv_hidden_sizes");
  const int64_t width = known_size(all, 2);
  if (sizes.empty()) sizes.assign(3, width / 3);
  c.check(sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == width,
          "qkv_hidden_sizes do not fit the weight");
  const Tensor q = heads_of(part(all, 2, 0, sizes[0]), heads);
  Tensor k = heads_of(part(all, 2, sizes[0], sizes[0] + sizes[1]), heads);
  Tensor v = heads_of(part(all, 2, sizes[0] + sizes[1], width), heads);
  if (c.has(past)) {
    const auto before = [&](int64_t i) {
      return ops::squeeze(part(c.tensor(past), 0, i, i + 1), std::vector<int64_t>{0});
    };
    k = ops::concat({before(0), k}, 2);
    v = ops::concat({before(1), v}, 2);
  }
  Values out = {joined(attend(q, k, v, scores_of(c, q, k, mask, bias)))};
  if (c.wants(1)) out.emplace_back(ops::stack({k, v}, 0));
  return out;
}

/// Projects to queries, keys and values with one weight.
Values attention(NodeCall& c) {
  Tensor all = ops::matmul(c.tensor(0), c.tensor(1));
  if (c.has(2)) all = all + c.tensor(2);
  return attention_of(c, all, 3, 4, 5);
}

/// The same on bytes.
Values quantized_attention(NodeCall& c) {
  const Tensor y = product_to_float(c, c.tensor(0), c.tensor_or_none(6), c.tensor(3), 1, 4, 7);
  return attention_of(c, c.has(2) ? y + c.tensor(2) : y, 5, 8, c.input_count());
}

Values multi_head_attention(NodeCall& c) {
  const int64_t heads = c.integer("num_heads", 0);
  c.check(heads > 0, "num_heads is missing");
  c.check(c.has(1) && c.has(2), "packed queries, keys and values are not supported");
  Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2);
  if (c.has(3)) {
    const Dim width = q.dim(2);
    const auto bias = [&](const Dim& from, const Dim& to) {
      return part(c.tensor(3), 0, from, to);
    };
    q = q + bias(0, width);
    if (k.ndim() == 3) k = k + bias(width, width * 2);
    if (v.ndim() == 3) v = v + bias(width * 2, width * 2 + v.dim(2));
  }
  q = heads_of(q, heads);
  if (k.ndim() == 3) k = heads_of(k, heads);
  if (v.ndim() == 3) v = heads_of(v, heads);
  if (c.has(6)) {
    k = ops::concat({c.tensor(6), k}, 2);
    v = ops::concat({c.tensor(7), v}, 2);
  }
  return {joined(attend(q, k, v, scores_of(c, q, k, 4, 5))), k, v};
}

/// x [batch, heads, steps, size] turned by the angles of `places` [batch, steps].
Tensor rotated(const NodeCall& c, const Tensor& x, const Tensor& places, const Tensor& cosines,
               const Tensor& sines, bool neighbours, int64_t width) {
  const int64_t size = known_size(x, 3);
  if (width == 0) width = 2 * known_size(cosines, 1);
  c.check(width <= size && width % 2 == 0, "the rotated part of ", width, " does not fit ", size);
  const auto rows = [&](const Tensor& table) {
    const Tensor taken = ops::index_select(table, ops::reshape(places, Shape{-1}), 0);
    return ops::reshape(taken, {places.dim(0), Dim(1), places.dim(1), table.dim(1)});
  };
  const Tensor out =
      ops::rotary_embedding(part(x, 3, 0, width), rows(cosines), rows(sines), neighbours);
  return width == size ? out : ops::concat({out, part(x, 3, width, size)}, 3);
}

/// Places are one start for all, or one number each.
Values rotary_embedding(NodeCall& c) {
  const Tensor& in = c.tensor(0);
  const bool packed = in.ndim() == 3;
  const Tensor &cosines = c.tensor(2), &sines = c.tensor(3);
  int64_t heads = c.integer("num_heads", 0);
  if (packed && heads == 0) heads = known_size(in, 2) / (2 * known_size(cosines, 1));
  const Tensor x = packed ? heads_of(in, heads) : in;
  Tensor places = ops::cast(c.tensor(1), DType::kI64);
  if (places.ndim() < 2 || !places.dim(0).equals(x.dim(0)).value_or(true))
    places = ops::expand(ops::reshape(places, {1, 1}) + ops::unsqueeze(count_up(x.dim(2)), {0}),
                         {x.dim(0), x.dim(2)});
  const Tensor y = rotated(c, x, places, cosines, sines, c.flag("interleaved", false),
                           c.integer("rotary_embedding_dim", 0));
  return {packed ? joined(y) : y};
}

/// Past and new keys (or values): new ones stand at `places`, which differ by sample, behind the
/// past and before zeros, in as many as the cache holds or the sequence has.
Tensor extended(const Tensor& past, const Tensor& now, const Tensor& places, const Dim& total) {
  if (!past) return now;
  const Dim length = maximum(past.dim(2), total), room = past.dim(2) + now.dim(2);
  Tensor base = past;
  if (!length.same(past.dim(2))) {
    base = ops::concat({past, ops::full(now.shape(), 0.0, now.dtype())}, 2);
    if (!length.same(room)) base = part(base, 2, 0, length);
  }
  const Tensor each = ops::reshape(places, {now.dim(0), Dim(1), now.dim(2), Dim(1)});
  const Tensor kept =
      ops::less_than(ops::reshape(count_up(length), {1, 1, length, 1}), part(each, 2, 0, 1));
  base = ops::where(kept, base, scalar(0, base.dtype()));
  return ops::scatter_along(base, ops::expand(each, now.shape()), now, 2, "assign");
}

Values group_query_attention(NodeCall& c) {
  const int64_t heads = c.integer("num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  c.check(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "the numbers of heads do not fit");
  Tensor q = c.tensor(0), k = c.tensor_or_none(1), v = c.tensor_or_none(2);
  if (!k) {
    const int64_t size = known_size(q, 2) / (heads + 2 * kv_heads);
    const Tensor all = q;
    q = part(all, 2, 0, heads * size);
    k = part(all, 2, heads * size, (heads + kv_heads) * size);
    v = part(all, 2, (heads + kv_heads) * size, (heads + 2 * kv_heads) * size);
  }
  q = heads_of(q, heads);
  k = heads_of(k, kv_heads);
  v = heads_of(v, kv_heads);
  const Dim steps = q.dim(2);
  const Tensor past_k = c.tensor_or_none(3), past_v = c.tensor_or_none(4);
  // How long the longest sequence is with the new steps. Where all of it is new, padding may stand
  // behind the last valid step of a sample; else each sample's steps end with that.
  const Dim total = past_k ? c.known_dims(6).at(0) : steps;
  const Tensor count = ops::unsqueeze(count_up(steps), {0});
  Tensor places = ops::expand(count, {q.dim(0), steps});
  if (!total.same(steps)) {
    const Tensor ends = ops::reshape(ops::cast(c.tensor(5), DType::kI64), {q.dim(0), Dim(1)});
    const Tensor start =
        ops::maximum(ends + integer_scalar(1) - dim_value(steps, DType::kI64), integer_scalar(0));
    const Tensor whole = ops::equal(dim_value(total, DType::kI64), dim_value(steps, DType::kI64));
    places = ops::where(whole, integer_scalar(0), start) + count;
  }
  if (c.flag("do_rotary", false)) {
    const bool neighbours = c.flag("rotary_interleaved", false);
    const Tensor turns = c.has(9) ? ops::cast(c.tensor(9), DType::kI64) : places;
    q = rotated(c, q, turns, c.tensor(7), c.tensor(8), neighbours, 0);
    k = rotated(c, k, turns, c.tensor(7), c.tensor(8), neighbours, 0);
  }
  const Tensor all_k = extended(past_k, k, places, total);
  const Tensor all_v = extended(past_v, v, places, total);
  const auto repeated = [&](const Tensor& x) {
    if (heads == kv_heads) return x;
    const Shape wide = {x.dim(0), x.dim(1), Dim(heads / kv_heads), x.dim(2), x.dim(3)};
    return ops::reshape(ops::expand(ops::unsqueeze(x, {2}), wide),
                        {x.dim(0), Dim(heads), x.dim(2), x.dim(3)});
  };
  const Dim keys = all_k.dim(2);
  const Tensor at = ops::reshape(places, {q.dim(0), Dim(1), steps, Dim(1)});
  const Tensor key_at = ops::reshape(count_up(keys), {1, 1, 1, keys});
  Scores s;
  s.scale = c.real("scale", 0);
  s.softcap = c.real("softcap", 0);
  s.allowed = ops::less_equal(key_at, at);
  if (const int64_t window = c.integer("local_window_size", -1); window > 0)
    s.allowed = both(s.allowed, ops::less_than(at - key_at, integer_scalar(window)));
  s.bias = c.tensor_or_none(10);
  s.sink = c.tensor_or_none(11);
  if (!s.sink && c.flag("smooth_softmax", false)) s.sink = ops::full({Dim(heads)}, 0.0, q.dtype());
  return {joined(attend(q, repeated(all_k), repeated(all_v), s)), all_k, all_v};
}

constexpr Operator kOperators[] = {
    {"Attention", 1, attention},
    {"QAttention", 1, quantized_attention},
    {"MultiHeadAttention", 1, multi_head_attention},
    {"GroupQueryAttention", 1, group_query_attention},
    {"RotaryEmbedding", 1, rotary_embedding},
};

}  // namespace

std::span<const Operator> microsoft_attention_operators() { return kOperators; }

}  // namespace paddle::onnx
