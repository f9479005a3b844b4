// block_multihead_attention of serving.yaml.

#include "ops/generated/creation.h"
#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "ops/generated/transformer_rules.h"
#include "ops/transformer/parts.h"

namespace paddle::rules {
namespace {

constexpr int64_t kOutOfRange = INT64_MAX / 4;  ///< as an index: rejected when the operation runs

Tensor part_of(const Tensor& x, int64_t axis, int64_t i) {
  return ops::squeeze(slice_axis(x, axis, i, i + 1), Axes{axis});
}

/// Either the keys or the values.
struct Cache {
  Tensor blocks;  ///< [blocks, key heads, size, dim]
  Tensor fresh;   ///< [tokens, key heads, dim]
  /// Of uint8 blocks: the integer is fresh * quant + 128 and back (integer - 128) * dequant, by key
  /// head [key heads] or, for scales that are found while texts are read, [batch, key heads].
  Tensor quant, dequant;
};

class BlockAttention {
 public:
  explicit BlockAttention(CallContext& c)
      : c_(c), a_(c.attrs_as<BlockMultiheadAttentionAttrs>()), op_(c.op().name()) {
    for (const char* name :
         {"pre_key_cache", "pre_value_cache", "qkv_out_scale", "mask", "tgt_mask"})
      if (optional(c, name).defined()) reject(op_, name, " is not supported");
    read_shapes();
    find_places();
    split_heads();
    read_scales(keys_, "cache_k_quant_scales", "cache_k_dequant_scales");
    read_scales(values_, "cache_v_quant_scales", "cache_v_dequant_scales");
  }

  Tensors run() {
    const Tensor new_keys = written(keys_), new_values = written(values_);
    Tensors out = {result(attend(new_keys, new_values)),
                   ops::reshape(qkv_, {tokens_, all_ * each_}), new_keys, new_values};
    if (a_.use_dynamic_cachekv_quant)
      for (const Tensor& scales : {keys_.quant, values_.quant, keys_.dequant, values_.dequant})
        out.push_back(scales);
    return out;
  }

 private:
  void read_shapes() {
    qkv_ = plus(c_.operand(0), optional(c_, "qkv_bias"));
    keys_.blocks = c_.operand(1), values_.blocks = c_.operand(2);
    const Tensor tables = optional(c_, "block_tables");
    if (qkv_.ndim() != 2 || keys_.blocks.ndim() != 4 || tables.ndim() != 2 ||
        !same_shape(keys_.blocks.shape(), values_.blocks.shape()))
      reject(op_,
             "qkv must be [tokens, width], the caches [blocks, heads, size, dim] and block_tables ",
             "[batch, n], not ", qkv_.type(), ", ", keys_.blocks.type(), ", ",
             values_.blocks.type(), " and ", tables.type());
    tokens_ = qkv_.dim(0), groups_ = keys_.blocks.dim(1), size_ = keys_.blocks.dim(2);
    each_ = keys_.blocks.dim(3), batch_ = tables.dim(0), per_sequence_ = tables.dim(1);
    if (!qkv_.dim(1).is_constant() || !each_.is_constant() || !groups_.is_constant() ||
        each_.value() < 1 || qkv_.dim(1).value() % each_.value() != 0 ||
        qkv_.dim(1).value() / each_.value() <= 2 * groups_.value())
      reject(op_, "qkv ", qkv_.type(), " does not match caches ", keys_.blocks.type());
    if (size_.equals(a_.block_size) == false)
      reject(op_, "block_size is ", a_.block_size, ", the caches are ", keys_.blocks.type());
    all_ = qkv_.dim(1).value() / each_.value(), heads_ = all_ - groups_ * 2;
    table_ = ops::cast(tables, DType::kI64);
    quantized_ = keys_.blocks.dtype() == DType::kU8;
    const DType expected = quantized_ ? DType::kU8 : qkv_.dtype();
    for (const Tensor* cache : {&keys_.blocks, &values_.blocks})
      if (cache->dtype() != expected)
        reject(op_, "the caches must be ", text(qkv_.dtype()), " like qkv, or uint8, not ",
               keys_.blocks.type(), " and ", values_.blocks.type());
  }

  Tensor lengths_of(const char* name) const {
    return flat(ops::cast(optional(c_, name), DType::kI64));
  }

