// Rules of signal.yaml.

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/core/compose.h"
#include "ops/generated/complex.h"
#include "ops/generated/creation.h"
#include "ops/generated/fft.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "ops/generated/signal.h"
#include "ops/generated/signal_rules.h"
#include "tensor/complex.h"

namespace paddle::rules {
namespace {

/// True for the first axis, false for the last; others are rejected.
bool is_first_axis(std::string_view op, int64_t axis) {
  if (axis != 0 && axis != -1) reject(op, "axis must be 0 or -1, not ", axis);
  return axis == 0;
}

/// [..., length] as frames [..., number, frame length].
Tensor frames_of(std::string_view op, const Tensor& x, int64_t length, int64_t hop) {
  if (length < 1 || hop < 1)
    reject(op, "frame_length ", length, " and hop_length ", hop, " must be positive");
  if (x.dim(-1).less(length) == true)
    reject(op, "frames of ", length, " do not fit a signal of ", x.dim(-1));
  return ops::unfold_axis(x, x.ndim() - 1, length, hop);
}

struct Analysis {
  int64_t hop;
  Tensor window;  ///< of n_fft elements
};

/// The window centered in n_fft elements; of ones if there is none.
Analysis analysis_of(std::string_view op, int64_t n_fft, const std::optional<int64_t>& hop,
                     const std::optional<int64_t>& length, const Tensor& given, DType dtype) {
  constexpr int64_t kMax = int64_t{1} << 26;
  if (n_fft < 1 || n_fft > kMax) reject(op, "n_fft must be from 1 to ", kMax, ", not ", n_fft);
  const int64_t size = length.value_or(n_fft);
  if (size < 1 || size > n_fft)
    reject(op, "win_length must lie in [1, ", n_fft, "], not be ", size);
  const int64_t step = hop.value_or(n_fft / 4);
  if (step < 1) reject(op, "hop_length must be positive, not ", step);
  Tensor window = given.defined() ? given : full_of({Dim(size)}, 1, dtype);
  if (window.ndim() != 1 || window.dim(0).equals(size) == false)
    reject(op, "window must have ", size, " elements, not be ", window.type());
  window = ops::cast(window, is_complex(window.dtype()) ? window.dtype() : dtype);
  if (size < n_fft) {
    const int64_t left = (n_fft - size) / 2;
    window = ops::concat({full_of({Dim(left)}, 0, window.dtype()), window,
                          full_of({Dim(n_fft - size - left)}, 0, window.dtype())},
                         0);
  }
  return {step, window};
}

Tensor last_axes_swapped(const Tensor& x) { return ops::matrix_transpose(x); }

}  // namespace

void infer_overlap_frames(InferContext& c) {
  const auto a = c.attrs_as<OverlapFramesAttrs>();
  c.check(c.rank(0) >= 2, "x must be frames [..., number, length], not ", c.type(0));
  c.check(a.hop_length > 0, "hop_length must be positive, not ", a.hop_length);
  Shape shape = c.shape(0);
  const Dim length = shape.back();
  shape.pop_back();
  const Dim number = shape.back();
  c.check(number.less(1) != true, "there is no frame in ", c.type(0));
  const Dim natural = (number - 1) * a.hop_length + length;
  shape.back() = a.size.equals(0) == true ? natural : a.size;
  c.check(shape.back().less(natural) != true, "size ", shape.back(), " is below ", natural);
  c.result(c.dtype(0), shape);
}

Tensors vjp_overlap_frames(VjpContext& c) {
  const auto a = c.attrs_as<OverlapFramesAttrs>();
  const Tensor &x = c.plain_operand(0), &g = c.cotangent();
  const Dim natural = (x.dim(-2) - 1) * a.hop_length + x.dim(-1);
  const Tensor used = slice_axis(g, g.ndim() - 1, 0, natural);
  return {ops::unfold_axis(used, g.ndim() - 1, x.dim(-1).value(), a.hop_length)};
}

Tensors decompose_frame(CallContext& c) {
  const auto a = c.attrs_as<FrameAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 1) reject("frame", "x must have at least one dimension");
  if (is_first_axis("frame", a.axis)) {
    const Tensor frames =
        frames_of("frame", ops::moveaxis(x, {0}, {-1}), a.frame_length, a.hop_length);
    return {ops::moveaxis(frames, {-2, -1}, {0, 1})};
  }
  return {last_axes_swapped(frames_of("frame", x, a.frame_length, a.hop_length))};
}

Tensors decompose_overlap_add(CallContext& c) {
  const auto a = c.attrs_as<OverlapAddAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() < 2) reject("overlap_add", "x must have at least two dimensions, not be ", x.type());
  if (is_first_axis("overlap_add", a.axis)) {
    const Tensor frames = ops::moveaxis(x, {0, 1}, {-2, -1});
    return {ops::moveaxis(ops::overlap_frames(frames, a.hop_length), {-1}, {0})};
  }
  return {ops::overlap_frames(last_axes_swapped(x), a.hop_length)};
}

