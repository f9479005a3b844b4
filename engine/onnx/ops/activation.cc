// Activation functions.

#include "onnx/ops/helpers.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

Values gelu(NodeCall& c) {
  return {ops::gelu(c.tensor(0), c.string_attr("approximate", "none") == "tanh")};
}
Values elu(NodeCall& c) { return {ops::elu(c.tensor(0), c.float_attr("alpha", 1))}; }
Values celu(NodeCall& c) { return {ops::celu(c.tensor(0), c.float_attr("alpha", 1))}; }
Values selu(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const double gamma = c.float_attr("gamma", c.opset() < 6 ? 1.0507 : 1.0507009873554805);
  const double alpha = c.float_attr("alpha", c.opset() < 6 ? 1.6732 : 1.6732632423543772);
  if (gamma > 1 && alpha >= 0) return {ops::selu(x, gamma, alpha)};
  return {ops::elu(x, alpha) * gamma};
}
Values leaky_relu(NodeCall& c) {
  return {ops::leaky_relu(c.tensor(0), c.float_attr("alpha", 0.01))};
}
Values thresholded_relu(NodeCall& c) {
  return {ops::thresholded_relu(c.tensor(0), c.float_attr("alpha", 1))};
}
Values hard_sigmoid(NodeCall& c) {
  return {ops::hardsigmoid(c.tensor(0), c.float_attr("alpha", 0.2), c.float_attr("beta", 0.5))};
}
Values softplus(NodeCall& c) { return {ops::softplus(c.tensor(0), 1.0, 1e30)}; }

/// Slopes broadcast to x; in old opsets a 1-D slope is per channel.
Values prelu(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  Tensor slope = c.tensor(1);
  if (c.opset() < 7 && slope.ndim() == 1 && x.ndim() > 1) {
    Shape shape(static_cast<size_t>(x.ndim()), Dim(1));
    shape[1] = slope.dim(0);
    slope = ops::reshape(slope, shape);
  }
  return {ops::where(ops::less_than(x, scalar(0, x.dtype())), x * slope, x)};
}

Values swish(NodeCall& c) {
  const double alpha = c.float_attr("alpha", 1);
  const Tensor& x = c.tensor(0);
  return {alpha == 1 ? ops::silu(x) : x * ops::sigmoid(x * alpha)};
}

Values swiglu(NodeCall& c) {
  const double alpha = c.float_attr("alpha", 1);
  const Tensor& gate = c.tensor(0);
  return {gate * ops::sigmoid(alpha == 1 ? gate : gate * alpha) * c.tensor(1)};
}

Values shrink(NodeCall& c) {
  const double limit = c.float_attr("lambd", 0.5), bias = c.float_attr("bias", 0);
  const Tensor& x = c.tensor(0);
  const Tensor wide = is_float(x.dtype()) ? x : ops::cast(x, DType::kF64);
  const Tensor zero = scalar(0, wide.dtype());
  const Tensor below = ops::less_than(wide, scalar(-limit, wide.dtype()));
  const Tensor above = ops::greater_than(wide, scalar(limit, wide.dtype()));
  const Tensor out = ops::where(below, wide + bias, ops::where(above, wide - bias, zero));
  return {ops::cast(out, x.dtype())};
}

/// Up to opset 12 the axes from `axis` on are flattened.
template <Tensor (*F)(const Tensor&, int64_t, const std::optional<DType>&)>
Values flattened(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.axis(c.int_attr("axis", 1), x.ndim());
  Dim rows = 1;
  for (int64_t i = 0; i < axis; ++i) rows = rows * x.dim(i);
  Dim columns = 1;
  for (int64_t i = axis; i < x.ndim(); ++i) columns = columns * x.dim(i);
  return {ops::reshape(F(ops::reshape(x, {rows, columns}), 1, {}), x.shape())};
}
template <Tensor (*F)(const Tensor&, int64_t, const std::optional<DType>&)>
Values along_axis(NodeCall& c) {
  return {F(c.tensor(0), c.int_attr("axis", -1), {})};
}

Tensor hardmax_of(const Tensor& x, int64_t axis, const std::optional<DType>&) {
  const int64_t at = axis < 0 ? axis + x.ndim() : axis;
  if (x.dim(at).equals(0).value_or(false)) return x;
  const Tensor first = ops::argmax(x, at, true);
  Shape shape(static_cast<size_t>(x.ndim()), Dim(1));
  shape[static_cast<size_t>(at)] = x.dim(at);
  const Tensor indices = ops::reshape(iota(x.dim(at)), shape);
  return ops::cast(ops::equal(indices, first), x.dtype());
}

}  // namespace

OperatorTable activation_operators() {
  static constexpr Operator operators[] = {
      {"Relu", 1, unary<ops::relu>},
      {"Sigmoid", 1, unary<ops::sigmoid>},
      {"Tanh", 1, unary<ops::tanh>},
      {"Softsign", 1, unary<ops::softsign>},
      {"Mish", 1, unary<ops::mish>},
      {"HardSwish", 1, unary<ops::hardswish>},
      {"Softplus", 1, softplus},
      {"Gelu", 1, gelu},
      {"Elu", 1, elu},
      {"Celu", 1, celu},
      {"Selu", 1, selu},
      {"LeakyRelu", 1, leaky_relu},
      {"ThresholdedRelu", 1, thresholded_relu},
      {"HardSigmoid", 1, hard_sigmoid},
      {"PRelu", 1, prelu},
      {"Swish", 1, swish},
      {"SwiGLU", 1, swiglu},
      {"Shrink", 1, shrink},
      {"Softmax", 1, flattened<ops::softmax>},
      {"Softmax", 13, along_axis<ops::softmax>},
      {"LogSoftmax", 1, flattened<ops::log_softmax>},
      {"LogSoftmax", 13, along_axis<ops::log_softmax>},
      {"Hardmax", 1, flattened<hardmax_of>},
      {"Hardmax", 13, along_axis<hardmax_of>},
  };
  return operators;
}

}  // namespace paddle::onnx
