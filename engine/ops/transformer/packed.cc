// Rules of packed.yaml, in terms of scaled_dot_product_attention.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "ops/generated/transformer_rules.h"

namespace paddle::rules {
namespace {

struct PackedHeads {
  Tensor query, key, value;
};

/// The parts of [..., heads / key heads + 2, key heads, dim].
PackedHeads parts_of_packed(std::string_view op, const Tensor& qkv, int64_t rank) {
  if (qkv.ndim() != rank || qkv.dim(-3).less(3) == true)
    reject(op, "qkv must be [", rank == 5 ? "batch, sequence" : "tokens",
           ", heads / key heads + 2, key heads, dim], not ", qkv.type());
  const int64_t axis = rank - 3;
  const Dim parts = qkv.dim(axis);
  Shape shape(qkv.shape().begin(), qkv.shape().end() - 3);
  shape.push_back((parts - 2) * qkv.dim(-2));
  shape.push_back(qkv.dim(-1));
  const auto part = [&](const Dim& from, const Dim& to) {
    return ops::squeeze(slice_axis(qkv, axis, from, to), Axes{axis});
  };
  return {ops::reshape(slice_axis(qkv, axis, 0, parts - 2), shape), part(parts - 2, parts - 1),
          part(parts - 1, parts)};
}

/// x [batch, sequence, key heads, dim] with each head repeated for its group of queries.
Tensor for_each_head(const Tensor& x, const Dim& heads) {
  if (heads.equals(x.dim(2)) == true) return x;
  const Dim each = floor_divide(heads, x.dim(2).value());
  return ops::reshape(
      ops::expand(ops::unsqueeze(x, {3}), {x.dim(0), x.dim(1), x.dim(2), each, x.dim(3)}),
      {x.dim(0), x.dim(1), heads, x.dim(3)});
}

/// PackedSequences of different lengths as rows of a batch, each of `most` positions.
class PackedSequences {
 public:
  /// `bounds` are the ends of the sequences after a 0; `padded` rows are a batch already. Without
  /// `padded`, a batch that is not `shown` needs no more positions than there are rows.
  PackedSequences(std::string_view op, const char* name, const Tensor& bounds, const Tensor& rows,
                  int64_t most, bool padded, bool shown)
      : most_(most), padded_(padded) {
    if (bounds.ndim() != 1 || bounds.dim(0).less(2) == true)
      reject(op, "cu_seqlens_", name, " must be [sequences + 1], not ", bounds.type());
    if (most < 1) reject(op, "max_seqlen_", name, " must be positive, not ", most);
    if (!padded && !shown && rows.dim(0).is_constant())
      most_ = std::clamp<int64_t>(rows.dim(0).value(), 1, most);
    const Tensor ends = ops::cast(bounds, DType::kI64);
    count_ = bounds.dim(0) - 1;
    lengths_ = slice_axis(ends, 0, 1, bounds.dim(0)) - slice_axis(ends, 0, 0, count_);
    const Dim total = rows.dim(0);
    if (padded) {
      if (total.equals(count_ * most) == false)
        reject(op, "padded rows must be ", count_ * most, ", max_seqlen_", name,
               " for each sequence, not ", total);
      return;
    }
    const Tensor sequence = ops::sequence_rows(lengths_, total);
    const Tensor starts = ops::cumsum(lengths_, int64_t{0}) - lengths_;
    const Tensor place = range_of(total, DType::kI64) - ops::index_select(starts, sequence, 0);
    // A sequence that is longer than max_seqlen is rejected as an index out of range.
    row_ = ops::where(ops::less_than(place, integer(most_)), sequence * integer(most_) + place,
                      integer(std::numeric_limits<int64_t>::max() / 4));
  }

  Dim count() const { return count_; }
  int64_t most() const { return most_; }
  /// The lengths, [sequences, 1, 1, 1].
  Tensor lengths() const { return ops::reshape(lengths_, {count_, Dim(1), Dim(1), Dim(1)}); }
  /// The positions, [most].
  Tensor places() const { return range_of(Dim(most_), DType::kI64); }

  /// [tokens, heads, dim] as [sequences, most, heads, dim], zeros after the ends.
  Tensor spread(const Tensor& rows) const {
    const Shape shape = {count_, Dim(most_), rows.dim(1), rows.dim(2)};
    if (padded_) return ops::reshape(rows, shape);
    return ops::reshape(ops::segment_reduce(rows, row_, count_ * most_, std::string("sum")), shape);
  }
  /// The inverse of spread.
  Tensor gathered(const Tensor& batch) const {
    const Tensor rows = ops::reshape(batch, {count_ * most_, batch.dim(2), batch.dim(3)});
    return padded_ ? rows : ops::index_select(rows, row_, 0);
  }