  /// The sequence of each token, its position there, and the slot of a cache that it goes to.
  void find_places() {
    const Tensor lengths = lengths_of("seq_lens_this_time");
    present_ = lengths_of("seq_lens_decoder");
    sequence_ = ops::sequence_rows(lengths, tokens_);
    const Tensor starts = ops::cumsum(lengths, int64_t{0}) - lengths;
    order_ = range_of(tokens_, DType::kI64) - ops::index_select(starts, sequence_, 0);
    place_ = order_ + ops::index_select(present_, sequence_, 0);
    // A position after the table, or in a block that is not there, is rejected as an index out of
    // range.
    const Tensor width = dim_value(size_, DType::kI64),
                 columns = dim_value(per_sequence_, DType::kI64);
    const Tensor column = ops::floor_divide(place_, width);
    const Tensor entry = ops::where(ops::less_than(column, columns), sequence_ * columns + column,
                                    integer(kOutOfRange));
    const Tensor block = ops::index_select(flat(table_), entry, 0);
    slot_ = ops::where(ops::less_than(block, integer(0)), integer(kOutOfRange),
                       block * width + ops::remainder(place_, width));
  }

  void split_heads() {
    qkv_ = ops::reshape(qkv_, {tokens_, all_, each_});
    query_ = slice_axis(qkv_, 1, 0, heads_);
    keys_.fresh = slice_axis(qkv_, 1, heads_, heads_ + groups_);
    values_.fresh = slice_axis(qkv_, 1, heads_ + groups_, all_);
    const Tensor rope = optional(c_, "rope_emb");
    if (!rope.defined()) return;
    if (rope.ndim() != 5 || rope.dim(0).equals(2) == false || rope.dim(3).equals(1) == false)
      reject(op_, "rope_emb must be [2, batch or 1, length, 1, dim / 2], not ", rope.type());
    const bool shared = rope.dim(1).equals(1) == true;
    const Dim length = rope.dim(2), half = rope.dim(4);
    const Tensor row = shared ? place_ : sequence_ * dim_value(length, DType::kI64) + place_;
    const auto part = [&](int64_t i) {
      const Tensor table = ops::reshape(part_of(rope, 0, i), {rope.dim(1) * length, half});
      return ops::reshape(ops::index_select(table, row, 0), {tokens_, Dim(1), Dim(1), half});
    };
    for (Tensor* t : {&query_, &keys_.fresh})
      *t = ops::squeeze(turned(ops::unsqueeze(*t, Axes{1}), part(0), part(1), !a_.use_neox_style),
                        Axes{1});
  }

  /// Scales of a quantized cache; those of sequences whose first tokens come now are found from
  /// these with use_dynamic_cachekv_quant.
  void read_scales(Cache& cache, const char* quant, const char* dequant) {
    cache.quant = optional(c_, quant), cache.dequant = optional(c_, dequant);
    if (!quantized_) {
      if (cache.quant.defined() || cache.dequant.defined() || a_.use_dynamic_cachekv_quant)
        reject(op_, "scales of caches need uint8 caches, not ", cache.blocks.type());
      return;
    }
    const bool dynamic = a_.use_dynamic_cachekv_quant;
    for (const auto& [name, scales] : {std::pair(quant, &cache.quant), {dequant, &cache.dequant}}) {
      if (!scales->defined()) reject(op_, name, " is missing: the caches are uint8");
      const bool fits = scales->ndim() == (dynamic ? 2 : 1) &&
                        scales->dim(-1).equals(groups_) != false &&
                        (!dynamic || scales->dim(0).equals(batch_) != false);
      if (!fits)
        reject(op_, name, " must be [", dynamic ? "batch, " : "", "key heads], not ",
               scales->type());
    }
    if (!dynamic) return;
    const Tensor largest =
        ops::segment_reduce(ops::max(ops::abs(cache.fresh), Axes{2}), sequence_, batch_,
                            std::string("max"));  // [batch, key heads]
    const Tensor floor = ops::maximum(ops::cast(largest, cache.quant.dtype()), number(1e-30));
    const Tensor starts = ops::reshape(
        ops::greater_than(lengths_of("seq_lens_encoder"), integer(0)), {batch_, Dim(1)});
    cache.quant = ops::where(starts, number(a_.quant_max_bound) / floor, cache.quant);
    cache.dequant = ops::where(starts, floor / a_.quant_max_bound, cache.dequant);
  }

  /// The blocks with the new tokens in their slots.
  Tensor written(const Cache& cache) const {
    const Tensor& blocks = cache.blocks;
    const Tensor rows =
        ops::reshape(ops::transpose(blocks, {0, 2, 1, 3}), {blocks.dim(0) * size_, groups_, each_});
    const Tensor next = ops::scatter_nd_put(rows, ops::unsqueeze(slot_, Axes{1}), as_stored(cache));
    return ops::transpose(ops::reshape(next, {blocks.dim(0), size_, groups_, each_}), {0, 2, 1, 3});
  }

