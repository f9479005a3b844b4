// Rules of blocks.yaml.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/sequence.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"
#include "ops/generated/transformer.h"
#include "ops/generated/transformer_rules.h"
#include "ops/nn/window.h"
#include "ops/transformer/parts.h"

namespace paddle::rules {
Tensors decompose_fused_rotary_position_embedding(CallContext& c) {
  const auto a = c.attrs_as<FusedRotaryPositionEmbeddingAttrs>();
  constexpr const char* kName = "fused_rotary_position_embedding";
  const auto in = [&](const Tensor& x) {
    return a.time_major ? ops::transpose(x, {1, 0, 2, 3}) : x;
  };
  if (c.operand(0).ndim() != 4)
    reject(kName, "q must be [batch, sequence, heads, dim], not ", c.operand(0).type());
  const Tensor q = in(c.operand(0));
  const Dim length = q.dim(1), width = q.dim(3);
  if (!width.is_constant() || width.value() % 2 != 0)
    reject(kName, "the width ", width, " must be even");
  Tensor sin = optional(c, "sin"), cos = optional(c, "cos");
  const Tensor positions = optional(c, "position_ids");
  if (sin.defined() != cos.defined()) reject(kName, "sin and cos must be given together");
  const DType dtype = q.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  if (sin.defined()) {
    // [1, length, 1, dim] or [length, dim], as rows.
    for (Tensor* t : {&sin, &cos}) {
      if (t->dim(-1).equals(width) == false || (t->ndim() != 2 && t->ndim() != 4))
        reject(kName, "sin and cos must be [length, ", width, "] or [1, length, 1, ", width,
               "], not ", t->type());
      *t = ops::reshape(*t, {t->ndim() == 4 ? t->dim(1) : t->dim(0), width});
    }
    if (positions.defined()) {
      for (Tensor* t : {&sin, &cos})
        *t = ops::reshape(ops::index_select(*t, flat(ops::cast(positions, DType::kI64)), 0),
                          {q.dim(0), length, Dim(1), width});
    } else {
      for (Tensor* t : {&sin, &cos})
        *t = ops::reshape(slice_axis(*t, 0, 0, length), {Dim(1), length, Dim(1), width});
    }
  } else {
    const int64_t half = width.value() / 2;
    const Tensor rate = ops::exp(range_of(Dim(half), dtype) * (-2 * std::log(a.rotary_emb_base) /
                                                               static_cast<double>(width.value())));
    const Tensor place =
        positions.defined()
            ? ops::reshape(ops::cast(positions, dtype), {q.dim(0), length, Dim(1), Dim(1)})
            : ops::reshape(range_of(length, dtype), {Dim(1), length, Dim(1), Dim(1)});
    const Tensor angle = place * rate;
    sin = ops::sin(angle);
    cos = ops::cos(angle);
  }
  Tensors out;
  for (size_t i = 0; i < 3; ++i)
    if (c.has(i)) out.push_back(in(turned(in(c.operand(i)), cos, sin, a.use_neox_rotary_style)));
  return out;
}

Tensors decompose_fused_bias_act(CallContext& c) {
  const auto a = c.attrs_as<FusedBiasActAttrs>();
  const std::string_view op = c.op().name();
  Tensor x = c.operand(0);
  const Tensor bias = optional(c, "bias"), scales = optional(c, "dequant_scales");
  const Tensor shift = optional(c, "shift"), smooth = optional(c, "smooth");
  if (is_integer(x.dtype()) != scales.defined())
    reject(op, "dequant_scales need an integer x, found x ", x.type());
  if (scales.defined())
    x = ops::cast(x, bias.defined() ? bias.dtype() : scales.dtype()) *
        ops::cast(scales, bias.defined() ? bias.dtype() : scales.dtype());
  for (const Tensor* t : {&bias, &shift, &smooth})
    if (t->defined() && t->dtype() != x.dtype())
      reject(op, "bias, shift and smooth must have the dtype of x, ", text(x.dtype()), ", not ",
             t->type());
  Tensor y = plus(activation(op, a.act_method, plus(x, bias)), shift);
  if (smooth.defined()) y = y * smooth;
  return {quantized_result(op, y, a.quant_scale,
                           {a.quant_round_type, a.quant_max_bound, a.quant_min_bound})};
}

Tensors decompose_fused_bias_dropout_residual_layer_norm(CallContext& c) {
  const auto a = c.attrs_as<FusedBiasDropoutResidualLayerNormAttrs>();
  const Tensor dropped =
      ops::dropout(plus(c.operand(0), optional(c, "bias")), a.dropout_rate, {}, a.training, a.mode);
  return {normalized(c.operand(1) + dropped, optional(c, "ln_scale"), optional(c, "ln_bias"),
                     a.ln_epsilon)};
}

Tensors decompose_fused_feedforward(CallContext& c) {
  const auto a = c.attrs_as<FusedFeedforwardAttrs>();
  if (a.ring_id >= 0) reject(c.op().name(), "ring_id must be -1: use `parallel:` of the config");
  const Tensor& x = c.operand(0);
  const Tensor in = a.pre_layer_norm ? normalized(x, optional(c, "ln1_scale"),
                                                  optional(c, "ln1_bias"), a.ln1_epsilon)
                                     : x;
  const Tensor hidden =
      activation(c.op().name(), a.activation,
                 plus(ops::matmul(in, c.operand(1)), optional(c, "linear1_bias")));
  const Tensor dropped = ops::dropout(hidden, a.dropout1_rate, {}, a.training, a.mode);
  Tensor out = ops::dropout(plus(ops::matmul(dropped, c.operand(2)), optional(c, "linear2_bias")),
                            a.dropout2_rate, {}, a.training, a.mode);
  if (a.add_residual) out = x + out;
  if (a.pre_layer_norm) return {out};
  return {normalized(out, optional(c, "ln2_scale"), optional(c, "ln2_bias"), a.ln2_epsilon)};
}

Tensors decompose_fused_multi_head_attention(CallContext& c) {
  const auto a = c.attrs_as<FusedMultiHeadAttentionAttrs>();
  const std::string_view op = c.op().name();
  if (a.ring_id >= 0) reject(op, "ring_id must be -1: use `parallel:` of the config");
  const Tensor &x = c.operand(0), &weight = c.operand(1);
  if (x.ndim() != 3) reject(op, "x must be [batch, sequence, width], not ", x.type());
  const Dim width = x.dim(2);
  Dim heads, each;
  Tensor matrix, bias = optional(c, "qkv_bias");
  if (a.transpose_qkv_wb) {
    if (a.num_heads < 1 || weight.ndim() != 2 ||
        modulo(width, a.num_heads).constant().value_or(0) != 0)
      reject(op, "transpose_qkv_wb needs num_heads that divide the width ", width,
             " and a matrix qkv_weight, not ", weight.type());
    heads = a.num_heads;
    each = floor_divide(width, a.num_heads);
    matrix = weight;
  } else {
    if (weight.ndim() != 4 || weight.dim(0).equals(3) == false ||
        weight.dim(3).equals(width) == false)
      reject(op, "qkv_weight must be [3, heads, dim, ", width, "], not ", weight.type());
    heads = weight.dim(1);
    each = weight.dim(2);
    matrix = ops::transpose(ops::reshape(weight, {heads * each * 3, width}), {1, 0});
  }
  const Tensor in = a.pre_layer_norm ? normalized(x, optional(c, "pre_ln_scale"),
                                                  optional(c, "pre_ln_bias"), a.pre_ln_epsilon)
                                     : x;
  const Tensor flat_bias = bias.defined() ? flat(bias) : bias;
  const Tensor qkv = ops::reshape(plus(ops::matmul(in, matrix), flat_bias),
                                  {x.dim(0), x.dim(1), Dim(3), heads, each});
  const auto part = [&](int64_t i) { return ops::squeeze(slice_axis(qkv, 2, i, i + 1), Axes{2}); };
  Tensor key = part(1), value = part(2);
  Tensors out;
  const Tensor cache = optional(c, "cache_kv");
  if (cache.defined()) {
    if (cache.ndim() != 5) reject(op, "cache_kv must be [2, batch, heads, length, dim]");
    const auto before = [&](int64_t i) {
      return ops::transpose(ops::squeeze(slice_axis(cache, 0, i, i + 1), Axes{0}), {0, 2, 1, 3});
    };
    key = ops::concat({before(0), key}, 1);
    value = ops::concat({before(1), value}, 1);
  }
  const Tensor seen = ops::scaled_dot_product_attention(
      part(0), key, value, optional(c, "attn_mask"), a.attn_dropout_rate, false, a.training);
  const Tensor joined = ops::reshape(seen, {x.dim(0), x.dim(1), heads * each});
  Tensor y = ops::dropout(plus(ops::matmul(joined, c.operand(2)), optional(c, "linear_bias")),
                          a.dropout_rate, {}, a.training, a.mode);
  if (a.add_residual) y = x + y;
  if (!a.pre_layer_norm)
    y = normalized(y, optional(c, "ln_scale"), optional(c, "ln_bias"), a.ln_epsilon);
  out.push_back(y);
  if (cache.defined())
    out.push_back(
        ops::stack({ops::transpose(key, {0, 2, 1, 3}), ops::transpose(value, {0, 2, 1, 3})}, 0));
  return out;
}
namespace {

/// The norms' operands: the sum of x, bias and residual as rows, and the shape of the result.
struct NormRows {
  Tensor sum, rows;
  NormRows(CallContext& c, int64_t axis, double alpha) {
    const Tensor& x = c.operand(0);
    const Tensor residual = optional(c, "residual");
    sum = plus(x, optional(c, "bias"));
    if (residual.defined()) sum = sum + (alpha == 1 ? residual : residual * alpha);
    const int64_t first = axis_of(c.op().name(), axis, x.ndim());
    Dim lead = 1, width = 1;
    for (int64_t i = 0; i < x.ndim(); ++i)
      (i < first ? lead : width) = (i < first ? lead : width) * x.dim(i);
    rows = ops::reshape(sum, {lead, width});
  }
};

/// The result of a norm, as int8 if the attributes ask for it.
template <class NormAttrs>
Tensor quantized_norm(CallContext& c, const Tensor& y, const NormAttrs& a) {
  const auto round_type = static_cast<int64_t>(a.quant_round_type);
  return quantized_result(c.op().name(), y, a.quant_scale,
                          {round_type, a.quant_max_bound, a.quant_min_bound});
}

}  // namespace

Tensors decompose_fused_layer_norm(CallContext& c) {
  const auto a = c.attrs_as<FusedLayerNormAttrs>();
  const NormRows n(c, a.begin_norm_axis, a.residual_alpha);
  const Tensor weight = optional(c, "norm_weight"), bias = optional(c, "norm_bias");
  const Tensor y = normalized(n.rows, weight.defined() ? flat(weight) : weight,
                              bias.defined() ? flat(bias) : bias, a.epsilon);
  Tensors out = {quantized_norm(c, ops::reshape(y, n.sum.shape()), a)};
  if (!optional(c, "residual").defined()) return out;
  out.push_back(n.sum);
  out.push_back(ops::mean(n.rows, Axes{1}));
  const Tensor centered = n.rows - ops::mean(n.rows, Axes{1}, true);
  out.push_back(ops::rsqrt(ops::mean(ops::square(centered), Axes{1}) + a.epsilon));
  return out;
}

Tensors decompose_fused_rms_norm(CallContext& c) {
  const auto a = c.attrs_as<FusedRmsNormAttrs>();
  const NormRows n(c, a.begin_norm_axis, 1);
  const Tensor bias = optional(c, "norm_bias");
  const Tensor y = plus(ops::rms_norm(n.rows, AttrValue(AttrValue::List{AttrValue(n.rows.dim(1))}),
                                      flat(c.operand(1)), a.epsilon),
                        bias.defined() ? flat(bias) : bias);
  Tensors out = {quantized_norm(c, ops::reshape(y, n.sum.shape()), a)};
  if (optional(c, "residual").defined()) out.push_back(n.sum);
  return out;
}

Tensors decompose_softmax_mask_fuse(CallContext& c) {
  return {ops::softmax(c.operand(0) + c.operand(1), -1)};
}

Tensors decompose_softmax_mask_fuse_upper_triangle(CallContext& c) {
  const Tensor& x = c.operand(0);
  if (x.ndim() < 2) reject(c.op().name(), "x must have 2 dimensions or more, not ", x.type());
  const Tensor row = ops::unsqueeze(range_of(x.dim(-2), DType::kI64), {1}),
               column = ops::unsqueeze(range_of(x.dim(-1), DType::kI64), {0});
  return {ops::softmax(ops::where(ops::less_equal(column, row), x, number(-INFINITY)), -1)};
}

Tensors decompose_fused_conv2d_add_act(CallContext& c) {
  const auto a = c.attrs_as<FusedConv2dAddActAttrs>();
  const AttrValue padding =
      a.padding_algorithm != "EXPLICIT" ? AttrValue(a.padding_algorithm) : a.paddings;
  Tensor y = ops::conv2d(c.operand(0), c.operand(1), optional(c, "bias"), AttrValue(a.strides),
                         padding, AttrValue(a.dilations), a.groups, a.data_format);
  return {activation(c.op().name(), a.activation, plus(y, optional(c, "residual_data")))};
}

Tensors decompose_fused_bn_add_act(CallContext& c) {
  const auto a = c.attrs_as<FusedBnAddActAttrs>();
  const Tensor y = ops::batch_norm(c.operand(0), c.operand(4), c.operand(5), c.operand(2),
                                   c.operand(3), a.training, a.momentum, a.epsilon, "NHWC");
  return {activation(c.op().name(), a.act_type, y + c.operand(1))};
}

namespace {

/// The weights [experts, in, out] of a product of fused_moe, of the dtype of x.
Tensor expert_weights(CallContext& c, const std::string& method, const char* name,
                      const char* scale_name) {
  const std::string_view op = c.op().name();
  const DType dtype = c.operand(0).dtype();
  const Tensor weight = optional(c, name), scale = optional(c, scale_name);
  if (method == "None" || method == "none") {
    if (scale.defined()) reject(op, scale_name, " needs quant_method weight_only_int8");
    if (weight.dtype() != dtype)
      reject(op, name, " must be ", text(dtype), " like x, not ", weight.type(),
             weight.dtype() == DType::kI8 ? "; int8 needs quant_method weight_only_int8" : "");
    return weight;
  }
  if (method != "weight_only_int8")
    reject(op, "quant_method must be None or weight_only_int8, not '", method, "'");
  if (weight.dtype() != DType::kI8 || weight.ndim() != 3)
    reject(op, name, " must be int8 [experts, in, out] for weight_only_int8, not ", weight.type());
  if (!scale.defined()) reject(op, scale_name, " is missing: weight_only_int8 needs it");
  if (scale.ndim() != 2 || scale.dim(0).equals(weight.dim(0)) == false ||
      scale.dim(1).equals(weight.dim(2)) == false)
    reject(op, scale_name, " must be [experts, out] for ", name, " ", weight.type(), ", not ",
           scale.type());
  return ops::cast(weight, dtype) * ops::unsqueeze(ops::cast(scale, dtype), Axes{1});
}

}  // namespace

Tensors decompose_fused_moe(CallContext& c) {
  const auto a = c.attrs_as<FusedMoeAttrs>();
  const std::string_view op = c.op().name();
  if (a.group_moe) reject(op, "group_moe is not supported");
  const Tensor &x = c.operand(0), &gate = c.operand(1);
  const Tensor first = expert_weights(c, a.quant_method, "ffn1_weight", "ffn1_scale"),
               second = expert_weights(c, a.quant_method, "ffn2_weight", "ffn2_scale");
  if (first.ndim() != 3 || second.ndim() != 3 || gate.ndim() != 2 || x.ndim() < 2)
    reject(op, "expected x [..., width], gate_weight [width, experts] and weights of 3 dimensions");
  const Dim width = x.dim(-1), experts = first.dim(0);
  const Dim tokens = floor_divide(element_count(std::span<const Dim>(x.shape())), width);
  if (experts.is_constant() && (a.moe_topk < 1 || a.moe_topk > experts.value()))
    reject(op, "moe_topk must be from 1 to the ", experts, " experts, not ", a.moe_topk);
  const Tensor rows = ops::reshape(x, {tokens, width});
  const Tensor share = ops::softmax(ops::matmul(ops::cast(rows, gate.dtype()), gate), -1);
  const Tensors best = ops::topk(share, a.moe_topk, 1);
  Tensor weight = best[0];
  if (a.norm_topk_prob) weight = weight / ops::sum(weight, Axes{1}, std::nullopt, true);
  // Weights of all experts, zero for those that a token does not use.
  const Tensor all =
      ops::cast(ops::scatter_along(zeros_like(share), best[1], weight, 1, "assign"), x.dtype());
  Tensor hidden = ops::matmul(ops::unsqueeze(rows, {0}), first);  // [experts, tokens, ...]
  const Tensor bias1 = optional(c, "ffn1_bias"), bias2 = optional(c, "ffn2_bias");
  const auto per_expert = [&](const Tensor& b) {
    return ops::reshape(b, {experts, Dim(1), b.dim(-1)});
  };
  if (bias1.defined()) hidden = hidden + per_expert(bias1);
  Tensor out = ops::matmul(ops::swiglu(hidden), second);
  if (bias2.defined()) out = out + per_expert(bias2);
  const Tensor mixed = ops::sum(out * ops::unsqueeze(ops::transpose(all, {1, 0}), {2}), Axes{0});
  return {ops::reshape(mixed, x.shape())};
}

Tensors decompose_fused_linear_param_grad_add(CallContext& c) {
  const auto a = c.attrs_as<FusedLinearParamGradAddAttrs>();
  const std::string_view op = c.op().name();
  const Tensor &x = c.operand(0), &dout = c.operand(1);
  if (x.ndim() < 1 || dout.ndim() != x.ndim())
    reject(op, "x and dout must have the same number of dimensions, not ", x.type(), " and ",
           dout.type());
  const auto rows = [](const Tensor& t) { return ops::reshape(t, Shape{Dim(-1), t.dim(-1)}); };
  const Tensor gradient = rows(dout);
  Tensors out = {plus(ops::matmul(rows(x), gradient, true, false), optional(c, "dweight"))};
  if (a.has_bias) out.push_back(plus(ops::sum(gradient, Axes{0}), optional(c, "dbias")));
  return out;
}

Tensors decompose_fused_scale_bias_add_relu(CallContext& c) {
  const auto a = c.attrs_as<FusedScaleBiasAddReluAttrs>();
  const std::string_view op = c.op().name();
  Tensor second = c.operand(3);
  const Tensor scale = optional(c, "scale2"), bias = optional(c, "bias2");
  if (a.fuse_dual != (scale.defined() && bias.defined()) || scale.defined() != bias.defined())
    reject(op, "scale2 and bias2 need fuse_dual");
  if (a.fuse_dual) second = second * scale + bias;
  return {ops::relu(c.operand(0) * c.operand(1) + c.operand(2) + second)};
}

}  // namespace paddle::rules
