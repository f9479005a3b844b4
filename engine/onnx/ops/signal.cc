// Fourier transforms and mel filter banks.

#include <algorithm>
#include <cmath>

#include "onnx/ops/helpers.h"
#include "ops/generated/complex.h"
#include "ops/generated/fft.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// [..., 1 or 2] as complex numbers, or as real ones without an imaginary part.
Tensor values_of(const NodeCall& c, const Tensor& x) {
  const int64_t parts = constant_dim(x, -1);
  c.check(parts == 1 || parts == 2, "the last axis must have size 1 or 2, not ", parts);
  const Tensor wide = x.dtype() == DType::kF64 ? x : ops::cast(x, DType::kF32);
  return parts == 2 ? ops::as_complex(wide) : ops::squeeze(wide, std::vector<int64_t>{-1});
}

/// A spectrum of one axis of real or complex numbers, whole or its first half.
Tensor spectrum_of(const Tensor& x, int64_t axis, int64_t length, bool half) {
  const std::optional<Dim> n = Dim(length);
  if (!half) return ops::fft(x, n, axis);
  if (!is_complex(x.dtype())) return ops::rfft(x, n, axis);
  return slice_axis(ops::fft(x, n, axis), axis, 0, length / 2 + 1);
}

Values dft(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const bool inverse = c.bool_attr("inverse", false), one_side = c.bool_attr("onesided", false);
  const int64_t given = c.opset() < 20   ? c.int_attr("axis", 1)
                        : c.has_input(2) ? c.constant_int(2)
                                         : -2;
  const int64_t axis = c.axis(given, x.ndim());
  c.check(axis != x.ndim() - 1, "the last axis holds real and imaginary parts");
  int64_t length = constant_dim(x, axis);
  if (inverse && one_side) length = 2 * (length - 1);
  if (c.has_input(1)) length = c.constant_int(1);
  c.check(length > 0, "dft_length must be positive");
  const Tensor values = values_of(c, x);
  const auto result = [&](const Tensor& t) { return Values{ops::cast(t, x.dtype())}; };
  if (inverse && one_side)
    return result(ops::unsqueeze(ops::irfft(values, Dim(length), axis), {-1}));
  if (inverse) return result(ops::as_real(ops::ifft(values, Dim(length), axis)));
  return result(ops::as_real(spectrum_of(values, axis, length, one_side)));
}

Values stft(NodeCall& c) {
  // PyTorch's exporter writes a real signal as [batch, length].
  const Tensor x = c.tensor(0).ndim() == 2 ? ops::unsqueeze(c.tensor(0), {2}) : c.tensor(0);
  c.check(x.ndim() == 3, "the signal must be [batch, length, 1 or 2] or [batch, length], not ",
          x.type());
  const int64_t step = c.constant_int(1), size = constant_dim(x, 1);
  const int64_t length = c.has_input(3)   ? c.constant_int(3)
                         : c.has_input(2) ? constant_dim(c.tensor(2), 0)
                                          : size;
  c.check(step > 0 && length > 0 && length <= size, "frame_step ", step, " and frame_length ",
          length, " do not fit a signal of ", size);
  const Tensor values = values_of(c, x);
  Tensor frames = ops::unfold_axis(values, 1, length, step);
  if (c.has_input(2)) frames = frames * c.tensor(2);
  const Tensor out = spectrum_of(frames, 2, length, c.bool_attr("onesided", true));
  return {ops::cast(ops::as_real(out), x.dtype())};
}

Values mel_weight_matrix(NodeCall& c) {
  const int64_t bins = c.constant_int(0), length = c.constant_int(1), rate = c.constant_int(2);
  c.check(bins > 0 && length > 0 && rate > 0 && bins < 1 << 20 && length < 1 << 24,
          "sizes are out of range");
  const int64_t spectrum = length / 2 + 1;
  c.check(bins <= max_listed_indices() * 4 / spectrum, "the matrix would be too large");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(c.constant_float(3)), high = mel(c.constant_float(4));
  const double each = (high - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * each + low) / 2595) - 1);
    const double bin =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    c.check(bin >= 0 && bin <= static_cast<double>(spectrum), "a frequency is out of range");
    edges.push_back(static_cast<int64_t>(bin));
  }
  Array out = Array::zeros(DType::kF64, {spectrum, bins});
  const auto put = [&](int64_t row, int64_t column, double value) {
    if (row < spectrum) out.data<double>()[row * bins + column] = value;
  };
  for (int64_t i = 0; i < bins; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t left = edges[at], center = edges[at + 1], right = edges[at + 2];
    if (center == left) put(center, i, 1);
    for (int64_t j = left; j <= center && center > left; ++j)
      put(j, i, static_cast<double>(j - left) / static_cast<double>(center - left));
    for (int64_t j = center; j < right; ++j)
      put(j, i, static_cast<double>(right - j) / static_cast<double>(right - center));
  }
  return {ops::cast(Tensor(out), c.dtype_attr("output_datatype", DType::kF32))};
}

}  // namespace

OperatorTable signal_operators() {
  static constexpr Operator operators[] = {
      {"DFT", 1, dft},
      {"STFT", 1, stft},
      {"MelWeightMatrix", 1, mel_weight_matrix},
  };
  return operators;
}

}  // namespace paddle::onnx
