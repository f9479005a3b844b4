// Rules of serving.yaml.

#include <functional>
#include <memory>

#include "ops/generated/creation.h"
#include "ops/generated/graph.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "ops/generated/transformer_rules.h"
#include "ops/quantization/int8.h"
#include "ops/transformer/parts.h"

namespace paddle::rules {
namespace {

Tensors list_of(CallContext& c, const char* name) {
  return c.list(static_cast<size_t>(c.op().operand_index(name)));
}

Tensor slice_of(const Tensor& x, int64_t axis, const Dim& from, const Dim& to) {
  return ops::squeeze(slice_axis(x, axis, from, to), Axes{axis});
}

Tensor swap_heads(const Tensor& x) { return ops::transpose(x, {0, 2, 1, 3}); }

enum class Product { kQkv, kLinear, kFfn1, kFfn2 };

/// One layer of fused_multi_transformer.
class Layer {
 public:
  Layer(CallContext& c, const FusedMultiTransformerAttrs& a, size_t i)
      : c_(c), a_(a), i_(i), op_(c.op().name()) {}
  virtual ~Layer() = default;

  Tensor run(const Tensor& x) {
    const Tensor in = a_.pre_layer_norm ? norm(x, "ln_scales", "ln_biases") : x;
    Tensor y = residual(x, plus(product(attention(in), Product::kLinear), of("linear_biases")));
    if (!a_.pre_layer_norm) y = norm(y, "ln_scales", "ln_biases");
    const Tensor hidden =
        activation(op_, a_.activation,
                   plus(product(a_.pre_layer_norm ? norm(y, "ffn_ln_scales", "ffn_ln_biases") : y,
                                Product::kFfn1),
                        of("ffn1_biases")));
    const Tensor out =
        residual(y, plus(product(dropped(hidden), Product::kFfn2), of("ffn2_biases")));
    return a_.pre_layer_norm ? out : norm(out, "ffn_ln_scales", "ffn_ln_biases");
  }
  const Tensor& cache() const { return cache_; }

 protected:
  CallContext& c_;
  const FusedMultiTransformerAttrs& a_;
  size_t i_;
  std::string_view op_;

  /// x times the weights of linear_weights, ffn1_weights or ffn2_weights.
  virtual Tensor product(const Tensor& x, Product which) const {
    return ops::matmul(x, of(which == Product::kLinear ? "linear_weights"
                             : which == Product::kFfn1 ? "ffn1_weights"
                                                       : "ffn2_weights"));
  }
  /// x times the matrix [in, out] or, transposed, [out, in] of queries, keys and values.
  virtual Tensor qkv_product(const Tensor& x, const Tensor& matrix, bool transposed) const {
    return ops::matmul(x, matrix, false, transposed);
  }

  /// This layer's element of a list; undefined where the list is not given.
  Tensor of(const char* name) const {
    const Tensors list = list_of(c_, name);
    return list.empty() ? Tensor() : list[i_];
  }

 private:
  Tensor cache_;

  Tensor norm(const Tensor& x, const char* scales, const char* biases) const {
    if (a_.norm_type == "rmsnorm") {
      const Tensor y =
          x * ops::rsqrt(ops::mean(ops::square(x), Axes{-1}, true) + a_.epsilon) * of(scales);
      return plus(y, of(biases));
    }
    return normalized(x, of(scales), of(biases), a_.epsilon);
  }
  Tensor dropped(const Tensor& x) const {
    return ops::dropout(x, a_.dropout_rate, {}, a_.training, a_.mode);
  }
  Tensor residual(const Tensor& x, const Tensor& branch) const {
    return (a_.residual_alpha == 1 ? x : x * a_.residual_alpha) + dropped(branch);
  }

