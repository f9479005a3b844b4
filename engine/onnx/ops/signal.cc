// Fourier transforms and mel filter banks.

#include <algorithm>
#include <cmath>

#include "onnx/ops/helpers.h"
#include "ops/generated/indexing.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

constexpr int64_t kMaxLength = 1 << 14;  // transforms are matrix products

/// cos and sin of 2 pi n k / length, [inputs, outputs].
std::pair<Tensor, Tensor> dft_matrix(int64_t inputs, int64_t outputs, int64_t length, DType dtype) {
  if (length > kMaxLength || inputs > kMaxLength)
    fail(ErrorCode::kModel, "transforms longer than ", kMaxLength, " are not supported");
  Array cosine = Array::empty(DType::kF64, {inputs, outputs}),
        sine = Array::empty(DType::kF64, {inputs, outputs});
  for (int64_t n = 0; n < inputs; ++n)
    for (int64_t k = 0; k < outputs; ++k) {
      const double angle =
          6.283185307179586 * static_cast<double>(n * k % length) / static_cast<double>(length);
      cosine.data<double>()[n * outputs + k] = std::cos(angle);
      sine.data<double>()[n * outputs + k] = std::sin(angle);
    }
  return {ops::cast(Tensor(cosine), dtype), ops::cast(Tensor(sine), dtype)};
}

struct Complex {
  Tensor real, imaginary;  ///< undefined for real values
};

/// Transforms the last axis, cropped or zero-padded to `length`.
Complex transform(Complex x, int64_t length, bool inverse, int64_t outputs) {
  const int64_t size = constant_dim(x.real, -1), used = std::min(size, length);
  if (used < size) {
    x.real = slice_axis(x.real, -1, 0, used);
    if (x.imaginary) x.imaginary = slice_axis(x.imaginary, -1, 0, used);
  }
  const auto [cosine, sine] = dft_matrix(used, outputs, length, x.real.dtype());
  const double scale = inverse ? 1 / static_cast<double>(length) : 1, sign = inverse ? 1 : -1;
  Complex out = {ops::matmul(x.real, cosine), ops::matmul(x.real, sine) * sign};
  if (x.imaginary) {
    out.real = out.real - ops::matmul(x.imaginary, sine) * sign;
    out.imaginary = out.imaginary + ops::matmul(x.imaginary, cosine);
  }
  if (inverse) return {out.real * scale, out.imaginary * scale};
  return out;
}

/// [..., 1 or 2] as real and imaginary parts.
Complex split(const NodeCall& c, const Tensor& x) {
  const int64_t parts = constant_dim(x, -1);
  c.check(parts == 1 || parts == 2, "the last axis must have size 1 or 2, not ", parts);
  const auto take = [&](int64_t i) {
    return ops::squeeze(slice_axis(x, -1, i, i + 1), std::vector<int64_t>{-1});
  };
  return {take(0), parts == 2 ? take(1) : Tensor()};
}

/// The real signal from its one-sided spectrum.
Tensor inverse_one_sided(const Complex& x, int64_t length) {
  const int64_t bins = length / 2 + 1, size = std::min(constant_dim(x.real, -1), bins);
  Array cosine = Array::empty(DType::kF64, {size, length}),
        sine = Array::empty(DType::kF64, {size, length});
  if (length > kMaxLength) fail(ErrorCode::kModel, "the transform is too long");
  for (int64_t k = 0; k < size; ++k) {
    const bool once = k == 0 || (length % 2 == 0 && k == length / 2);
    const double weight = (once ? 1.0 : 2.0) / static_cast<double>(length);
    for (int64_t n = 0; n < length; ++n) {
      const double angle =
          6.283185307179586 * static_cast<double>(n * k % length) / static_cast<double>(length);
      cosine.data<double>()[k * length + n] = weight * std::cos(angle);
      sine.data<double>()[k * length + n] = weight * std::sin(angle);
    }
  }
  const DType dtype = x.real.dtype();
  const auto cut = [&](const Tensor& t) { return slice_axis(t, -1, 0, size); };
  Tensor out = ops::matmul(cut(x.real), ops::cast(Tensor(cosine), dtype));
  if (x.imaginary) out = out - ops::matmul(cut(x.imaginary), ops::cast(Tensor(sine), dtype));
  return out;
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
  Complex s = split(c, x);
  const int64_t last = x.ndim() - 2;
  const auto moved = [&](const Tensor& t) {
    return t && axis != last ? ops::swapaxes(t, axis, last) : t;
  };
  s = {moved(s.real), moved(s.imaginary)};
  if (inverse && one_side) return {ops::unsqueeze(moved(inverse_one_sided(s, length)), {-1})};
  const Complex out = transform(s, length, inverse, one_side ? length / 2 + 1 : length);
  return {ops::stack({moved(out.real), moved(out.imaginary)}, -1)};
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
  const int64_t frames = 1 + (size - length) / step;
  std::vector<int64_t> indices;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i) indices.push_back(f * step + i);
  const Complex s = split(c, x);
  const auto framed = [&](const Tensor& t) {
    if (!t) return t;
    const Tensor all = ops::reshape(ops::index_select(t, int_vector(indices), 1),
                                    {t.dim(0), Dim(frames), Dim(length)});
    return c.has_input(2) ? all * c.tensor(2) : all;
  };
  const bool one_side = c.bool_attr("onesided", true);
  const Complex out = transform({framed(s.real), framed(s.imaginary)}, length, false,
                                one_side ? length / 2 + 1 : length);
  return {ops::stack({out.real, out.imaginary}, -1)};
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

constexpr Operator kOperators[] = {
    {"DFT", 1, dft},
    {"STFT", 1, stft},
    {"MelWeightMatrix", 1, mel_weight_matrix},
};

}  // namespace

OperatorTable signal_operators() { return kOperators; }

}  // namespace paddle::onnx
