#include "kernels/pool/max_planes.h"

#include <algorithm>
#include <limits>

#include "kernels/common/rounding.h"
#include "kernels/pool/pool_simd.h"

namespace paddle::cpu {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int64_t kBandFloats = 8192;  // lines of a band, which stay in cache
constexpr int64_t kRows = 64;          // rows that are combined at once

constexpr int64_t kTaps = 4;  // elements that one loop combines

/// Windows of `size` elements, `step` apart, at `count` places of x, made of those of a power of
/// two elements, which x then holds.
struct Widened {
  int64_t shift, taps;  ///< a window is the maximum of `taps` elements, `shift` apart

  static Widened of(float* x, int64_t step, int64_t count, int64_t size) {
    if (size <= kTaps) return {step, size};
    int64_t span = 1;
    for (; 2 * span <= size; span *= 2)
      max_of_shifted(x, span * step, 2, (count - 2 * span + 1) * step, x);
    return {(size - span) * step, size == span ? 1 : 2};
  }
  void finish(const float* x, int64_t n, float* out) const {
    if (taps == 1)
      std::copy_n(x, n, out);
    else
      max_of_shifted(x, shift, taps, n, out);
  }
};

}  // namespace

MaxPlanes::MaxPlanes(const PoolShape& shape) : s_(shape) {
  places_ = (s_.out_width - 1) * s_.stride_width + 1;
  // One element more, which loops over pairs read.
  padded_ = std::max(s_.left + s_.width, places_ - 1 + s_.kernel_width) + 1;
  const int64_t lines = kBandFloats / std::max<int64_t>(1, s_.out_width);
  const int64_t fit = (lines - s_.kernel_height) / s_.stride_height + 1;
  // Lines at the ends of bands are computed twice, so bands are longer than windows.
  band_ = std::clamp<int64_t>(std::max(fit, s_.kernel_height / s_.stride_height + 1), 1,
                              std::max<int64_t>(1, s_.out_height));
}

size_t MaxPlanes::scratch_bytes() const {
  return round_up_to_cache_line(static_cast<size_t>(padded_ + lines_of(band_) * s_.out_width) *
                                sizeof(float));
}

/// The maxima of a row's windows; false if an element is NaN.
bool MaxPlanes::pool_row(const float* x, float* padded, float* line) const {
  std::fill_n(padded, s_.left, kLowest);
  if (copy_and_find_nan(x, s_.width, padded + s_.left)) return false;
  std::fill(padded + s_.left + s_.width, padded + padded_, kLowest);
  const Widened windows = Widened::of(padded, 1, padded_, s_.kernel_width);
  if (s_.stride_width == 1) {
    windows.finish(padded, s_.out_width, line);
  } else if (s_.stride_width == 2 && windows.shift == 1) {
    max_of_pairs(padded, windows.taps, s_.out_width, line);
  } else {
    if (windows.taps > 1) windows.finish(padded, places_, padded);
    for (int64_t c = 0; c < s_.out_width; ++c) line[c] = padded[c * s_.stride_width];
  }
  return true;
}

bool MaxPlanes::pool_band(const float* x, int64_t first, int64_t rows, float* out,
                          float* scratch) const {
  float* const lines = scratch + padded_;
  const int64_t count = lines_of(rows), from = first * s_.stride_height - s_.top, n = s_.out_width;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t h = from + k;
    if (h < 0 || h >= s_.height)
      std::fill_n(lines + k * n, n, kLowest);
    else if (!pool_row(x + h * s_.width, scratch, lines + k * n))
      return false;
  }
  const Widened windows = Widened::of(lines, n, count, s_.kernel_height);
  out += first * n;
  if (s_.stride_height == 1) {
    windows.finish(lines, rows * n, out);
    return true;
  }
  for (int64_t r = 0; r < rows; ++r)
    windows.finish(lines + r * s_.stride_height * n, n, out + r * n);
  return true;
}

/// Windows of one column, without padding on the left and right: rows as they are.
void MaxPlanes::pool_columns(const float* x, float* out) const {
  const float* rows[kRows];
  for (int64_t r = 0; r < s_.out_height; ++r, out += s_.out_width) {
    const int64_t from = r * s_.stride_height - s_.top;
    int64_t count = 0;
    for (int64_t h = std::max<int64_t>(0, from); h < std::min(s_.height, from + s_.kernel_height);
         ++h)
      rows[count++] = x + h * s_.width;
    if (count == 0)
      std::fill_n(out, s_.out_width, kLowest);
    else
      max_of_rows(rows, nullptr, count, s_.out_width, out, nullptr);
  }
}

bool MaxPlanes::run(const float* x, float* out, float* scratch) const {
  if (s_.kernel_width == 1 && s_.stride_width == 1 && s_.out_width == s_.width &&
      s_.kernel_height <= kRows) {
    pool_columns(x, out);
    return true;
  }
  for (int64_t r = 0; r < s_.out_height; r += band_)
    if (!pool_band(x, r, std::min(band_, s_.out_height - r), out, scratch)) return false;
  return true;
}

}  // namespace paddle::cpu
