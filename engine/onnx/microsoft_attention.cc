// Attention in the forms of com.microsoft.

#include <cmath>
#include <limits>

#include "onnx/operators.h"

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
  double forbidden = -std::numeric_limits<double>::infinity();
};

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Scores& s) {
  const double scale =
      s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(known_size(q, 3)));
  if (!s.bias && !s.allowed && s.softcap == 0) {
    const auto turned = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
    return turned(ops::attention(turned(q), turned(k), turned(v), {}, scale));
  }
  Tensor x = ops::matmul(q, k, false, true) * scale;
  if (s.softcap != 0) x = ops::tanh(x / s.softcap) * s.softcap;
  if (s.bias) x = x + s.bias;
  if (s.allowed) x = ops::where(s.allowed, x, scalar(s.forbidden, x.dtype()));
  return ops::matmul(ops::softmax(x, -1), v);
}

/// Which keys each query may look at, when those before it come first.
Tensor causal(const Dim& queries, const Dim& keys) {
  const Tensor at = ops::unsqueeze(count_up(queries), {1}) + dim_value(keys - queries, DType::kI64);
  return ops::less_equal(ops::unsqueeze(count_up(keys), {0}), at);
}

Tensor both(const Tensor& a, const Tensor& b) { return a ? ops::logical_and(a, b) : b; }

/// Keys that a mask of [batch, keys], of lengths [batch], or of [batch, queries, keys] leaves.
Tensor allowed_by(const Tensor& mask, const Dim& keys) {
  const Tensor one = integer_scalar(1, mask.dtype());
  if (mask.ndim() == 1) {
    const Tensor at = ops::reshape(count_up(keys), {1, 1, 1, keys});
    return ops::less_than(at, ops::reshape(ops::cast(mask, DType::kI64), {mask.dim(0), 1, 1, 1}));
  }
  const Tensor kept = ops::greater_equal(mask, one);
  return ops::unsqueeze(kept,
                        mask.ndim() == 2 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1});
}

/// Projects to queries, keys and values with one weight.
Values attention(NodeCall& c) {
  const int64_t heads = c.integer("num_heads", 0);
  c.check(heads > 0, "num_heads is missing");
  Tensor all = ops::matmul(c.tensor(0), c.tensor(1));
  if (c.has(2)) all = all + c.tensor(2);
  auto sizes = c.integers("qkv_hidden_sizes");
  const int64_t width = known_size(all, 2);
  if (sizes.empty()) sizes.assign(3, width / 3);
  c.check(sizes.size() == 3 && sizes[0] + sizes[1] + sizes[2] == width,
          "qkv_hidden_sizes do not fit the weight");
  const Tensor q = heads_of(part(all, 2, 0, sizes[0]), heads);
  Tensor k = heads_of(part(all, 2, sizes[0], sizes[0] + sizes[1]), heads);
  Tensor v = heads_of(part(all, 2, sizes[0] + sizes[1], width), heads);
  if (c.has(4)) {
    const auto past = [&](int64_t i) {
      return ops::squeeze(part(c.tensor(4), 0, i, i + 1), std::vector<int64_t>{0});
    };
    k = ops::concat({past(0), k}, 2);
    v = ops::concat({past(1), v}, 2);
  }
  Scores s;
  s.scale = c.real("scale", 0);
  s.forbidden = c.real("mask_filter_value", -10000);
  if (c.has(3)) s.allowed = allowed_by(c.tensor(3), k.dim(2));
  if (c.flag("unidirectional", false)) s.allowed = both(s.allowed, causal(q.dim(2), k.dim(2)));
  s.bias = c.tensor_or_none(5);
  Values out = {joined(attend(q, k, v, s))};
  if (c.wants(1)) out.emplace_back(ops::stack({k, v}, 0));
  return out;
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
  Scores s;
  s.scale = c.real("scale", 0);
  s.forbidden = c.real("mask_filter_value", -10000);
  if (c.has(4)) s.allowed = allowed_by(c.tensor(4), k.dim(2));
  if (c.flag("unidirectional", false)) s.allowed = both(s.allowed, causal(q.dim(2), k.dim(2)));
  s.bias = c.tensor_or_none(5);
  return {joined(attend(q, k, v, s)), k, v};
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

/// A new part of a cache: joined on, or written where it belongs in a cache of full length.
Tensor extended(const Tensor& past, const Tensor& now, const Tensor& places, bool in_place) {
  if (!past) return now;
  if (!in_place) return ops::concat({past, now}, 2);
  const Tensor at =
      ops::expand(ops::reshape(places, {now.dim(0), Dim(1), now.dim(2), Dim(1)}), now.shape());
  return ops::scatter_along(past, at, now, 2, "assign");
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
  // The last valid place of each sample counts from 0.
  const Tensor ends = ops::reshape(ops::cast(c.tensor(5), DType::kI64), {q.dim(0), Dim(1)});
  Tensor places = ends + integer_scalar(1) - dim_value(steps, DType::kI64) +
                  ops::unsqueeze(count_up(steps), {0});
  places = ops::maximum(places, integer_scalar(0));
  if (!c.has(3)) places = ops::expand(ops::unsqueeze(count_up(steps), {0}), {q.dim(0), steps});
  if (c.flag("do_rotary", false)) {
    const bool neighbours = c.flag("rotary_interleaved", false);
    q = rotated(c, q, places, c.tensor(7), c.tensor(8), neighbours, 0);
    k = rotated(c, k, places, c.tensor(7), c.tensor(8), neighbours, 0);
  }
  const Tensor past_k = c.tensor_or_none(3), past_v = c.tensor_or_none(4);
  bool in_place = false;
  if (past_k && c.value(6).is_known() && past_k.dim(2).is_constant() && steps.is_constant())
    in_place = past_k.dim(2).value() > 0 &&
               past_k.dim(2).value() + steps.value() != c.known_integer(6) &&
               past_k.dim(2).value() >= c.known_integer(6);
  const Tensor all_k = extended(past_k, k, places, in_place);
  const Tensor all_v = extended(past_v, v, places, in_place);
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
  return {joined(attend(q, repeated(all_k), repeated(all_v), s)), all_k, all_v};
}

constexpr Operator kOperators[] = {
    {"Attention", 1, attention},
    {"MultiHeadAttention", 1, multi_head_attention},
    {"GroupQueryAttention", 1, group_query_attention},
    {"RotaryEmbedding", 1, rotary_embedding},
};

}  // namespace

std::span<const Operator> microsoft_attention_operators() { return kOperators; }

}  // namespace paddle::onnx