  Tensor attention(const Tensor& x) {
    const Tensor weight = of("qkv_weights");
    const Dim batch = x.dim(0), length = x.dim(1), width = x.dim(2);
    const bool grouped = a_.gqa_group_size > 0;
    // [heads, dim] of queries, keys and values, one after another.
    const size_t rank = grouped ? 3 : 4;
    if (weight.ndim() != static_cast<int64_t>(rank) ||
        weight.dim(a_.trans_qkvw ? -1 : 0).equals(width) == false)
      reject(op_, "qkv_weights must be ",
             grouped ? "[heads + 2 * groups, dim, " : "[3, heads, dim, ", width, "], not ",
             weight.type());
    const Dim each = weight.dim(a_.trans_qkvw ? -2 : -1);
    Dim all = 1;
    for (int64_t k = a_.trans_qkvw ? 0 : 1; k < weight.ndim() - (a_.trans_qkvw ? 2 : 1); ++k)
      all = all * weight.dim(k);
    const Dim groups = grouped ? Dim(a_.gqa_group_size) : floor_divide(all, 3);
    const Dim heads = all - groups * 2;
    const Shape matrix = a_.trans_qkvw ? Shape{all * each, width} : Shape{width, all * each};
    Tensor flat_qkv = qkv_product(x, ops::reshape(weight, matrix), a_.trans_qkvw);
    const Tensor bias = of("qkv_biases");
    if (bias.defined()) flat_qkv = flat_qkv + flat(bias);
    const Tensor qkv = ops::reshape(flat_qkv, {batch, length, all, each});
    Tensor query = slice_axis(qkv, 2, 0, heads), key = slice_axis(qkv, 2, heads, heads + groups);
    Tensor value = slice_axis(qkv, 2, heads + groups, all);
    rotate(query, key, length);
    const Tensor mask = with_cache(key, value, length);
    const Tensor seen =
        ops::scaled_dot_product_attention(query, key, value, mask, 0.0, false, a_.training);
    return ops::reshape(seen, {batch, length, heads * each});
  }

  void rotate(Tensor& query, Tensor& key, const Dim& length) const {
    const Tensor table = optional(c_, "rotary_embs");
    if (!table.defined()) return;
    if (table.ndim() != 5 || table.dim(0).equals(2) == false)
      reject(op_, "rotary_embs must be [2, batch, 1, length, dim], not ", table.type());
    const Dim from = a_.time_step && table.dim(3).equals(length) != true ? Dim(*a_.time_step) : 0;
    const auto part = [&](int64_t i) {
      return swap_heads(slice_axis(slice_of(table, 0, i, i + 1), 2, from, from + length));
    };
    for (Tensor* t : {&query, &key}) *t = turned(*t, part(0), part(1), !a_.use_neox_rotary_style);
  }

  /// Puts keys and values into the cache; in decoding they become those of the whole cache up to
  /// time_step. Gives the mask.
  Tensor with_cache(Tensor& key, Tensor& value, const Dim& length) {
    const Tensor mask = optional(c_, "attn_mask"), cache = of("cache_kvs");
    const Tensor before = of("pre_caches");
    if (before.defined()) {
      if (before.ndim() != 5)
        reject(op_, "pre_caches must be [2, batch, heads, length, dim], not ", before.type());
      key = ops::concat({swap_heads(slice_of(before, 0, 0, 1)), key}, 1);
      value = ops::concat({swap_heads(slice_of(before, 0, 1, 2)), value}, 1);
    }
    if (!cache.defined()) {
      if (a_.time_step) reject(op_, "time_step needs cache_kvs");
      return mask;
    }
    if (cache.ndim() != 5 || cache.dim(0).equals(2) == false)
      reject(op_, "cache_kvs must be [2, batch, heads, length, dim], not ", cache.type());
    const Tensor fresh = ops::stack({swap_heads(key), swap_heads(value)}, 0);
    const Dim from = a_.time_step ? Dim(*a_.time_step) : Dim(0);
    const Dim end = from + fresh.dim(3);
    if (cache.dim(3).less(end) == true)
      reject(op_, "cache_kvs ", cache.type(), " does not hold ", end, " tokens");
    cache_ = ops::concat(
        {slice_axis(cache, 3, 0, from), fresh, slice_axis(cache, 3, end, cache.dim(3))}, 3);
    if (!a_.time_step) return mask;
    if (length.equals(1) == false) reject(op_, "time_step is for one token, x has ", length);
    key = swap_heads(slice_axis(slice_of(cache_, 0, 0, 1), 2, 0, end));
    value = swap_heads(slice_axis(slice_of(cache_, 0, 1, 2), 2, 0, end));
    return mask.defined() ? slice_axis(mask, 3, 0, end) : mask;
  }
};

/// A layer whose products are those of int8 weights [out, in].
class Int8Layer : public Layer {
 public:
  Int8Layer(CallContext& c, const FusedMultiTransformerAttrs& shared,
            const FusedMultiTransformerInt8Attrs& a, size_t i)
      : Layer(c, shared, i), int8_(a) {}

 protected:
  Tensor product(const Tensor& x, Product which) const override {
    if (which == Product::kLinear)
      return scaled(x, of("linear_weights"), int8_.out_linear_in_scale, "out_linear_out_scales");
    if (which == Product::kFfn1)
      return scaled(x, of("ffn1_weights"), int8_.ffn1_in_scale, "ffn1_out_scales");
    return scaled(x, of("ffn2_weights"), int8_.ffn2_in_scale, "ffn2_out_scales");
  }
  Tensor qkv_product(const Tensor& x, const Tensor& matrix, bool) const override {
    return scaled(x, matrix, int8_.qkv_in_scale, "qkv_out_scales");
  }