 private:
  int64_t most_;
  bool padded_;
  Dim count_;
  Tensor lengths_, row_;
};

struct SequenceOptions {
  int64_t max_q, max_k;
  double scale, dropout;
  bool causal, return_softmax, training, padded;
};

Tensors of_sequences(std::string_view op, const PackedHeads& in, const Tensor& cu_q,
                     const Tensor& cu_k, const SequenceOptions& a) {
  for (const Tensor* t : {&in.query, &in.key, &in.value})
    if (t->ndim() != 3) reject(op, "operands must be [tokens, heads, dim], not ", t->type());
  const PackedSequences q(op, "q", cu_q, in.query, a.max_q, a.padded, a.return_softmax);
  const PackedSequences k(op, "k", cu_k, in.key, a.max_k, a.padded, a.return_softmax);
  if (q.count().equals(k.count()) == false)
    reject(op, "cu_seqlens_q has ", q.count(), " sequences, cu_seqlens_k ", k.count());
  const Tensor row = ops::reshape(q.places(), {1, 1, q.most(), 1}), column = k.places();
  const Tensor inside = ops::less_than(row, q.lengths());
  // The number of keys that each query sees: none after the end of its sequence.
  Tensor seen = ops::expand(k.lengths(), {q.count(), Dim(1), Dim(q.most()), Dim(1)});
  if (a.causal) seen = ops::minimum(seen, row + k.lengths() - q.lengths() + integer(1));
  seen = ops::where(inside, seen, integer(0));
  const Tensor sees_some = ops::greater_than(seen, integer(0));
  // Queries that see nothing see everything, so that nothing is undefined, and become zero.
  const Tensor visible = ops::logical_or(ops::less_than(column, seen), ops::logical_not(sees_some));
  const Tensor query = q.spread(in.query), key = k.spread(in.key), value = k.spread(in.value);
  const Tensor mixed = ops::scaled_dot_product_attention(query, key, value, visible, a.dropout,
                                                         false, a.training, std::nullopt, a.scale);
  const Tensor shown = ops::transpose(sees_some, {0, 2, 1, 3});
  Tensors out = {q.gathered(ops::where(shown, mixed, number(0.0)))};
  if (!a.return_softmax) return out;
  const auto heads_first = [](const Tensor& t) { return ops::transpose(t, {0, 2, 1, 3}); };
  const Tensor scores =
      ops::matmul(heads_first(query), heads_first(for_each_head(key, query.dim(2))), false, true) *
      a.scale;
  const Tensor weights = ops::softmax(ops::where(visible, scores, number(-INFINITY)), -1);
  out.push_back(ops::where(sees_some, weights, number(0.0)));
  return out;
}

}  // namespace

Tensors decompose_flash_attn_qkvpacked(CallContext& c) {
  const auto a = c.attrs_as<FlashAttnQkvpackedAttrs>();
  const PackedHeads in = parts_of_packed(c.op().name(), c.operand(0), 5);
  const Dim heads = in.query.dim(2);
  return ops::flash_attention(in.query, for_each_head(in.key, heads),
                              for_each_head(in.value, heads), a.dropout, a.causal, a.return_softmax,
                              {}, {}, a.training);
}

Tensors decompose_flash_attn_unpadded(CallContext& c) {
  const auto a = c.attrs_as<FlashAttnUnpaddedAttrs>();
  return of_sequences(c.op().name(), {c.operand(0), c.operand(1), c.operand(2)}, c.operand(3),
                      c.operand(4),
                      {a.max_seqlen_q, a.max_seqlen_k, a.scale, a.dropout, a.causal,
                       a.return_softmax, a.training, false});
}

Tensors decompose_flash_attn_varlen_qkvpacked(CallContext& c) {
  const auto a = c.attrs_as<FlashAttnVarlenQkvpackedAttrs>();
  const std::string_view op = c.op().name();
  return of_sequences(op, parts_of_packed(op, c.operand(0), 4), c.operand(1), c.operand(2),
                      {a.max_seqlen_q, a.max_seqlen_k, a.scale, a.dropout, a.causal,
                       a.return_softmax, a.training, a.varlen_padded});
}

Tensors decompose_self_dp_attention(CallContext& c) {
  const auto a = c.attrs_as<SelfDpAttentionAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() != 5 || x.dim(2).equals(3) == false || x.dim(3).equals(a.head_number) == false)
    reject(c.op().name(), "x must be [batch, sequence, 3, ", a.head_number, ", dim], not ",
           x.type());
  const auto part = [&](int64_t i) { return ops::squeeze(slice_axis(x, 2, i, i + 1), Axes{2}); };
  return {ops::scaled_dot_product_attention(part(0), part(1), part(2), {}, 0.0, false, false,
                                            std::nullopt, a.alpha)};
}

}  // namespace paddle::rules
