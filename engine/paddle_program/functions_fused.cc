// Functions of the table: operations that PaddlePaddle's passes fuse, as what they are made of.

#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"
#include "ops/generated/transformer.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {
namespace {

Tensor activated(const ProgramCall& c, const Tensor& x, const std::string& name) {
  if (name.empty() || name == "identity") return x;
  if (name == "relu") return ops::relu(x);
  if (name == "gelu") return ops::gelu(x);
  if (name == "tanh") return ops::tanh(x);
  if (name == "sigmoid") return ops::sigmoid(x);
  c.reject("there is no activation ", name);
}

Values fc_add_layer_norm(ProgramCall& c) {
  Tensor x = flat_product(c, c.tensor("x"), c.tensor("w"), c.integer("x_num_col_dims"), 1);
  if (c.has("bias0")) x = x + c.tensor("bias0");
  x = activated(c, x, c.text("activation_type"));
  return {normalized_from(c, ops::reshape(x, c.tensor("y").shape()) + c.tensor("y"),
                          c.optional_tensor("weight"), c.optional_tensor("bias1"),
                          c.integer("begin_norm_axis"))};
}

/// The sum of rows of several tables, normalized.
Values embeddings_layer_norm(ProgramCall& c) {
  const Tensors ids = c.list("ids"), tables = c.list("embs");
  c.check(!ids.empty() && ids.size() == tables.size(), "expected a table for each of the ids");
  Tensor sum;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_column = ids[i].ndim() == 3 && ids[i].dim(2).equals(1).value_or(false);
    const Tensor rows =
        ops::embedding(is_column ? ops::squeeze(ids[i], Axes{2}) : ids[i], tables[i]);
    sum = sum ? sum + rows : rows;
  }
  return {normalized_from(c, sum, c.tensor("weight"), c.tensor("bias"), sum.ndim() - 1)};
}

/// How a program that is saved for inference replaces dropout, by the operation's name for it.
std::string dropout_mode(const ProgramCall& c, std::string_view name) {
  c.check(c.flag("is_test"), "drops elements; save the program for inference");
  const std::string mode = c.text(name);
  return mode == "downgrade_in_infer" ? "downscale_in_infer" : mode;
}

Values bias_dropout_residual_layer_norm(ProgramCall& c) {
  return {ops::fused_bias_dropout_residual_layer_norm(
      c.tensor("x"), c.tensor("residual"), c.optional_tensor("bias"), c.optional_tensor("ln_scale"),
      c.optional_tensor("ln_bias"), c.real("dropout_rate"), c.real("ln_epsilon"), false,
      dropout_mode(c, "dropout_implementation"))};
}

/// Attention over x [batch, time, width]; the weight is [width, 3, width], and the scores are
/// scaled by alpha and added to bias_qk.
Values multihead_matmul(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &w = c.tensor("w"), &bias = c.tensor("bias");
  c.check(x.ndim() == 3, "expected [batch, time, width], not ", x.type());
  c.check(!c.flag("transpose_q") && c.flag("transpose_k") && !c.flag("transpose_v"),
          "expected that only keys are transposed");
  const int64_t width = onnx::constant_dim(x, 2), heads = c.integer("head_number");
  c.check(heads > 0 && width % heads == 0, width, " channels do not divide into ", heads, " heads");
  const int64_t size = width / heads;
  const Tensor joined = ops::matmul(x, ops::reshape(w, {Dim(width), Dim(3 * width)})) +
                        ops::reshape(bias, {Dim(3 * width)});
  // [3, batch, heads, time, size]
  const Tensor split = ops::transpose(
      ops::reshape(joined, {x.dim(0), x.dim(1), Dim(3), Dim(heads), Dim(size)}), {2, 0, 3, 1, 4});
  const auto of = [&](int64_t i) {
    return ops::squeeze(onnx::slice_axis(split, 0, i, i + 1), Axes{0});
  };
  Tensor scores = ops::matmul(of(0), of(1), false, true) * c.real("alpha");
  if (c.has("bias_qk")) scores = scores + c.tensor("bias_qk");
  const Tensor out = ops::matmul(ops::softmax(scores, -1), of(2));
  return {ops::reshape(ops::transpose(out, {0, 2, 1, 3}), {x.dim(0), x.dim(1), Dim(width)})};
}

Values feed_forward(ProgramCall& c) {
  c.check(c.text("dropout1_implementation") == c.text("dropout2_implementation"),
          "its dropouts differ");
  return {ops::fused_feedforward(
      c.tensor("x"), c.tensor("linear1_weight"), c.tensor("linear2_weight"),
      c.optional_tensor("linear1_bias"), c.optional_tensor("linear2_bias"),
      c.optional_tensor("ln1_scale"), c.optional_tensor("ln1_bias"), c.optional_tensor("ln2_scale"),
      c.optional_tensor("ln2_bias"), c.real("dropout1_rate"), c.real("dropout2_rate"),
      c.text("act_method"), c.real("ln1_epsilon"), c.real("ln2_epsilon"), c.flag("pre_layer_norm"),
      false, dropout_mode(c, "dropout1_implementation"), -1, c.flag("add_residual"))};
}

