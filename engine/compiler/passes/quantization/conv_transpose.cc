#include "compiler/passes/quantization/conv_transpose.h"

#include <cstring>

#include "ops/core/compose.h"
#include "ops/generated/shape.h"
#include "ops/quantization/quantized.h"

namespace paddle::passes::qdq {
namespace {

namespace q = quantized;
using Axes2 = std::array<PhaseAxis, 2>;

std::optional<PhaseAxis> phase_axis(int64_t kernel, int64_t in, int64_t out, int64_t stride,
                                    int64_t padding, int64_t dilation) {
  PhaseAxis a;
  a.stride = stride;
  a.size = out;
  // Zeros between the elements of the kernel keep a pixel's phase where there are several.
  const int64_t extent = (kernel - 1) * dilation + 1;
  a.taps = stride == 1 ? kernel : (extent + stride - 1) / stride;
  a.dilation = stride == 1 ? dilation : 1;
  const int64_t first = padding / stride, last = (padding + out - 1) / stride;
  a.before = (a.taps - 1) * a.dilation - first;
  a.after = last + 1 - in;
  a.skipped = padding - first * stride;
  if (a.before < 0 || a.after < 0) return std::nullopt;
  return a;
}

int64_t phases(const Axes2& axes) { return axes[0].stride * axes[1].stride; }

TransposedWindow window_of(const QuantizedConvTransposeAttrs& a) {
  return {a.stride, a.padding, a.dilation, a.groups};
}

/// One number, or one for each channel, as it is; else the numbers of channels once for each phase.
Tensor for_phases(const Tensor& values, int64_t groups, int64_t count) {
  if (!values.defined() || values.ndim() == 0 || count == 1) return values;
  const Dim channels = values.dim(0);
  if (channels.equals(1).value_or(false)) return values;
  const Dim inner = floor_divide(channels, groups);
  if (!values.is_concrete())
    return ops::reshape(ops::expand(ops::reshape(values, {Dim(groups), Dim(1), inner}),
                                    {Dim(groups), Dim(count), inner}),
                        {channels * count});
  const Array from = values.array().contiguous();
  Array to = Array::empty(from.dtype, {from.size() * count});
  const auto bytes =
      static_cast<size_t>(inner.value()) * static_cast<size_t>(item_size(from.dtype));
  const auto* source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(to.raw());
  for (int64_t g = 0; g < groups; ++g, source += bytes)
    for (int64_t p = 0; p < count; ++p, target += bytes) std::memcpy(target, source, bytes);
  return Tensor(to);
}

/// Channels [groups, rows, columns, channels of a group] of each pixel, spread over pixels.
Tensor rearranged(const Tensor& y, const Axes2& axes, int64_t groups) {
  const Dim inner = floor_divide(y.dim(3), groups * phases(axes));
  const Shape apart = {
      y.dim(0), y.dim(1), y.dim(2), Dim(groups), Dim(axes[0].stride), Dim(axes[1].stride), inner};
  Tensor out = ops::transpose(ops::reshape(y, apart), {0, 1, 4, 2, 5, 3, 6});
  return ops::reshape(
      out, {y.dim(0), y.dim(1) * axes[0].stride, y.dim(2) * axes[1].stride, inner * groups});
}

}  // namespace

std::optional<Axes2> phase_axes(const Shape& weight, const std::array<Dim, 2>& in,
                                const std::array<Dim, 2>& out, const TransposedWindow& window) {
  constexpr int64_t kMaxGrowth = 4;
  Axes2 axes;
  int64_t elements = 1, given = 1;
  for (size_t i = 0; i < 2; ++i) {
    const Dim kernel = weight[2 + i];
    if (!kernel.is_constant() || !in[i].is_constant() || !out[i].is_constant()) return std::nullopt;
    const auto axis = phase_axis(kernel.value(), in[i].value(), out[i].value(), window.stride[i],
                                 window.padding[2 * i], window.dilation[i]);
    if (!axis) return std::nullopt;
    axes[i] = *axis;
    elements *= axis->taps * axis->stride;
    given *= kernel.value();
  }
  if (elements > kMaxGrowth * given) return std::nullopt;
  return axes;
}

Array phase_weight(const Array& weight, const Axes2& axes, const TransposedWindow& window) {
  const Array w = weight.contiguous();
  const int64_t in = w.shape[0] / window.groups, out = w.shape[1];
  const auto& [rows, columns] = axes;
  Array result =
      Array::zeros(DType::kI8, {window.groups * phases(axes) * out, in, rows.taps, columns.taps});
  const auto* from = w.data<int8_t>();
  auto* const to = result.data<int8_t>();
  // Where an element of the kernel is: its phase and, from the last one on, its tap.
  const auto place = [](const PhaseAxis& axis, int64_t at, int64_t dilation) {
    const int64_t offset = axis.stride == 1 ? at : at * dilation;
    return std::pair(offset % axis.stride, axis.taps - 1 - offset / axis.stride);
  };
  for (int64_t i = 0; i < w.shape[0]; ++i)
    for (int64_t o = 0; o < out; ++o)
      for (int64_t r = 0; r < w.shape[2]; ++r)
        for (int64_t c = 0; c < w.shape[3]; ++c) {
          const auto [row_phase, row] = place(rows, r, window.dilation[0]);
          const auto [column_phase, column] = place(columns, c, window.dilation[1]);
          const int64_t group = i / in;
          const int64_t channel =
              ((group * rows.stride + row_phase) * columns.stride + column_phase) * out + o;
          to[((channel * in + i % in) * rows.taps + row) * columns.taps + column] = *from++;
        }
  return result;
}

std::optional<Axes2> phase_axes(const OpCall& call) {
  const Tensor& weight = call.operands[q::kWeight];
  if (!weight.is_concrete() || call.operands[q::kResidual].defined()) return std::nullopt;
  const QuantizedConvTransposeAttrs a(call.attrs);
  const bool last = a.data_format == "NHWC";
  return phase_axes(weight.shape(), image_sizes(call.operands[q::kX].shape(), last),
                    image_sizes(a.out_shape, last), window_of(a));
}

Array phase_weight(const OpCall& call, const Axes2& axes) {
  return phase_weight(call.operands[q::kWeight].array(), axes,
                      window_of(QuantizedConvTransposeAttrs(call.attrs)));
}

Tensor as_convolution(const OpCall& call, const Axes2& axes) {
  const QuantizedConvTransposeAttrs a(call.attrs);
  const bool last = a.data_format == "NHWC";
  const Tensors& given = call.operands;
  const auto repeated = [&](size_t i) { return for_phases(given[i], a.groups, phases(axes)); };
  const auto& [rows, columns] = axes;
  const std::vector<int64_t> padding = {rows.before, rows.after, columns.before, columns.after};
  Tensor y = ops::quantized_conv(
      last ? given[q::kX] : ops::transpose(given[q::kX], {0, 2, 3, 1}),
      Tensor(phase_weight(call, axes)), given[q::kXZero], repeated(q::kScale), repeated(q::kBias),
      given[q::kStepScale], given[q::kStepZero], {}, {}, {}, given[q::kOutScale],
      given[q::kOutZero], 1, padding, std::vector<int64_t>{rows.dilation, columns.dilation},
      a.groups, "NHWC", a.step_dtype, a.low, a.high, a.dtype);
  if (phases(axes) > 1) y = rearranged(y, axes, a.groups);
  for (size_t i = 0; i < 2; ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    if (axes[i].skipped > 0 || y.dim(axis).equals(axes[i].size) != true)
      y = rules::slice_axis(y, axis, axes[i].skipped, axes[i].skipped + axes[i].size);
  }
  return last ? y : ops::transpose(y, {0, 3, 1, 2});
}

}  // namespace paddle::passes::qdq
