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

Values bias_dropout_residual_layer_norm(ProgramCall& c) {
  c.check(c.flag("is_test"), "drops elements; save the program for inference");
  return {ops::fused_bias_dropout_residual_layer_norm(
      c.tensor("x"), c.tensor("residual"), c.optional_tensor("bias"), c.optional_tensor("ln_scale"),
      c.optional_tensor("ln_bias"), c.real("dropout_rate"), c.real("ln_epsilon"), false,
      c.text("dropout_implementation"))};
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
  c.check(c.flag("is_test"), "drops elements; save the program for inference");
  c.check(c.text("dropout1_implementation") == c.text("dropout2_implementation"),
          "its dropouts differ");
  return {ops::fused_feedforward(
      c.tensor("x"), c.tensor("linear1_weight"), c.tensor("linear2_weight"),
      c.optional_tensor("linear1_bias"), c.optional_tensor("linear2_bias"),
      c.optional_tensor("ln1_scale"), c.optional_tensor("ln1_bias"), c.optional_tensor("ln2_scale"),
      c.optional_tensor("ln2_bias"), c.real("dropout1_rate"), c.real("dropout2_rate"),
      c.text("act_method"), c.real("ln1_epsilon"), c.real("ln2_epsilon"), c.flag("pre_layer_norm"),
      false, c.text("dropout1_implementation"), -1, c.flag("add_residual"))};
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
      {"elementwise_activation", elementwise_activation},
  };
}

}  // namespace paddle::paddle_program