/// The attention half of a transformer layer. Of its twenty results a program for inference reads
/// the last two: the cache with the new keys and values, and the output.
Values attention_block(ProgramCall& c) {
  // Weights that dropout scales down scale what is multiplied by linear_weight.
  Tensor linear_weight = c.tensor("linear_weight");
  const double dropped = c.real("attn_dropout_rate");
  if (dropped > 0 && dropout_mode(c, "attn_dropout_implementation") == "downscale_in_infer")
    linear_weight = linear_weight * (1 - dropped);
  const Tensors made = ops::fused_multi_head_attention(
      c.tensor("x"), c.tensor("qkv_weight"), linear_weight, c.flag("pre_layer_norm"),
      c.optional_tensor("pre_ln_scale"), c.optional_tensor("pre_ln_bias"),
      c.optional_tensor("ln_scale"), c.optional_tensor("ln_bias"), c.real("pre_ln_epsilon"),
      c.optional_tensor("qkv_bias"), c.optional_tensor("linear_bias"),
      c.optional_tensor("cache_kv"), c.optional_tensor("attn_mask"), c.real("dropout_rate"),
      dropped, c.real("ln_epsilon"), false, dropout_mode(c, "dropout_implementation"), -1,
      c.flag("add_residual"), c.integer("num_heads"), c.flag("transpose_qkv_wb"));
  Values out(18);
  out.push_back(made.size() > 1 && made[1] ? Value(made[1]) : Value());
  out.emplace_back(made.at(0));
  return out;
}

/// All layers of a transformer: the caches, then the output.
Values transformer(ProgramCall& c) {
  const Tensors made = ops::fused_multi_transformer(
      c.tensor("x"), c.list("ln_scales"), c.list("ln_biases"), c.list("qkv_weights"),
      c.list("qkv_biases"), c.list("linear_weights"), c.list("linear_biases"),
      c.list("ffn_ln_scales"), c.list("ffn_ln_biases"), c.list("ffn1_weights"),
      c.list("ffn1_biases"), c.list("ffn2_weights"), c.list("ffn2_biases"),
      c.flag("pre_layer_norm"), c.real("epsilon"), c.real("residual_alpha"), c.list("cache_kvs"),
      c.optional_tensor("beam_offset"), c.list("pre_caches"), c.optional_tensor("seq_lengths"),
      c.optional_tensor("rotary"),
      c.has("time_step") ? std::optional(c.integer("time_step")) : std::nullopt,
      c.optional_tensor("attn_mask"), c.real("dropout_rate"), c.integer("rotary_emb_dims"),
      c.text("act_method"), false, dropout_mode(c, "dropout_implementation"), c.flag("trans_qkvw"),
      -1, c.text("norm_type"), c.flag("use_neox_rotary_style"), c.integer("gqa_group_size"));
  Values out(made.begin() + 1, made.end());
  // Without caches a program may still name them.
  while (out.size() + 1 < c.node().node().outputs.size()) out.emplace_back();
  out.emplace_back(made.at(0));
  return out;
}

/// Binary(x, unary(y)) or unary(binary(x, y)), whichever the list of the two functions begins with.
Values elementwise_activation(ProgramCall& c) {
  const formats::PaddleAttribute* const functions = c.attribute("functor_list");
  c.check(functions && functions->texts.size() == 2, "expected two functions");
  const auto is_binary = [](const std::string& name) { return name.starts_with("elementwise_"); };
  const auto binary = [&](const std::string& name, const Tensor& x, const Tensor& y) {
    if (name == "elementwise_add") return x + y;
    c.check(name == "elementwise_mul", "there is no function ", name);
    return x * y;
  };
  const auto unary = [&](const std::string& name, const Tensor& x) {
    return name == "scale" ? x * c.real("scale") : activated(c, x, name);
  };
  const std::string &outer = functions->texts[0], &inner = functions->texts[1];
  const Tensor &x = c.tensor("x"), y = placed_operand(c, "y");
  if (is_binary(outer)) {
    const Tensor made = unary(inner, y);
    return {binary(outer, x, made), made};
  }
  const Tensor made = binary(inner, x, y);
  return {unary(outer, made), made};
}

}  // namespace

ProgramFunctions program_fused_functions() {
  return {
      {"fc_add_layer_norm", fc_add_layer_norm},
      {"embeddings_layer_norm", embeddings_layer_norm},
      {"bias_dropout_residual_layer_norm", bias_dropout_residual_layer_norm},
      {"multihead_matmul", multihead_matmul},
      {"feed_forward", feed_forward},
      {"attention_block", attention_block},
      {"transformer", transformer},
      {"elementwise_activation", elementwise_activation},
  };
}

}  // namespace paddle::paddle_program
