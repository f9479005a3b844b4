// Rules of matmul.yaml.

#include "ops/core/compose.h"
#include "ops/core/cost.h"
#include "ops/generated/linalg.h"
#include "ops/generated/linalg_rules.h"
#include "ops/generated/nn.h"
#include "ops/generated/shape.h"

namespace paddle::rules {

Shape matmul_shape(InferContext& c, bool transpose_x, bool transpose_y) {
  Shape x = c.shape(0), y = c.shape(1);
  c.check(!x.empty() && !y.empty(), "operands must have at least one dimension: x is ", c.type(0),
          ", y is ", c.type(1));
  const bool x_vector = x.size() == 1, y_vector = y.size() == 1;
  if (x_vector) x.insert(x.begin(), 1);
  if (y_vector) y.push_back(1);
  if (transpose_x && !x_vector) std::swap(x[x.size() - 1], x[x.size() - 2]);
  if (transpose_y && !y_vector) std::swap(y[y.size() - 1], y[y.size() - 2]);
  c.require_equal(
      x.back(), y[y.size() - 2],
      str("inner dimensions differ: x is ", text(c.shape(0)), ", y is ", text(c.shape(1))));
  Shape out = c.broadcast(Shape(x.begin(), x.end() - 2), Shape(y.begin(), y.end() - 2));
  if (!x_vector) out.push_back(x[x.size() - 2]);
  if (!y_vector) out.push_back(y.back());
  return out;
}

void infer_matmul(InferContext& c) {
  const auto a = c.attrs_as<MatmulAttrs>();
  c.result(c.dtype(0), matmul_shape(c, a.transpose_x, a.transpose_y));
}

Tensors vjp_matmul(VjpContext& c) {
  const auto a = c.attrs_as<MatmulAttrs>();
  Tensor x = c.operand(0), y = c.operand(1), g = c.cotangent();
  const bool x_vector = x.ndim() == 1, y_vector = y.ndim() == 1;
  if (x_vector) x = ops::unsqueeze(x, {0});
  if (y_vector) y = ops::unsqueeze(y, {1});
  if (x_vector) g = ops::unsqueeze(g, {y_vector ? -1 : -2});
  if (y_vector) g = ops::unsqueeze(g, {-1});
  const bool tx = a.transpose_x && !x_vector, ty = a.transpose_y && !y_vector;
  Tensors out = c.gradients();
  if (c.needs(0)) {
    const Tensor dx = tx ? ops::matmul(y, g, ty, true) : ops::matmul(g, y, false, !ty);
    const Tensor summed = sum_to(dx, x.shape());
    out[0] = x_vector ? ops::reshape(summed, c.operand(0).shape()) : summed;
  }
  if (c.needs(1)) {
    // A right operand without batch is multiplied by all rows of the batch at once.
    if (y.ndim() == 2 && x.ndim() > 2 && !tx) {
      const Dim rows =
          element_count(std::span<const Dim>(x.shape()).subspan(0, x.shape().size() - 1));
      x = ops::reshape(x, {rows, x.dim(-1)});
      g = ops::reshape(g, {rows, g.dim(-1)});
    }
    const Tensor dy = ty ? ops::matmul(g, x, true, tx) : ops::matmul(x, g, !tx, false);
    const Tensor summed = sum_to(dy, y.shape());
    out[1] = y_vector ? ops::reshape(summed, c.operand(1).shape()) : summed;
  }
  return out;
}

void infer_linear(InferContext& c) {
  Shape out = c.shape(0);
  c.check(!out.empty(), "x must have at least one dimension");
  c.check(c.rank(1) == 2, "weight must be [in, out], not ", c.type(1));
  c.require_equal(out.back(), c.shape(1)[0],
                  str("x is ", c.type(0), ", weight is ", c.type(1), ": inner dimensions differ"));
  out.back() = c.shape(1)[1];
  if (c.has(2)) {
    const Shape with_bias = c.broadcast(out, c.shape(2));
    c.check(with_bias.size() == out.size(), "bias ", c.type(2), " does not fit ", text(out));
  }
  c.result(c.dtype(0), out);
}

Tensors vjp_linear(VjpContext& c) {
  const Tensor& g = c.cotangent();
  const Tensor &x = c.operand(0), &w = c.operand(1);
  Tensors out = c.gradients();
  if (c.needs(0)) out[0] = ops::matmul(g, w, false, true);
  if (c.needs(1)) {
    const Dim rows =
        element_count(std::span<const Dim>(x.shape()).subspan(0, x.shape().size() - 1));
    out[1] =
        ops::matmul(ops::reshape(x, {rows, x.dim(-1)}), ops::reshape(g, {rows, g.dim(-1)}), true);
  }
  if (c.needs(2)) out[2] = sum_to(g, c.operand(2).shape());
  return out;
}
namespace {

Tensor product(const Tensor& x, const Tensor& y, const Tensor& bias, bool transpose_x,
               bool transpose_y) {
  const Tensor z = ops::matmul(x, y, transpose_x, transpose_y);
  return bias.defined() ? z + bias : z;
}

}  // namespace

Tensors decompose_fused_linear(CallContext& c) {
  return {product(c.operand(0), c.operand(1), c.operand(2), false,
                  c.attrs_as<FusedLinearAttrs>().transpose_weight)};
}

Tensors decompose_fused_matmul_bias(CallContext& c) {
  const auto a = c.attrs_as<FusedMatmulBiasAttrs>();
  return {product(c.operand(0), c.operand(1), c.operand(2), a.transpose_x, a.transpose_y)};
}

Tensors decompose_fused_linear_activation(CallContext& c) {
  const auto a = c.attrs_as<FusedLinearActivationAttrs>();
  const Tensor y = product(c.operand(0), c.operand(1), c.operand(2), a.trans_x, a.trans_y);
  const std::string act = a.activation.value_or("none");
  return {act == "gelu" ? ops::gelu(y) : act == "relu" ? ops::relu(y) : y};
}

// --- cost ---

double cost_matmul(const Attrs& attrs, const std::vector<Dims>& operands,
                   const std::vector<Dims>& results) {
  const Dims& x = operands[0];
  const bool transposed = attrs[0].as_bool() && x.size() > 1;
  const int64_t inner = transposed ? x[x.size() - 2] : x.back();
  return 2 * element_product(results[0]) * static_cast<double>(inner);
}

double cost_linear(const Attrs&, const std::vector<Dims>& operands,
                   const std::vector<Dims>& results) {
  return 2 * element_product(results[0]) * static_cast<double>(operands[0].back());
}

}  // namespace paddle::rules
