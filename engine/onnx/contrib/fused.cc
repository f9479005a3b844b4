// Fused operators of com.microsoft that ONNX Runtime's optimizer emits: matrix products,
// activations and normalization. Quantized ones and attention have their own files.

#include "onnx/ops/conv.h"
#include "onnx/ops/helpers.h"
#include "onnx/ops/quantization.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/sorting.h"

namespace paddle::onnx {
namespace {

Values gelu(NodeCall& c) { return {ops::gelu(c.tensor(0))}; }
Values bias_gelu(NodeCall& c) { return {ops::gelu(c.tensor(0) + c.tensor(1))}; }
Values fast_gelu(NodeCall& c) {
  return {ops::gelu(c.has_input(1) ? c.tensor(0) + c.tensor(1) : c.tensor(0), true)};
}
Values quick_gelu(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  return {x * ops::sigmoid(x * c.float_attr("alpha", 1.702))};
}
Values bias_add(NodeCall& c) { return {c.tensor(0) + c.tensor(1) + c.tensor(2)}; }

/// Moves the first batch axis after the rows (transBatchA, transBatchB).
Tensor move_batch_axis(const Tensor& x, bool move) {
  if (!move) return x;
  std::vector<int64_t> order = leading_axes(x.ndim() - 1);
  order.erase(order.begin());
  order.push_back(0);
  order.push_back(x.ndim() - 1);
  return ops::transpose(x, order);
}

Values fused_matmul(NodeCall& c) {
  const Tensor x = move_batch_axis(c.tensor(0), c.bool_attr("transBatchA", false));
  const Tensor y = move_batch_axis(c.tensor(1), c.bool_attr("transBatchB", false));
  const Tensor out = ops::matmul(x, y, c.bool_attr("transA", false), c.bool_attr("transB", false));
  const double alpha = c.float_attr("alpha", 1);
  return {alpha == 1 ? out : out * alpha};
}

/// The activation of a fused node, with parameters alpha, beta and gamma.
Tensor activate(const NodeCall& c, const Tensor& x, const std::vector<double>& parameters) {
  const std::string name = c.string_attr("activation", "");
  const auto parameter = [&](size_t i, double default_value) {
    return i < parameters.size() ? parameters[i] : default_value;
  };
  if (name.empty()) return x;
  if (name == "Relu") return ops::relu(x);
  if (name == "Sigmoid") return ops::sigmoid(x);
  if (name == "Tanh") return ops::tanh(x);
  if (name == "LeakyRelu") return ops::leaky_relu(x, parameter(0, 0.01));
  if (name == "Clip") return ops::clip(x, parameter(0, -3.4e38), parameter(1, 3.4e38));
  if (name == "HardSigmoid") return ops::hardsigmoid(x, parameter(0, 0.2), parameter(1, 0.5));
  if (name == "HardSwish") return ops::hardswish(x);
  if (name == "Softplus") return ops::softplus(x, 1.0, 1e30);
  if (name == "Softsign") return ops::softsign(x);
  if (name == "Elu") return ops::elu(x, parameter(0, 1));
  if (name == "Selu")
    return ops::selu(x, parameter(2, 1.0507009873554805), parameter(0, 1.6732632423543772));
  if (name == "ThresholdedRelu") return ops::thresholded_relu(x, parameter(0, 1));
  if (name == "ScaledTanh") return ops::tanh(x * parameter(1, 1)) * parameter(0, 1);
  if (name == "ParametricSoftplus")
    return ops::softplus(x * parameter(1, 1), 1.0, 1e30) * parameter(0, 1);
  c.reject("unknown activation '", name, "'");
}

Values fused_conv(NodeCall& c) { return {fused_conv(c, c.tensor(0), c.tensor(1))}; }

Values fused_gemm(NodeCall& c) {
  Tensor y = ops::matmul(c.tensor(0), c.tensor(1), c.bool_attr("transA", false),
                         c.bool_attr("transB", false)) *
             c.float_attr("alpha", 1);
  if (c.has_input(2)) y = y + c.tensor(2) * c.float_attr("beta", 1);
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (c.has_attribute(name)) parameters.push_back(c.float_attr(name, 0));
  if (c.string_attr("activation", "") == "Selu" && parameters.size() == 2)
    parameters.insert(parameters.begin() + 1, 0);
  return {activate(c, y, parameters)};
}

// --- residual normalization ---

struct Normalized {
  Tensor y, mean, inverse;
};

/// Over the last axis; RMS normalization if `simplified`.
Normalized normalized(const NodeCall& c, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                      bool simplified, double default_value) {
  const double epsilon = c.float_attr("epsilon", default_value);
  const std::vector<int64_t> last = {-1};
  const bool has_fused_kernel = !simplified && x.dtype() == DType::kF32 && !c.has_output(1) &&
                                !c.has_output(2) && x.dim(-1).is_constant();
  if (has_fused_kernel)
    return {ops::layer_norm(x, x.dim(-1).value(), gamma, beta, epsilon), {}, {}};
  const Tensor wide = ops::cast(x, x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32);
  Normalized out;
  if (!simplified) out.mean = ops::mean(wide, last, true);
  const Tensor centered = simplified ? wide : wide - out.mean;
  out.inverse = ops::rsqrt(ops::mean(centered * centered, last, true) + epsilon);
  out.y = ops::cast(centered * out.inverse, x.dtype()) * gamma;
  if (beta) out.y = out.y + beta;
  return out;
}

Value or_none(const Tensor& t) { return t ? Value(t) : Value(); }

Values skip_layer_norm(NodeCall& c) {
  Tensor sum = c.tensor(0) + c.tensor(1);
  if (c.has_input(4)) sum = sum + c.tensor(4);
  const Normalized n = normalized(c, sum, c.tensor(2), c.optional_tensor(3), false, 1e-12);
  return {n.y, or_none(n.mean), or_none(n.inverse), sum};
}

Values skip_rms_norm(NodeCall& c) {
  Tensor sum = c.tensor(0) + c.tensor(1);
  if (c.has_input(3)) sum = sum + c.tensor(3);
  const Normalized n = normalized(c, sum, c.tensor(2), {}, true, 1e-12);
  return {n.y, Value(), or_none(n.inverse), sum};
}

/// Embedding lookup in a table that may be quantized per tensor.
Tensor lookup(const Tensor& table, const Tensor& index, const Tensor& scale, const Tensor& zero) {
  Shape shape = index.shape();
  shape.push_back(table.dim(1));
  const Tensor taken = ops::reshape(
      ops::index_select(table, ops::reshape(ops::cast(index, DType::kI64), Shape{-1}), 0), shape);
  return scale ? ops::dequantize(taken, scalar_if_single(scale), scalar_if_single(zero)) : taken;
}

/// Sum of word, position and segment embeddings, normalized. The tables (inputs 2 to 6) may be
/// int8; scales, then zero points, are inputs from `scales` on.
Values embedding(const NodeCall& c, size_t mask, size_t positions_input,
                 std::optional<size_t> scales) {
  const Tensor& ids = c.tensor(0);
  const auto of_table = [&](size_t i, size_t first) {
    return scales ? c.optional_tensor(first + i - 2) : Tensor();
  };
  const auto rows = [&](size_t i, const Tensor& index) {
    return lookup(c.tensor(i), index, of_table(i, scales.value_or(0)),
                  of_table(i, scales.value_or(0) + 5));
  };
  const auto whole = [&](size_t i) {
    if (!scales) return c.tensor(i);
    return ops::dequantize(c.tensor(i), scalar_if_single(of_table(i, *scales)),
                           scalar_if_single(of_table(i, *scales + 5)));
  };
  Tensor sum = rows(2, ids);
  const Tensor positions = c.has_input(positions_input) ? c.tensor(positions_input)
                                                        : ops::unsqueeze(iota(ids.dim(1)), {0});
  sum = sum + rows(3, positions);
  if (c.has_input(1) && c.has_input(4)) sum = sum + rows(4, c.tensor(1));
  const Tensor y = ops::layer_norm(sum, constant_dim(sum, -1), whole(5), whole(6),
                                   c.float_attr("epsilon", 1e-12));
  const Tensor lengths = c.has_input(mask) ? ops::sum(ops::cast(c.tensor(mask), DType::kI32),
                                                      std::vector<int64_t>{1}, DType::kI32)
                                           : ops::full({ids.dim(0)}, int64_t{0}, DType::kI32);
  return {y, lengths, sum};
}

Values embed_layer_norm(NodeCall& c) { return embedding(c, 7, 8, {}); }
Values quantized_embed_layer_norm(NodeCall& c) {
  return embedding(c, 7, c.input_count(), size_t{8});
}

// --- others ---

Values expand_dims(NodeCall& c) {
  return {ops::unsqueeze(c.tensor(0), {c.axis(c.constant_int(1), c.tensor(0).ndim() + 1)})};
}

Values distances(NodeCall& c) {
  const std::string metric = c.string_attr("metric", "sqeuclidean");
  c.check(metric == "euclidean" || metric == "sqeuclidean", "unknown metric '", metric, "'");
  const Tensor difference = ops::unsqueeze(c.tensor(0), {1}) - ops::unsqueeze(c.tensor(1), {0});
  const Tensor squares = ops::sum(difference * difference, std::vector<int64_t>{2});
  return {metric == "euclidean" ? ops::sqrt(squares) : squares};
}

/// Distinct elements in order of occurrence, inverse and counts.
Values unique(NodeCall& c) {
  const Tensors out = ops::unique(c.tensor(0), true, true, true, std::nullopt);
  const Tensor order = ops::argsort(out[1], 0);
  const Tensor rank = ops::argsort(order, 0);
  return {ops::index_select(out[0], order, 0), ops::index_select(rank, out[2], 0),
          ops::index_select(out[3], order, 0)};
}

/// Word vectors [words, ...] from characters [words, characters]: embedding, convolution over
/// character windows, maximum over windows. A word has as many windows as its non-zero characters
/// fill, at least one; a word that starts with 0 is padding and gives zeros.
Values word_conv_embedding(NodeCall& c) {
  const Tensor words = ops::cast(c.tensor(0), DType::kI64), &weight = c.tensor(1),
               &table = c.tensor(3);
  c.check(words.ndim() == 2 && weight.ndim() == 4 && table.ndim() == 2,
          "words and characters must be matrices, and the weight have four axes");
  const int64_t length = constant_dim(words, 1), window = constant_dim(weight, 2),
                filters = constant_dim(weight, 0), size = constant_dim(table, 1);
  c.check(window >= 1 && window <= length, "windows of ", window, " are longer than words of ",
          length);
  const int64_t count = length - window + 1;
  const Tensor x = ops::reshape(ops::index_select(table, ops::reshape(words, Shape{-1}), 0),
                                {words.dim(0), Dim(length), Dim(size)});
  Tensors shifted;
  for (int64_t k = 0; k < window; ++k) shifted.push_back(slice_axis(x, 1, k, k + count));
  const Tensor y =
      ops::tanh(ops::matmul(ops::concat(shifted, 2), ops::reshape(weight, {filters, window * size}),
                            false, true) +
                c.tensor(2));
  const Tensor zero = int_scalar(0);
  const Tensor filled = ops::sum(ops::cast(ops::greater_than(words, zero), DType::kI64),
                                 std::vector<int64_t>{1}, DType::kI64, true);
  const Tensor windows = ops::maximum(filled - int_scalar(window - 1), int_scalar(1));
  const Tensor counts =
      ops::unsqueeze(ops::less_than(ops::unsqueeze(iota(count), {0}), windows), {2});
  const Tensor best =
      ops::max(ops::where(counts, y, scalar(-1, y.dtype())), std::vector<int64_t>{1});
  return {
      ops::where(ops::greater_than(slice_axis(words, 1, 0, 1), zero), best, scalar(0, y.dtype()))};
}

/// An identity that ONNX Runtime ships as an example operator.
Values sample_op(NodeCall& c) { return {c.tensor(0)}; }

}  // namespace

Tensor fused_conv(const NodeCall& c, const Tensor& x, const Tensor& weight) {
  Tensor y = convolve(c, x, weight, c.optional_tensor(2));
  if (c.has_input(3)) y = y + c.tensor(3);
  return activate(c, y, c.floats_attr("activation_params"));
}

OperatorTable contrib_fused_operators() {
  static constexpr Operator operators[] = {
      {"AttnLSTM", 1, attn_lstm_rule},
      {"SampleOp", 1, sample_op},
      {"SparseToDenseMatMul", 1, fused_matmul},  // sparse initializers are expanded on load
      {"WordConvEmbedding", 1, word_conv_embedding},
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
      {"QEmbedLayerNormalization", 1, quantized_embed_layer_norm},
      {"ExpandDims", 1, expand_dims},
      {"CDist", 1, distances},
      {"Unique", 1, unique},
  };
  return operators;
}

}  // namespace paddle::onnx
