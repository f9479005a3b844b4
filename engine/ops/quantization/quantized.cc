// Rules of quantization.yaml.

#include "ops/quantization/quantized.h"

#include <algorithm>
#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/quantization_rules.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/nn/conv.h"

namespace paddle::quantized {
std::vector<Array> centered_weights(const Array& weights, const Array& zero, int64_t channel) {
  // A value that broadcasts to more elements is not a weight.
  if (weights.size() > static_cast<int64_t>(weights.storage->bytes())) return {};
  const Array packed = weights.contiguous();
  const int64_t channels = packed.shape[static_cast<size_t>(channel)];
  if (zero.size() != 1 && zero.size() != channels) return {};
  std::vector<int64_t> zeros;
  for (int64_t c = 0; c < zero.size(); ++c) zeros.push_back(std::llround(zero.number(c)));
  const bool centered = std::all_of(zeros.begin(), zeros.end(), [](int64_t z) { return z == 0; });
  if (packed.dtype == DType::kI8 && centered) return {packed};
  zeros.resize(static_cast<size_t>(channels), zeros[0]);
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(channel) + 1; i < packed.shape.size(); ++i)
    inner *= packed.shape[i];
  Array first = Array::empty(DType::kI8, packed.shape),
        rest = Array::zeros(DType::kI8, packed.shape);
  bool fits = true;
  for (int64_t i = 0; i < packed.size(); ++i) {
    const int64_t stored =
        packed.dtype == DType::kU8 ? packed.data<uint8_t>()[i] : packed.data<int8_t>()[i];
    const int64_t value = stored - zeros[static_cast<size_t>(i / inner % channels)];
    const int64_t held = std::clamp<int64_t>(value, -128, 127), left = value - held;
    if (left < -128 || left > 127) return {};
    first.data<int8_t>()[i] = static_cast<int8_t>(held);
    rest.data<int8_t>()[i] = static_cast<int8_t>(left);
    fits = fits && left == 0;
  }
  return fits ? std::vector<Array>{first} : std::vector<Array>{first, rest};
}

}  // namespace paddle::quantized

