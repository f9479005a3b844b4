#pragma once
// A transposed convolution of stride s is a convolution of stride 1 with s · s times as many output
// channels, one for each place of a result pixel in a square of s · s (its phase), which a
// rearrangement of pixels puts into their places.

#include <array>
#include <optional>

#include "ops/core/op.h"
#include "ops/generated/quantization.h"
#include "tensor/tensor.h"

namespace paddle::passes::qdq {

/// One axis of the convolution that computes all phases.
struct PhaseAxis {
  int64_t stride;         ///< phases
  int64_t taps;           ///< of the kernel of a phase
  int64_t dilation;       ///< of that kernel
  int64_t before, after;  ///< padding
  int64_t skipped;        ///< rearranged pixels in front of the first one of the result
  int64_t size;           ///< of the result
};

/// The parts of a transposed convolution that the axes depend on.
struct TransposedWindow {
  std::vector<int64_t> stride, padding, dilation;  ///< [2], [top, bottom, left, right], [2]
  int64_t groups;
};

/// Rows and columns. None where sizes are not known, padding cuts more than the kernel adds, or the
/// kernels of the phases have over four times the elements of `weight` [in, out / groups, rows,
/// columns].
std::optional<std::array<PhaseAxis, 2>> phase_axes(const Shape& weight,
                                                   const std::array<Dim, 2>& in,
                                                   const std::array<Dim, 2>& out,
                                                   const TransposedWindow& window);

/// The int8 weight [groups · phases · out / groups, in / groups, taps, taps] of that convolution.
Array phase_weight(const Array& weight, const std::array<PhaseAxis, 2>& axes,
                   const TransposedWindow& window);

/// Images of NCHW or NHWC: their sizes.
inline std::array<Dim, 2> image_sizes(const Shape& shape, bool channels_last) {
  const size_t first = channels_last ? 1 : 2;
  return {shape[first], shape[first + 1]};
}

/// The axes of a quantized_conv_transpose with a constant weight and without a residual; none for
/// others.
std::optional<std::array<PhaseAxis, 2>> phase_axes(const OpCall& call);
/// Its weight for them.
Array phase_weight(const OpCall& call, const std::array<PhaseAxis, 2>& axes);
/// The call as a quantized_conv with channels last, and a rearrangement of its pixels.
Tensor as_convolution(const OpCall& call, const std::array<PhaseAxis, 2>& axes);

}  // namespace paddle::passes::qdq
