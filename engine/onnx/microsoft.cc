// Operators of com.microsoft that ONNX Runtime's optimiser writes: fused products, activations and
// normalisations. Those on quantised values and attention are in files of their own.

#include "onnx/convolution.h"
#include "onnx/operators.h"

namespace paddle::onnx {
namespace {

Values gelu(NodeCall& c) { return {ops::gelu(c.tensor(0))}; }
Values bias_gelu(NodeCall& c) { return {ops::gelu(c.tensor(0) + c.tensor(1))}; }
Values fast_gelu(NodeCall& c) {
  return {ops::gelu(c.has(1) ? c.tensor(0) + c.tensor(1) : c.tensor(0), true)};
}
Values quick_gelu(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  return {x * ops::sigmoid(x * c.real("alpha", 1.702))};
}
Values bias_add(NodeCall& c) { return {c.tensor(0) + c.tensor(1) + c.tensor(2)}; }

/// Axes of a batch that are moved behind the rows first.
Tensor with_batch_behind(const Tensor& x, bool move) {
  if (!move) return x;
  std::vector<int64_t> order = first_axes(x.ndim() - 1);
  order.erase(order.begin());
  order.push_back(0);
  order.push_back(x.ndim() - 1);
  return ops::transpose(x, order);
}

Values fused_matmul(NodeCall& c) {
  const Tensor x = with_batch_behind(c.tensor(0), c.flag("transBatchA", false));
  const Tensor y = with_batch_behind(c.tensor(1), c.flag("transBatchB", false));
  const Tensor out = ops::matmul(x, y, c.flag("transA", false), c.flag("transB", false));
  const double alpha = c.real("alpha", 1);
  return {alpha == 1 ? out : out * alpha};
}

/// The activation that a fused node ends with.
Tensor activated(const NodeCall& c, const Tensor& x, const std::vector<double>& parameters) {
  const std::string name = c.word("activation", "");
  const auto parameter = [&](size_t i, double otherwise) {
    return i < parameters.size() ? parameters[i] : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return ops::relu(x);
  if (name == "Sigmoid") return ops::sigmoid(x);
  if (name == "Tanh") return ops::tanh(x);
  if (name == "LeakyRelu") return ops::leaky_relu(x, parameter(0, 0.01));
  if (name == "Clip") return ops::clip(x, parameter(0, -3.4e38), parameter(1, 3.4e38));
  if (name == "HardSigmoid") return ops::hardsigmoid(x, parameter(0, 0.2), parameter(1, 0.5));
  c.refuse("unknown activation '", name, "'");
}

Values fused_conv(NodeCall& c) {
  Tensor y = convolve(c, c.tensor(0), c.tensor(1), c.tensor_or_none(2));
  if (c.has(3)) y = y + c.tensor(3);
  return {activated(c, y, c.reals("activation_params"))};
}

Values fused_gemm(NodeCall& c) {
  Tensor y =
      ops::matmul(c.tensor(0), c.tensor(1), c.flag("transA", false), c.flag("transB", false)) *
      c.real("alpha", 1);
  if (c.has(2)) y = y + c.tensor(2) * c.real("beta", 1);
  return {activated(c, y, {c.real("activation_alpha", 0.01), c.real("activation_beta", 0.5)})};
}

// ---- normalisations of sums
// ------------------------------------------------------------------

struct Normalized {
  Tensor y, mean, inverse;
};

/// Over the last axis; without a mean for the simplified (RMS) kind.
Normalized normalized(const NodeCall& c, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                      bool simplified, double otherwise) {
  const double epsilon = c.real("epsilon", otherwise);
  const std::vector<int64_t> last = {-1};
  const bool plain = !simplified && x.dtype() == DType::kF32 && !c.wants(1) && !c.wants(2) &&
                     x.dim(-1).is_constant();
  if (plain) return {ops::layer_norm(x, x.dim(-1).value(), gamma, beta, epsilon), {}, {}};
  const Tensor wide = ops::cast(x, x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32);
  Normalized out;
  if (!simplified) out.mean = ops::mean(wide, last, true);
  const Tensor centred = simplified ? wide : wide - out.mean;
  out.inverse = ops::rsqrt(ops::mean(centred * centred, last, true) + epsilon);
  out.y = ops::cast(centred * out.inverse, x.dtype()) * gamma;
  if (beta) out.y = out.y + beta;
  return out;
}

Value or_none(const Tensor& t) { return t ? Value(t) : Value(); }

Values skip_layer_norm(NodeCall& c) {
  Tensor sum = c.tensor(0) + c.tensor(1);
  if (c.has(4)) sum = sum + c.tensor(4);
  const Normalized n = normalized(c, sum, c.tensor(2), c.tensor_or_none(3), false, 1e-12);
  return {n.y, or_none(n.mean), or_none(n.inverse), sum};
}

Values skip_rms_norm(NodeCall& c) {
  Tensor sum = c.tensor(0) + c.tensor(1);
  if (c.has(3)) sum = sum + c.tensor(3);
  const Normalized n = normalized(c, sum, c.tensor(2), {}, true, 1e-12);
  return {n.y, Value(), or_none(n.inverse), sum};
}

/// Words, places and segments looked up, added and normalised.
Values embed_layer_norm(NodeCall& c) {
  const Tensor& ids = c.tensor(0);
  const auto rows = [](const Tensor& table, const Tensor& index) {
    Shape shape = index.shape();
    shape.push_back(table.dim(1));
    return ops::reshape(
        ops::index_select(table, ops::reshape(ops::cast(index, DType::kI64), Shape{-1}), 0), shape);
  };
  Tensor sum = rows(c.tensor(2), ids);
  const Tensor places =
      c.has(8)
          ? c.tensor(8)
          : ops::unsqueeze(
                ops::arange(AttrValue(0), AttrValue(ids.dim(1)), AttrValue(1), DType::kI64), {0});
  sum = sum + rows(c.tensor(3), places);
  if (c.has(1) && c.has(4)) sum = sum + rows(c.tensor(4), c.tensor(1));
  const Tensor y =
      ops::layer_norm(sum, known_size(sum, -1), c.tensor(5), c.tensor(6), c.real("epsilon", 1e-12));
  const Tensor lengths =
      c.has(7) ? ops::sum(ops::cast(c.tensor(7), DType::kI32), std::vector<int64_t>{1}, DType::kI32)
               : ops::full({ids.dim(0)}, int64_t{0}, DType::kI32);
  return {y, lengths, sum};
}

constexpr Operator kOperators[] = {
    {"Gelu", 1, gelu},
    {"BiasGelu", 1, bias_gelu},
    {"FastGelu", 1, fast_gelu},
    {"QuickGelu", 1, quick_gelu},
    {"BiasAdd", 1, bias_add},
    {"FusedMatMul", 1, fused_matmul},
    {"TransposeMatMul", 1, fused_matmul},
    {"FusedConv", 1, fused_conv},
    {"FusedGemm", 1, fused_gemm},
    {"Inverse", 1, unary<ops::inv>},
    {"SkipLayerNormalization", 1, skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", 1, skip_rms_norm},
    {"EmbedLayerNormalization", 1, embed_layer_norm},
};

}  // namespace

std::span<const Operator> microsoft_operators() { return kOperators; }

}  // namespace paddle::onnx