namespace paddle::rules {
namespace {

namespace q = quantized;

/// Scales and zero points must broadcast to x without making it larger.
void check_fits(InferContext& c, size_t operand, const char* what) {
  const Shape &x = c.shape(0), &v = c.shape(operand);
  c.check(v.size() <= x.size(), what, " ", c.type(operand), " does not fit x ", c.type(0));
  for (size_t i = 0; i < v.size(); ++i) {
    const Dim& of_x = x[x.size() - v.size() + i];
    if (v[i].equals(1) != true)
      c.require_equal(v[i], of_x, str(what, " ", c.type(operand), " does not fit x ", c.type(0)));
  }
}

bool is_step_type(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kU16 || dtype == DType::kI16;
}

Tensor nothing() { return Tensor(Array::from<float>({0.0f}, {})); }
Tensor or_zero(const Tensor& zero) { return zero.defined() ? zero : nothing(); }

}  // namespace

void infer_quantize(InferContext& c) {
  const DType to = c.attrs_as<QuantizeAttrs>().dtype;
  c.check(is_step_type(to), "values are quantized to integers of 8 or 16 bits, not ", text(to));
  check_fits(c, 1, "scale");
  check_fits(c, 2, "zero_point");
  c.result(to, c.shape(0));
}

void infer_dequantize(InferContext& c) {
  check_fits(c, 1, "scale");
  check_fits(c, 2, "zero_point");
  c.result(DType::kF32, c.shape(0));
}

void infer_quantize_dynamic(InferContext& c) {
  c.result(DType::kU8, c.shape(0));
  c.result(DType::kF32, Shape());
  c.result(DType::kU8, Shape());
}

Tensors decompose_quantize_dynamic(CallContext& c) {
  const Tensor& x = c.operand(0);
  const Tensor zero = nothing();
  const Tensor low = ops::minimum(ops::min(x), zero), high = ops::maximum(ops::max(x), zero);
  const Tensor step = (high - low) / 255.0;
  const Tensor scale =
      ops::where(ops::equal(step, zero), Tensor(Array::from<float>({1.0f}, {})), step);
  const Tensor point = ops::round(ops::clip((0.0 - low) / scale, 0.0, 255.0));
  return {ops::quantize(x, scale, point, DType::kU8), scale, ops::cast(point, DType::kU8)};
}

namespace {

template <class Attrs>
void finish_quantized(InferContext& c, const Attrs& a, const Shape& out, const Dim& channels) {
  const auto one_or_channels = [&](size_t i, const char* what) {
    if (!c.has(i) || c.rank(i) == 0) return;
    c.check(c.rank(i) == 1, what, " must be one number or one per out channel, not ", c.type(i));
    if (c.shape(i)[0].equals(1) != true)
      c.require_equal(c.shape(i)[0], channels, str(what, " does not fit the out channels"));
  };
  const auto one = [&](size_t scale, size_t zero, const char* what) {
    c.check(c.has(scale) || !c.has(zero), what, " has a zero point and no scale");
    for (const size_t i : {scale, zero})
      if (c.has(i))
        c.check(c.rank(i) == 0, what, "'s scale and zero point must be one number, not ",
                c.type(i));
  };
  if (c.has(q::kXZero))
    c.check(c.rank(q::kXZero) == 0, "x_zero must be one number, not ", c.type(q::kXZero));
  one_or_channels(q::kScale, "scale");
  if (c.has(q::kBias)) {
    c.check(c.dtype(q::kBias) == DType::kI32 || c.has(q::kScale),
            "bias must be int32, or float32 with a scale, not ", c.type(q::kBias));
    one_or_channels(q::kBias, "bias");
  }
  const bool scaled = c.has(q::kScale);
  if (!scaled) {
    for (const size_t i : {q::kStepScale, q::kResidual, q::kOutScale})
      c.check(!c.has(i), "sums without a scale stay as they are");
    c.check(!a.low && !a.high, "sums without a scale have no bounds");
  }
  one(q::kStepScale, q::kStepZero, "step");
  one(q::kResidualScale, q::kResidualZero, "residual");
  one(q::kOutScale, q::kOutZero, "out");
  if (c.has(q::kStepScale))
    c.check(is_step_type(a.step_dtype), "step_dtype cannot be ", text(a.step_dtype));
  if (c.has(q::kResidual)) {
    c.check(c.has(q::kResidualScale) == is_integer(c.dtype(q::kResidual)),
            "residual must be 8-bit integers with a scale or float32, not ", c.type(q::kResidual));
    c.check(c.rank(q::kResidual) == static_cast<int64_t>(out.size()), "residual ",
            c.type(q::kResidual), " does not fit ", text(out));
    for (size_t i = 0; i < out.size(); ++i)
      c.require_equal(c.shape(q::kResidual)[i], out[i],
                      str("residual ", c.type(q::kResidual), " does not fit ", text(out)));
  }
  if (c.has(q::kOutScale))
    c.check(is_step_type(a.dtype), "values are quantized to integers of 8 or 16 bits, not ",
            text(a.dtype));
  else
    c.check(a.dtype == (scaled ? DType::kF32 : DType::kI32), "the result is ",
            scaled ? "float32" : "int32", ", not ", text(a.dtype));
  c.result(a.dtype, out);
}

/// float32 holds sums of 256 products of bytes exactly, float64 all.
DType type_for_sums(const Dim& terms) {
  const bool few = terms.is_constant() && terms.value() <= 256;
  return few ? DType::kF32 : DType::kF64;
}

Tensor centered(CallContext& c, DType work, size_t values = q::kX, size_t zero = q::kXZero) {
  const Tensor x = ops::cast(c.operand(values), work);
  return c.has(zero) ? x - ops::cast(c.operand(zero), work) : x;
}

/// The epilogue on the accumulators `sums`; `per_channel` reshapes a value per output channel to
/// broadcast over them.
template <class Attrs, class PerChannel>
Tensor epilogue(CallContext& c, const Attrs& a, Tensor sums, const PerChannel& per_channel) {
  const bool whole = c.has(q::kBias) && c.operand(q::kBias).dtype() == DType::kI32;
  if (whole)
    sums = ops::cast(sums, DType::kF64) + ops::cast(per_channel(c.operand(q::kBias)), DType::kF64);
  if (!c.has(q::kScale)) return ops::cast(sums, DType::kI32);
  Tensor y = ops::cast(sums, DType::kF32) * per_channel(c.operand(q::kScale));
  if (c.has(q::kBias) && !whole) y = y + per_channel(c.operand(q::kBias));
  if (c.has(q::kStepScale)) {
    const Tensor &scale = c.operand(q::kStepScale), zero = or_zero(c.operand(q::kStepZero));
    y = ops::dequantize(ops::quantize(y, scale, zero, a.step_dtype), scale, zero);
  }
  if (c.has(q::kResidual))
    y = y + (c.has(q::kResidualScale)
                 ? ops::dequantize(c.operand(q::kResidual), c.operand(q::kResidualScale),
                                   or_zero(c.operand(q::kResidualZero)))
                 : c.operand(q::kResidual));
  if (a.low || a.high) y = ops::clip(y, a.low, a.high);
  if (!c.has(q::kOutScale)) return y;
  return ops::quantize(y, c.operand(q::kOutScale), or_zero(c.operand(q::kOutZero)), a.dtype);
}

}  // namespace

void infer_quantized_conv(InferContext& c) {
  const auto a = c.attrs_as<QuantizedConvAttrs>();
  const Shape out = quantized_conv_shape(c, a);
  finish_quantized(c, a, out, c.shape(q::kWeight)[0]);
}

Tensors decompose_quantized_conv(CallContext& c) {
  const auto a = c.attrs_as<QuantizedConvAttrs>();
  const Tensor& weight = c.operand(q::kWeight);
  Dim terms = weight.dim(1);
  Shape per_channel{-1};  // with channels first
  for (int64_t axis = 2; axis < weight.ndim(); ++axis) {
    terms = terms * weight.dim(axis);
    per_channel.push_back(1);
  }
  const DType work = type_for_sums(terms);
  const auto convolution = weight.ndim() == 4 ? &ops::conv2d : &ops::conv3d;
  const Tensor sums = convolution(centered(c, work), ops::cast(weight, work), {}, a.stride,
                                  a.padding, a.dilation, a.groups, a.data_format);
  const bool last = a.data_format.ends_with('C');
  return {epilogue(c, a, sums, [&](const Tensor& v) {
    return last || v.ndim() == 0 ? v : ops::reshape(v, per_channel);
  })};
}

void infer_quantized_conv_transpose(InferContext& c) {
  const auto a = c.attrs_as<QuantizedConvTransposeAttrs>();
  check_quantized_conv_transpose(c, a);
  finish_quantized(c, a, a.out_shape, c.shape(q::kWeight)[1] * a.groups);
}

Tensors decompose_quantized_conv_transpose(CallContext& c) {
  const auto a = c.attrs_as<QuantizedConvTransposeAttrs>();
  const Tensor& weight = c.operand(q::kWeight);
  const DType work = type_for_sums(weight.dim(0) * weight.dim(2) * weight.dim(3));
  const Tensor sums =
      ops::conv2d_input_grad(ops::cast(weight, work), centered(c, work), a.out_shape, a.stride,
                             a.padding, a.dilation, a.groups, a.data_format);
  return {epilogue(c, a, sums, [&](const Tensor& v) {
    return a.data_format == "NHWC" || v.ndim() == 0 ? v : ops::reshape(v, {-1, 1, 1});
  })};
}

void infer_quantized_linear(InferContext& c) {
  const auto a = c.attrs_as<QuantizedLinearAttrs>();
  Shape out = c.shape(q::kX);
  c.check(!out.empty(), "x must have at least one dimension");
  c.check(c.rank(q::kWeight) == 2, "weight must be [in, out], not ", c.type(q::kWeight));
  c.require_equal(
      out.back(), c.shape(q::kWeight)[0],
      str("x is ", c.type(q::kX), ", weight is ", c.type(q::kWeight), ": inner dimensions differ"));
  out.back() = c.shape(q::kWeight)[1];
  finish_quantized(c, a, out, c.shape(q::kWeight)[1]);
}

Tensors decompose_quantized_linear(CallContext& c) {
  const auto a = c.attrs_as<QuantizedLinearAttrs>();
  const Tensor& weight = c.operand(q::kWeight);
  const DType work = type_for_sums(weight.dim(0));
  const Tensor sums = ops::matmul(centered(c, work), ops::cast(weight, work));
  return {epilogue(c, a, sums, [](const Tensor& v) { return v; })};
}

void infer_quantized_matmul(InferContext& c) {
  const auto a = c.attrs_as<QuantizedMatmulAttrs>();
  c.check(c.rank(q::kX) >= 2 && c.rank(q::kWeight) >= 2, "x and y must be matrices, not ",
          c.type(q::kX), " and ", c.type(q::kWeight));
  if (c.has(q::kYZero))
    c.check(c.rank(q::kYZero) == 0, "y_zero must be one number, not ", c.type(q::kYZero));
  const Shape out = matmul_shape(c, a.transpose_x, a.transpose_y);
  finish_quantized(c, a, out, out.back());
}

Tensors decompose_quantized_matmul(CallContext& c) {
  const auto a = c.attrs_as<QuantizedMatmulAttrs>();
  const Tensor& x = c.operand(q::kX);
  const DType work = type_for_sums(x.dim(a.transpose_x ? -2 : -1));
  const Tensor sums = ops::matmul(centered(c, work), centered(c, work, q::kWeight, q::kYZero),
                                  a.transpose_x, a.transpose_y);
  return {epilogue(c, a, sums, [](const Tensor& v) { return v; })};
}

}  // namespace paddle::rules
