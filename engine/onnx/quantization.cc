// Quantised values: integers (or small floats) with scales and zero points.

#include <cmath>

#include "onnx/convolution.h"
#include "onnx/operators.h"

namespace paddle::onnx {
namespace {

/// A scale or zero point brought to the shape of x: one for all, one per place of an axis, or one
/// per block of places.
Tensor fitted(const NodeCall& c, const Tensor& v, const Tensor& x) {
  if (v.ndim() == 0) return v;
  const int64_t block = c.integer("block_size", 0);
  if (block == 0 && v.ndim() == 1) {
    if (v.dim(0).equals(1).value_or(false)) return ops::reshape(v, Shape());
    Shape shape(static_cast<size_t>(x.ndim()), Dim(1));
    shape[static_cast<size_t>(c.axis(c.integer("axis", 1), x.ndim()))] = v.dim(0);
    return ops::reshape(v, shape);
  }
  c.check(block > 0 && v.ndim() == x.ndim(), "scales of rank ", v.ndim(), " need a block_size");
  const int64_t axis = c.axis(c.integer("axis", 1), x.ndim()), size = known_size(x, axis);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < size; ++i) places.push_back(i / block);
  return ops::index_select(v, integer_vector(places), axis);
}

/// The range of an integer type; kModel for another.
std::pair<double, double> range_of(const NodeCall& c, DType dtype) {
  c.check(is_integer(dtype), "values are not quantised to ", text(dtype));
  const int bits = info(dtype).bits;
  if (info(dtype).kind == DTypeKind::kUnsigned) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

/// round(x / scale) + zero, held within the type. Shapes must fit.
Tensor quantized(const NodeCall& c, const Tensor& x, const Tensor& scale, const Tensor& zero,
                 DType to) {
  const Tensor ratio = x / scale;
  if (is_float(to)) return convert(ratio, to, c.flag("saturate", true), "up");
  const auto [low, high] = range_of(c, to);
  Tensor steps = ops::round(ops::cast(ratio, DType::kF32));
  if (zero) steps = steps + ops::cast(zero, DType::kF32);
  return ops::cast(ops::clip(steps, low, high), to);
}

Values quantize_linear(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const DType to = c.dtype("output_dtype", c.has(2) ? c.tensor(2).dtype() : DType::kU8);
  // The division is in the scale's type unless the node says otherwise.
  const DType work = c.dtype("precision", c.tensor(1).dtype());
  const Tensor scale = fitted(c, ops::cast(c.tensor(1), work), x);
  Tensor zero;
  if (c.has(2) && is_integer(to)) zero = fitted(c, ops::cast(c.tensor(2), DType::kF32), x);
  return {quantized(c, ops::cast(x, work), scale, zero, to)};
}

Values dequantize_linear(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const DType to = c.dtype("output_dtype", c.tensor(1).dtype());
  Tensor wide = ops::cast(x, DType::kF32);
  if (c.has(2)) wide = wide - fitted(c, ops::cast(c.tensor(2), DType::kF32), x);
  const Tensor scale = ops::cast(c.tensor(1), DType::kF32);
  return {ops::cast(wide * fitted(c, scale, x), to)};
}

Values dynamic_quantize_linear(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Tensor zero = scalar(0, DType::kF32);
  const Tensor low = ops::minimum(ops::min(x), zero), high = ops::maximum(ops::max(x), zero);
  const Tensor range = (high - low) / 255.0;
  const Tensor scale = ops::where(ops::equal(range, zero), scalar(1, DType::kF32), range);
  const Tensor point = ops::round(ops::clip((0.0 - low) / scale, 0.0, 255.0));
  const Tensor y = ops::clip(ops::round(x / scale) + point, 0.0, 255.0);
  return {ops::cast(y, DType::kU8), range, ops::cast(point, DType::kU8)};
}

/// A value for each row of the left operand as a column.
Tensor per_row(const Tensor& v) {
  return v.ndim() != 1 || v.dim(0).equals(1).value_or(false) ? v : ops::unsqueeze(v, {1});
}

/// Integers minus their zero point in a type that holds the sums exactly.
Tensor centred(const Tensor& x, const Tensor& zero, DType work) {
  const Tensor wide = ops::cast(x, work);
  return zero ? wide - ops::cast(zero, work) : wide;
}

/// float32 holds sums of up to 2^24; larger ones need float64.
DType work_type(int64_t terms) { return terms <= 256 ? DType::kF32 : DType::kF64; }

Values matmul_integer(NodeCall& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  const Dim& terms = a.dim(-1);
  const DType work = terms.is_constant() ? work_type(terms.value()) : DType::kF64;
  const Tensor za = c.has(2) ? per_row(c.tensor(2)) : Tensor();
  return {ops::cast(ops::matmul(centred(a, za, work), centred(b, c.tensor_or_none(3), work)),
                    DType::kI32)};
}

Values qlinear_matmul(NodeCall& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(3);
  const Dim& terms = a.dim(-1);
  const DType work = terms.is_constant() ? work_type(terms.value()) : DType::kF64;
  const auto f32 = [&](size_t i) { return ops::cast(c.tensor(i), DType::kF32); };
  const Tensor product =
      ops::matmul(centred(a, per_row(c.tensor(2)), work), centred(b, c.tensor(5), work));
  const Tensor scale = per_row(f32(1)) * f32(4);
  const Tensor y = ops::cast(product, DType::kF32) * scale;
  return {quantized(c, y, f32(6), c.tensor(7), c.tensor(7).dtype())};
}

/// A value per output channel for [batch, channels, ...].
Tensor per_output(const Tensor& v, int64_t rank) {
  if (v.ndim() == 0 || v.dim(0).equals(1).value_or(false)) return ops::reshape(v, Shape());
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[1] = v.dim(0);
  return ops::reshape(v, shape);
}
/// The same for the weight, whose output channels are the axis 0.
Tensor per_filter(const Tensor& v, int64_t rank) {
  if (v.ndim() == 0 || v.dim(0).equals(1).value_or(false)) return ops::reshape(v, Shape());
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[0] = v.dim(0);
  return ops::reshape(v, shape);
}

DType conv_work(const Tensor& weight) {
  const Dims shape = known_shape(weight);
  int64_t terms = 1;
  for (size_t i = 1; i < shape.size(); ++i) terms *= shape[i];
  return work_type(terms);
}

Values conv_integer(NodeCall& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  const DType work = conv_work(w);
  const Tensor zw = c.has(3) ? per_filter(c.tensor(3), w.ndim()) : Tensor();
  return {ops::cast(convolve(c, centred(x, c.tensor_or_none(2), work), centred(w, zw, work), {}),
                    DType::kI32)};
}

Values qlinear_conv(NodeCall& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(3);
  const DType work = conv_work(w);
  const auto f32 = [&](size_t i) { return ops::cast(c.tensor(i), DType::kF32); };
  const Tensor bias = c.has(8) ? ops::cast(c.tensor(8), work) : Tensor();
  const Tensor sums = convolve(c, centred(x, c.tensor(2), work),
                               centred(w, per_filter(c.tensor(5), w.ndim()), work), bias);
  const Tensor y = ops::cast(sums, DType::kF32) * (f32(1) * per_output(f32(4), sums.ndim()));
  return {quantized(c, y, f32(6), c.tensor(7), c.tensor(7).dtype())};
}

constexpr Operator kOperators[] = {
    {"QuantizeLinear", 1, quantize_linear},
    {"DequantizeLinear", 1, dequantize_linear},
    {"DynamicQuantizeLinear", 1, dynamic_quantize_linear},
    {"MatMulInteger", 1, matmul_integer},
    {"QLinearMatMul", 1, qlinear_matmul},
    {"ConvInteger", 1, conv_integer},
    {"QLinearConv", 1, qlinear_conv},
};

}  // namespace

std::span<const Operator> quantization_operators() { return kOperators; }

}  // namespace paddle::onnx