  Tensor as_stored(const Cache& cache) const {
    if (!quantized_) return cache.fresh;
    const Tensor scale =
        a_.use_dynamic_cachekv_quant
            ? ops::reshape(ops::index_select(cache.quant, sequence_, 0), {tokens_, groups_, Dim(1)})
            : ops::reshape(cache.quant, {Dim(1), groups_, Dim(1)});
    const Tensor whole =
        rounded_to_int8(op_, ops::cast(cache.fresh, scale.dtype()) * scale,
                        {a_.quant_round_type, a_.quant_max_bound, a_.quant_min_bound});
    return ops::cast(ops::cast(whole, DType::kI32) + integer(128), DType::kU8);
  }

  /// Keys or values that each sequence sees, [batch, tokens, key heads, dim]. Unused entries of the
  /// table are never looked at. The new tokens of a quantized cache are seen as they are.
  Tensor laid_out(const Cache& cache, const Tensor& blocks) const {
    const Tensor listed = flat(ops::maximum(table_, integer(0)));
    const Tensor chosen = ops::index_select(blocks, listed, 0);
    const Dim length = per_sequence_ * size_;
    const Tensor rows =
        ops::reshape(ops::transpose(chosen, {0, 2, 1, 3}), {batch_, length, groups_, each_});
    if (!quantized_) return rows;
    const Dim sequences = a_.use_dynamic_cachekv_quant ? batch_ : Dim(1);
    const Tensor& scale = cache.dequant;
    const Tensor values = (ops::cast(rows, scale.dtype()) - 128.0) *
                          ops::reshape(scale, {sequences, Dim(1), groups_, Dim(1)});
    const Tensor row = sequence_ * dim_value(length, DType::kI64) + place_;
    const Tensor seen = ops::scatter_nd_put(
        ops::reshape(ops::cast(values, cache.fresh.dtype()), {batch_ * length, groups_, each_}),
        ops::unsqueeze(row, Axes{1}), cache.fresh);
    return ops::reshape(seen, {batch_, length, groups_, each_});
  }

  Tensor attend(const Tensor& new_keys, const Tensor& new_values) const {
    // Queries by sequence, each with at most as many as there are tokens.
    const Dim keys_each = per_sequence_ * size_;
    const Dim most = a_.max_seq_len > 0 ? minimum(tokens_, Dim(a_.max_seq_len)) : tokens_;
    const Tensor limit = dim_value(most, DType::kI64);
    const Tensor row =
        ops::where(ops::less_than(order_, limit), sequence_ * limit + order_, integer(kOutOfRange));
    const Tensor queries = ops::segment_reduce(query_, row, batch_ * most, std::string("sum"));
    const Tensor last = ops::reshape(present_, {batch_, Dim(1), Dim(1), Dim(1)}) +
                        ops::reshape(range_of(most, DType::kI64), {Dim(1), Dim(1), most, Dim(1)});
    const Tensor visible = ops::less_equal(range_of(keys_each, DType::kI64), last);
    const Tensor seen = ops::scaled_dot_product_attention(
        ops::reshape(queries, {batch_, most, queries.dim(1), each_}), laid_out(keys_, new_keys),
        laid_out(values_, new_values), visible);
    return ops::index_select(ops::reshape(seen, {batch_ * most, heads_ * each_}), row, 0);
  }

  Tensor result(Tensor out) const {
    const auto row = [&](const char* name) {
      const Tensor given = optional(c_, name);
      return given.defined() ? ops::cast(flat(given), out.dtype()) : Tensor();
    };
    out = plus(out, row("out_shift"));
    if (const Tensor smooth = row("out_smooth"); smooth.defined()) out = out * smooth;
    return quantized_result(op_, out, a_.out_scale,
                            {a_.quant_round_type, a_.quant_max_bound, a_.quant_min_bound});
  }

  CallContext& c_;
  const BlockMultiheadAttentionAttrs a_;
  const std::string_view op_;
  bool quantized_ = false;
  Dim tokens_, groups_, size_, each_, batch_, per_sequence_, all_, heads_;
  Tensor qkv_, table_, query_;
  Tensor sequence_, order_, place_, slot_;  ///< by token
  Tensor present_;                          ///< tokens in the cache, by sequence
  Cache keys_, values_;
};

}  // namespace

Tensors decompose_blha_get_max_len(CallContext& c) {
  const auto largest = [](const Tensor& x) {
    return ops::reshape(ops::max(flat(x), Axes{0}), Shape{1});
  };
  return {largest(c.operand(0)), largest(c.operand(1))};
}

Tensors decompose_block_multihead_attention(CallContext& c) { return BlockAttention(c).run(); }

}  // namespace paddle::rules