Tensors decompose_stft(CallContext& c) {
  const auto a = c.attrs_as<StftAttrs>();
  Tensor x = c.operand(0);
  const bool complex = is_complex(x.dtype());
  if (x.ndim() != 1 && x.ndim() != 2)
    reject("stft", "x must be [length] or [batch, length], not ", x.type());
  const Analysis analysis =
      analysis_of("stft", a.n_fft, a.hop_length, a.win_length, c.operand(1), real_type(x.dtype()));
  const bool halved = a.onesided;
  if (halved && (complex || is_complex(analysis.window.dtype())))
    reject("stft", "onesided must be false for complex numbers");
  if (a.center) {
    const int64_t half = a.n_fft / 2;
    if (a.pad_mode == "reflect" && x.dim(-1).less(half + 1) == true)
      reject("stft", "n_fft ", a.n_fft, " needs a signal of more than ", half, " elements, not ",
             x.type());
    // Reflection pads the spatial axes of images.
    const bool batch = x.ndim() == 2;
    const Tensor image = ops::reshape(x, {batch ? x.dim(0) : Dim(1), Dim(1), x.dim(-1)});
    const Tensor padded = ops::pad(image, {half, half}, a.pad_mode);
    x = ops::reshape(padded, batch ? Shape{x.dim(0), padded.dim(-1)} : Shape{padded.dim(-1)});
  }
  Tensor frames = frames_of("stft", x, a.n_fft, analysis.hop) * analysis.window;
  const std::string norm = a.normalized ? "ortho" : "backward";
  const Axes last = {frames.ndim() - 1};
  if (halved)
    frames = ops::fft_r2c(frames, last, norm, true, true);
  else
    frames = ops::fft_c2c(ops::cast(frames, complex_type(frames.dtype())), last, norm, true);
  return {last_axes_swapped(frames)};
}

Tensors decompose_istft(CallContext& c) {
  const auto a = c.attrs_as<IstftAttrs>();
  const Tensor& x = c.operand(0);
  if (x.ndim() != 2 && x.ndim() != 3)
    reject("istft", "x must be [frequency, frame] or [batch, frequency, frame], not ", x.type());
  const DType real = real_type(x.dtype());
  const Analysis analysis =
      analysis_of("istft", a.n_fft, a.hop_length, a.win_length, c.operand(1), real);
  const int64_t bins = a.onesided ? a.n_fft / 2 + 1 : a.n_fft;
  if (x.dim(-2).equals(bins) == false)
    reject("istft", "n_fft ", a.n_fft, " has ", bins, " frequencies, x is ", x.type());
  if (a.return_complex && a.onesided)
    reject("istft", "onesided must be false where complex numbers are wanted");
  if (!a.return_complex && is_complex(analysis.window.dtype()))
    reject("istft", "a complex window needs return_complex");
  if (analysis.hop > a.n_fft)
    reject("istft", "hop_length ", analysis.hop, " is above n_fft ", a.n_fft);
  Tensor frames = last_axes_swapped(x);
  const std::string norm = a.normalized ? "ortho" : "backward";
  const Axes last = {frames.ndim() - 1};
  if (!a.return_complex) {
    if (!a.onesided) frames = slice_axis(frames, frames.ndim() - 1, 0, a.n_fft / 2 + 1);
    frames = ops::fft_c2r(frames, last, norm, false, Dim(a.n_fft));
  } else {
    frames = ops::fft_c2c(frames, last, norm, false);
  }
  Tensor out = ops::overlap_frames(frames * analysis.window, analysis.hop);
  const Tensor squares = analysis.window * analysis.window;
  const Tensor spread = ops::expand(squares, {frames.dim(-2), Dim(a.n_fft)});
  Tensor weight = ops::overlap_frames(ops::assign(spread), analysis.hop);
  const int64_t start = a.center ? a.n_fft / 2 : 0;
  Dim end = out.dim(-1);
  if (a.length) {
    if (*a.length < 1) reject("istft", "length must be positive, not ", *a.length);
    end = minimum(end, start + std::min(*a.length, std::numeric_limits<int64_t>::max() - start));
  } else if (a.center) {
    end = end - start;
  }
  if (end.less(start + 1) == true) reject("istft", "no element of the signal is left");
  out = slice_axis(out, out.ndim() - 1, start, end);
  weight = slice_axis(weight, 0, start, end);
  if (weight.is_concrete()) {
    const Array sizes = weight.array().on_host();
    for (int64_t i = 0; i < sizes.size(); ++i)
      if (std::abs(sizes.complex_number(i)) < 1e-11)
        reject("istft", "the windows leave element ", i, " without weight");
  }
  return {out / weight};
}

}  // namespace paddle::rules
