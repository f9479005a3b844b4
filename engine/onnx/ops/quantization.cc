// Quantization operators, and integer matrix products and convolutions.

#include <cmath>

#include "onnx/ops/conv.h"
#include "onnx/ops/helpers.h"
#include "onnx/ops/quantization.h"
#include "ops/core/backend.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/quantization.h"
#include "ops/generated/shape.h"
#include "ops/quantization/quantized.h"
#include "tensor/interpreter.h"

namespace paddle::onnx {

bool is_single_element(const Tensor& v) {
  return v.ndim() == 0 || (v.ndim() == 1 && v.dim(0).equals(1).value_or(false));
}

Tensor scalar_if_single(const Tensor& v) {
  return v && v.ndim() == 1 && is_single_element(v) ? ops::reshape(v, Shape()) : v;
}

namespace {

/// Constant weights as int8 with zero point 0 and output channels along `channel`: one tensor, or
/// two to be summed. Empty if they are not constant or do not fit.
Tensors int8_tensors(const Tensor& x, const Tensor& w, const Tensor& zero, int64_t channel) {
  const auto is_byte = [](const Tensor& t) {
    return t.dtype() == DType::kU8 || t.dtype() == DType::kI8;
  };
  if (!is_byte(x) || !is_byte(w) || !w.is_concrete()) return {};
  if (zero && (!zero.is_concrete() || zero.ndim() > 1)) return {};
  const auto parts = quantized::centered_weights(
      w.array(), zero ? zero.array() : Array::scalar<float>(0.0f), channel);
  Tensors out;
  for (const Array& part : parts) {
    // Two tensors only pay off with int8 instructions.
    if (parts.size() > 1 &&
        !has_int8_kernel({.device = current_interpreter().device()}, x.dtype(), part))
      return {};
    out.emplace_back(part);
  }
  return out;
}

/// Dequantizes and requantizes sums, as far as there are scales.
Tensor requantize(const Tensor& sums, const Tensor& scale, const Tensor& out_scale,
                  const Tensor& out_zero) {
  if (!scale) return sums;
  const Tensor y = ops::cast(sums, DType::kF32) * scale;
  return out_scale ? ops::quantize(y, scalar_if_single(out_scale), scalar_if_single(out_zero),
                                   out_zero.dtype())
                   : y;
}

DType result_type(const Tensor& scale, const Tensor& out_scale, const Tensor& out_zero) {
  return out_scale ? out_zero.dtype() : scale ? DType::kF32 : DType::kI32;
}

}  // namespace

Tensors int8_weights(const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero) {
  if (a.ndim() < 2 || b.ndim() != 2 || (a_zero && !is_single_element(a_zero))) return {};
  return int8_tensors(a, b, b_zero, 1);
}

Tensor quantized_matmul(const Tensor& x, const Tensors& weights, const Tensor& zero,
                        const Tensor& scale, const Tensor& bias, const Tensor& out_scale,
                        const Tensor& out_zero) {
  const auto product = [&](const Tensor& w, const Tensor& b, const Tensor& s, const Tensor& os,
                           const Tensor& oz) {
    return ops::quantized_linear(x, w, scalar_if_single(zero), scalar_if_single(s), b, {}, {}, {},
                                 {}, {}, scalar_if_single(os), scalar_if_single(oz), DType::kU8,
                                 std::nullopt, std::nullopt, result_type(s, os, oz));
  };
  if (weights.size() == 1) return product(weights[0], bias, scale, out_scale, out_zero);
  const Tensor sums = product(weights[0], bias, {}, {}, {}) + product(weights[1], {}, {}, {}, {});
  return requantize(sums, scalar_if_single(scale), out_scale, out_zero);
}

namespace {

/// Broadcasts a scale or zero point to x: per tensor, per axis, or per block.
Tensor broadcast_to(const NodeCall& c, const Tensor& v, const Tensor& x) {
  if (v.ndim() == 0) return v;
  const int64_t block = c.int_attr("block_size", 0);
  if (block == 0 && v.ndim() == 1) {
    if (v.dim(0).equals(1).value_or(false)) return ops::reshape(v, Shape());
    Shape shape(static_cast<size_t>(x.ndim()), Dim(1));
    shape[static_cast<size_t>(c.axis(c.int_attr("axis", 1), x.ndim()))] = v.dim(0);
    return ops::reshape(v, shape);
  }
  c.check(block > 0 && v.ndim() == x.ndim(), "scales of rank ", v.ndim(), " need a block_size");
  const int64_t axis = c.axis(c.int_attr("axis", 1), x.ndim()), size = constant_dim(x, axis);
  std::vector<int64_t> block_of;
  for (int64_t i = 0; i < size; ++i) block_of.push_back(i / block);
  return ops::index_select(v, int_vector(block_of), axis);
}

/// round(x / scale) + zero, saturated. Shapes must broadcast.
Tensor quantized(const NodeCall& c, const Tensor& x, const Tensor& scale, const Tensor& zero,
                 DType to) {
  const Tensor ratio = x / scale;
  if (is_float(to)) return convert(ratio, to, c.bool_attr("saturate", true), "up");
  c.check(is_integer(to), "values are not quantized to ", text(to));
  const auto [low, high] = integer_range(to);
  Tensor steps = ops::round(ops::cast(ratio, DType::kF32));
  if (zero) steps = steps + ops::cast(zero, DType::kF32);
  return ops::cast(ops::clip(steps, low, high), to);
}

/// Dtypes with direct kernels; others go through floats.
bool has_direct_kernels(DType dtype) { return is_integer(dtype) && info(dtype).has_kernels; }
bool is_step_type(DType dtype) { return has_direct_kernels(dtype) && info(dtype).bits <= 16; }

Values quantize_linear(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const DType to = c.dtype_attr("output_dtype", c.has_input(2) ? c.tensor(2).dtype() : DType::kU8);
  // Divides in the dtype of the scale, unless `precision` says otherwise.
  const DType work = c.dtype_attr("precision", c.tensor(1).dtype());
  const Tensor scale = broadcast_to(c, ops::cast(c.tensor(1), work), x);
  Tensor zero;
  if (c.has_input(2) && is_integer(to))
    zero = broadcast_to(c, ops::cast(c.tensor(2), DType::kF32), x);
  if (work == DType::kF32 && is_step_type(to))
    return {ops::quantize(ops::cast(x, work), scale, zero ? zero : scalar(0, DType::kF32), to)};
  return {quantized(c, ops::cast(x, work), scale, zero, to)};
}

/// x with a scale for each block along an axis, which becomes two: the blocks and their elements.
Tensor dequantized_blocks(const NodeCall& c, const Tensor& x, int64_t block) {
  const int64_t axis = c.axis(c.int_attr("axis", 1), x.ndim()), size = constant_dim(x, axis);
  const auto at = static_cast<size_t>(axis);
  Tensor scale = c.tensor(1), zero = c.has_input(2) ? c.tensor(2) : Tensor();
  if (zero && info(zero.dtype()).bits == 4) zero = ops::cast(zero, DType::kI8);
  if (!zero) zero = scalar(0, DType::kF32);
  if (scale.dim(axis).equals(1).value_or(false) || size % block != 0) {
    // One block, or a last one that is shorter.
    if (size % block != 0) {
      scale = broadcast_to(c, scale, x);
      if (zero.ndim() > 0) zero = broadcast_to(c, zero, x);
    }
    return ops::dequantize(x, scale, zero);
  }
  Shape blocks = x.shape();
  blocks[at] = Dim(size / block);
  blocks.insert(blocks.begin() + axis + 1, Dim(block));
  scale = ops::unsqueeze(scale, {axis + 1});
  if (zero.ndim() > 0) zero = ops::unsqueeze(zero, {axis + 1});
  return ops::reshape(ops::dequantize(ops::reshape(x, blocks), scale, zero), x.shape());
}

Values dequantize_linear(NodeCall& c) {
  Tensor x = c.tensor(0);
  // Weights of 4 bits, which have no kernels, stay integers.
  if (is_integer(x.dtype()) && info(x.dtype()).bits == 4) x = ops::cast(x, DType::kI8);
  const DType to = c.dtype_attr("output_dtype", c.tensor(1).dtype());
  if (to == DType::kF32 && c.tensor(1).dtype() == DType::kF32 && has_direct_kernels(x.dtype())) {
    if (const int64_t block = c.int_attr("block_size", 0);
        block > 0 && c.tensor(1).ndim() == x.ndim())
      return {dequantized_blocks(c, x, block)};
    const Tensor zero = c.has_input(2) ? broadcast_to(c, ops::cast(c.tensor(2), DType::kF32), x)
                                       : scalar(0, DType::kF32);
    return {ops::dequantize(x, broadcast_to(c, c.tensor(1), x), zero)};
  }
  Tensor wide = ops::cast(x, DType::kF32);
  if (c.has_input(2)) wide = wide - broadcast_to(c, ops::cast(c.tensor(2), DType::kF32), x);
  const Tensor scale = ops::cast(c.tensor(1), DType::kF32);
  return {ops::cast(wide * broadcast_to(c, scale, x), to)};
}

Values dynamic_quantize_linear(NodeCall& c) {
  const Tensors made = ops::quantize_dynamic(c.tensor(0));
  return {made[0], made[1], made[2]};
}

/// A per-row value of the left operand as a column.
Tensor per_row(const Tensor& v) {
  return v.ndim() != 1 || v.dim(0).equals(1).value_or(false) ? v : ops::unsqueeze(v, {1});
}

/// Subtracts the zero point, in a dtype that holds the sums exactly.
Tensor subtract_zero_point(const Tensor& x, const Tensor& zero, DType work) {
  const Tensor wide = ops::cast(x, work);
  return zero ? wide - ops::cast(zero, work) : wide;
}

/// float32 is exact up to 2^24; longer sums need float64.
DType work_type(int64_t terms) { return terms <= 256 ? DType::kF32 : DType::kF64; }

/// Product of two activations in int8, as in attention; undefined if unsupported.
Tensor quantized_matmul_dynamic(const Tensor& a, const Tensor& a_zero, const Tensor& b,
                                const Tensor& b_zero, const Tensor& scale = {},
                                const Tensor& out_scale = {}, const Tensor& out_zero = {}) {
  for (const Tensor& t : {a, b})
    if (t.ndim() < 2 || (t.dtype() != DType::kU8 && t.dtype() != DType::kI8)) return {};
  for (const Tensor& zero : {a_zero, b_zero})
    if (zero && !is_single_element(zero)) return {};
  return ops::quantized_matmul(a, b, scalar_if_single(a_zero), scale, {}, {}, {}, {}, {}, {},
                               out_scale, scalar_if_single(out_zero), scalar_if_single(b_zero),
                               false, false, DType::kU8, std::nullopt, std::nullopt,
                               result_type(scale, out_scale, out_zero));
}

Values matmul_integer(NodeCall& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  const Tensor a_zero = c.optional_tensor(2), b_zero = c.optional_tensor(3);
  if (const Tensors w = int8_weights(a, a_zero, b, b_zero); !w.empty())
    return {quantized_matmul(a, w, a_zero)};
  if (const Tensor y = quantized_matmul_dynamic(a, a_zero, b, b_zero)) return {y};
  const Dim& terms = a.dim(-1);
  const DType work = terms.is_constant() ? work_type(terms.value()) : DType::kF64;
  const Tensor za = a_zero ? per_row(a_zero) : Tensor();
  return {
      ops::cast(ops::matmul(subtract_zero_point(a, za, work), subtract_zero_point(b, b_zero, work)),
                DType::kI32)};
}

Values qlinear_matmul(NodeCall& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(3);
  const auto f32 = [&](size_t i) { return ops::cast(c.tensor(i), DType::kF32); };
  if (is_single_element(c.tensor(1)) && is_single_element(c.tensor(6)) &&
      is_single_element(c.tensor(7)))
    if (const Tensors w = int8_weights(a, c.tensor(2), b, c.tensor(5)); !w.empty())
      return {quantized_matmul(a, w, c.tensor(2),
                               scalar_if_single(f32(1)) * scalar_if_single(f32(4)), {}, f32(6),
                               c.tensor(7))};
  if (is_single_element(c.tensor(1)) && is_single_element(c.tensor(4)) &&
      is_single_element(c.tensor(6)) && is_single_element(c.tensor(7)))
    if (const Tensor y = quantized_matmul_dynamic(
            a, c.tensor(2), b, c.tensor(5), scalar_if_single(f32(1)) * scalar_if_single(f32(4)),
            scalar_if_single(f32(6)), c.tensor(7)))
      return {y};
  const Dim& terms = a.dim(-1);
  const DType work = terms.is_constant() ? work_type(terms.value()) : DType::kF64;
  const Tensor product = ops::matmul(subtract_zero_point(a, per_row(c.tensor(2)), work),
                                     subtract_zero_point(b, c.tensor(5), work));
  const Tensor scale = per_row(f32(1)) * f32(4);
  const Tensor y = ops::cast(product, DType::kF32) * scale;
  return {quantized(c, y, f32(6), c.tensor(7), c.tensor(7).dtype())};
}

/// A per-output-channel value for [batch, channels, ...].
Tensor per_output_channel(const Tensor& v, int64_t rank) {
  if (is_single_element(v)) return ops::reshape(v, Shape());
  if (rank < 2) fail(ErrorCode::kModel, "the input has rank ", rank, " and so no channels");
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[1] = v.dim(0);
  return ops::reshape(v, shape);
}
/// A per-output-channel value for the weight, whose output channels are axis 0.
Tensor per_weight_channel(const Tensor& v, int64_t rank) {
  if (is_single_element(v)) return ops::reshape(v, Shape());
  if (rank < 1) fail(ErrorCode::kModel, "the weight has no axes");
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[0] = v.dim(0);
  return ops::reshape(v, shape);
}

DType conv_work(const Tensor& weight) {
  const Dims shape = constant_shape(weight);
  int64_t terms = 1;
  for (size_t i = 1; i < shape.size(); ++i) terms *= shape[i];
  return work_type(terms);
}

/// Constant weights of Conv1d as those of Conv2d with height 1.
Tensor conv1d_as_conv2d(const Tensor& weights) {
  Array filters = weights.array().contiguous();
  filters.shape.insert(filters.shape.begin() + 2, 1);
  filters.strides = contiguous_strides(filters.shape);
  return Tensor(filters);
}

/// Quantized convolution of 1-D (as height 1), 2-D or 3-D data; see quantized_matmul.
Tensor quantized_conv(const NodeCall& c, const Tensor& x, const Tensors& weights,
                      const Tensor& zero, const Tensor& bias = {}, const Tensor& scale = {},
                      const Tensor& out_scale = {}, const Tensor& out_zero = {}) {
  Window window = conv_window(c, x, weights[0]);
  const bool line = window.rank() == 1;
  if (line) {
    window.kernel.insert(window.kernel.begin(), 1);
    window.stride.insert(window.stride.begin(), 1);
    window.dilation.insert(window.dilation.begin(), 1);
    window.before.insert(window.before.begin(), 0);
    window.after.insert(window.after.begin(), 0);
  }
  const auto convolution = [&](const Tensor& w, const Tensor& b, const Tensor& s, const Tensor& os,
                               const Tensor& oz) {
    const Tensor y = ops::quantized_conv(
        line ? ops::unsqueeze(x, {2}) : x, line ? conv1d_as_conv2d(w) : w, scalar_if_single(zero),
        scalar_if_single(s), b, {}, {}, {}, {}, {}, scalar_if_single(os), scalar_if_single(oz),
        window.stride, window.borders(), window.dilation, c.int_attr("group", 1),
        window.rank() == 3 ? "NCDHW" : "NCHW", DType::kU8, std::nullopt, std::nullopt,
        result_type(s, os, oz));
    return line ? ops::squeeze(y, std::vector<int64_t>{2}) : y;
  };
  if (weights.size() == 1) return convolution(weights[0], bias, scale, out_scale, out_zero);
  const Tensor sums =
      convolution(weights[0], bias, {}, {}, {}) + convolution(weights[1], {}, {}, {}, {});
  return requantize(sums, scale ? per_output_channel(scale, sums.ndim()) : scale, out_scale,
                    out_zero);
}

/// Constant convolution weights as int8 tensors (see int8_weights); empty if unsupported.
Tensors int8_conv_weights(const Tensor& x, const Tensor& x_zero, const Tensor& w,
                          const Tensor& zero) {
  const bool known_rank = x.ndim() == w.ndim() && w.ndim() >= 3 && w.ndim() <= 5;
  if (!known_rank || (x_zero && !is_single_element(x_zero))) return {};
  return int8_tensors(x, w, zero, 0);
}

Values conv_integer(NodeCall& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  const Tensor x_zero = c.optional_tensor(2), w_zero = c.optional_tensor(3);
  if (const Tensors filters = int8_conv_weights(x, x_zero, w, w_zero); !filters.empty())
    return {quantized_conv(c, x, filters, x_zero)};
  const DType work = conv_work(w);
  const Tensor zw = w_zero ? per_weight_channel(w_zero, w.ndim()) : Tensor();
  return {ops::cast(
      convolve(c, subtract_zero_point(x, x_zero, work), subtract_zero_point(w, zw, work), {}),
      DType::kI32)};
}

Values qlinear_conv(NodeCall& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(3);
  const auto f32 = [&](size_t i) { return ops::cast(c.tensor(i), DType::kF32); };
  if (is_single_element(c.tensor(1)) && is_single_element(c.tensor(6)) &&
      is_single_element(c.tensor(7)))
    if (const Tensors filters = int8_conv_weights(x, c.tensor(2), w, c.tensor(5)); !filters.empty())
      return {quantized_conv(c, x, filters, c.tensor(2), c.optional_tensor(8),
                             scalar_if_single(f32(1)) * scalar_if_single(f32(4)), f32(6),
                             c.tensor(7))};
  const DType work = conv_work(w);
  const Tensor bias = c.has_input(8) ? ops::cast(c.tensor(8), work) : Tensor();
  const Tensor sums =
      convolve(c, subtract_zero_point(x, c.tensor(2), work),
               subtract_zero_point(w, per_weight_channel(c.tensor(5), w.ndim()), work), bias);
  const Tensor y =
      ops::cast(sums, DType::kF32) * (f32(1) * per_output_channel(f32(4), sums.ndim()));
  return {quantized(c, y, f32(6), c.tensor(7), c.tensor(7).dtype())};
}

}  // namespace

Values qlinear_conv_rule(NodeCall& c) { return qlinear_conv(c); }

OperatorTable quantization_operators() {
  static constexpr Operator operators[] = {
      {"QuantizeLinear", 1, quantize_linear},
      {"DequantizeLinear", 1, dequantize_linear},
      {"DynamicQuantizeLinear", 1, dynamic_quantize_linear},
      {"MatMulInteger", 1, matmul_integer},
      {"QLinearMatMul", 1, qlinear_matmul},
      {"ConvInteger", 1, conv_integer},
      {"QLinearConv", 1, qlinear_conv},
  };
  return operators;
}

}  // namespace paddle::onnx