 private:
  const FusedMultiTransformerInt8Attrs& int8_;

  Tensor scaled(const Tensor& x, const Tensor& weight, const std::vector<double>& in_scales,
                const char* out_scales) const {
    const Tensor whole =
        rounded_to_int8(op_, x, in_scales[i_],
                        {int8_.quant_round_type, int8_.quant_max_bound, int8_.quant_min_bound});
    const Tensor sums = ops::matmul_int8(whole, weight, false, true);
    return ops::cast(sums, x.dtype()) * ops::cast(flat(of(out_scales)), x.dtype());
  }
};

void check_int8_lists(CallContext& c, const FusedMultiTransformerInt8Attrs& a) {
  const size_t layers = list_of(c, "qkv_weights").size();
  const std::pair<const char*, const std::vector<double>*> scales[] = {
      {"qkv_in_scale", &a.qkv_in_scale},
      {"out_linear_in_scale", &a.out_linear_in_scale},
      {"ffn1_in_scale", &a.ffn1_in_scale},
      {"ffn2_in_scale", &a.ffn2_in_scale}};
  for (const auto& [name, list] : scales)
    if (list->size() != layers)
      reject(c.op().name(), name, " has ", list->size(), " numbers for ", layers, " layers");
  for (const char* name :
       {"qkv_out_scales", "out_linear_out_scales", "ffn1_out_scales", "ffn2_out_scales"})
    if (list_of(c, name).size() != layers)
      reject(c.op().name(), name, " has ", list_of(c, name).size(), " tensors for ", layers,
             " layers");
}

/// The layers of fused_multi_transformer, each made by `layer`.
Tensors transformer(CallContext& c, const FusedMultiTransformerAttrs& a,
                    const std::function<std::unique_ptr<Layer>(size_t)>& layer_of) {
  const std::string_view op = c.op().name();
  if (a.ring_id >= 0) reject(op, "ring_id must be -1: use `parallel:` of the config");
  for (const char* name : {"beam_offset", "seq_lens"})
    if (optional(c, name).defined()) reject(op, name, " is not supported");
  if (c.operand(0).ndim() != 3)
    reject(op, "x must be [batch, sequence, width], not ", c.operand(0).type());
  if (a.time_step && *a.time_step < 0) reject(op, "time_step must not be negative");
  const size_t layers = list_of(c, "qkv_weights").size();
  if (layers == 0) reject(op, "qkv_weights must not be empty");
  for (const char* name :
       {"ln_scales", "ln_biases", "qkv_biases", "linear_weights", "linear_biases", "ffn_ln_scales",
        "ffn_ln_biases", "ffn1_weights", "ffn1_biases", "ffn2_weights", "ffn2_biases", "cache_kvs",
        "pre_caches"}) {
    const size_t count = list_of(c, name).size();
    const bool required = std::string_view(name).ends_with("weights");
    if (count != layers && (required || count != 0))
      reject(op, name, " has ", count, " tensors for ", layers, " layers");
  }
  Tensor x = c.operand(0);
  Tensors caches;
  for (size_t i = 0; i < layers; ++i) {
    const std::unique_ptr<Layer> layer = layer_of(i);
    x = layer->run(x);
    if (layer->cache().defined()) caches.push_back(layer->cache());
  }
  Tensors out = {x};
  out.insert(out.end(), caches.begin(), caches.end());
  return out;
}

}  // namespace

Tensors decompose_fused_multi_transformer(CallContext& c) {
  const auto a = c.attrs_as<FusedMultiTransformerAttrs>();
  return transformer(c, a, [&](size_t i) { return std::make_unique<Layer>(c, a, i); });
}

Tensors decompose_fused_multi_transformer_int8(CallContext& c) {
  const auto a = c.attrs_as<FusedMultiTransformerInt8Attrs>();
  const std::string_view op = c.op().name();
  // The attributes of both operations begin alike.
  const auto shared = c.attrs_as<FusedMultiTransformerAttrs>();
  if (!a.trans_qkvw) reject(op, "trans_qkvw must be true: weights are [out, in]");
  check_int8_lists(c, a);
  return transformer(c, shared,
                     [&](size_t i) { return std::make_unique<Int8Layer>(c, shared, a, i); });
}

}  // namespace paddle::rules
