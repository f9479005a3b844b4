// Vector loops over channels-last rows.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/channel_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>

#include "hwy/highway.h"

#include "kernels/common/vector_math-inl.h"
#include "kernels/norm/channel_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

/// Vectors of channels whose sums stay in registers over a few rows. Only a few rows, because each
/// row is a separate stream for the hardware prefetcher.
constexpr int kVectors = 4;
constexpr int64_t kRowsPerPass = 8;

/// At most kRowsPerPass rows.
template <class T>
void moments_of_rows(const T* x, int64_t rows, int64_t channels, const T* center, T* first,
                     T* second) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + kVectors * lanes <= channels; c += kVectors * lanes) {
    Vec<T> k[kVectors], sum[kVectors], squares[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      k[v] = hn::LoadU(d, center + c + v * lanes);
      sum[v] = hn::LoadU(d, first + c + v * lanes);
      squares[v] = hn::LoadU(d, second + c + v * lanes);
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const Vec<T> t = hn::Sub(hn::LoadU(d, x + r * channels + c + v * lanes), k[v]);
        sum[v] = hn::Add(sum[v], t);
        squares[v] = hn::MulAdd(t, t, squares[v]);
      }
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[v], d, first + c + v * lanes);
      hn::StoreU(squares[v], d, second + c + v * lanes);
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = c; i < channels; ++i) {
      const T t = x[r * channels + i] - center[i];
      first[i] += t;
      second[i] += t * t;
    }
}

template <class T>
void moments(const T* x, int64_t rows, int64_t channels, const T* center, T* first, T* second) {
  for (int64_t r = 0; r < rows; r += kRowsPerPass)
    moments_of_rows(x + r * channels, std::min(kRowsPerPass, rows - r), channels, center, first,
                    second);
}

template <class T>
void grad_sums_of_rows(const T* g, const T* x, int64_t rows, int64_t channels, const T* center,
                       T* sum, T* centered_sum) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + kVectors * lanes <= channels; c += kVectors * lanes) {
    Vec<T> k[kVectors], sums[kVectors], dots[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      k[v] = hn::LoadU(d, center + c + v * lanes);
      sums[v] = hn::LoadU(d, sum + c + v * lanes);
      dots[v] = hn::LoadU(d, centered_sum + c + v * lanes);
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        const int64_t at = r * channels + c + v * lanes;
        const Vec<T> gv = hn::LoadU(d, g + at);
        sums[v] = hn::Add(sums[v], gv);
        dots[v] = hn::MulAdd(gv, hn::Sub(hn::LoadU(d, x + at), k[v]), dots[v]);
      }
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[v], d, sum + c + v * lanes);
      hn::StoreU(dots[v], d, centered_sum + c + v * lanes);
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = c; i < channels; ++i) {
      const int64_t at = r * channels + i;
      sum[i] += g[at];
      centered_sum[i] += g[at] * (x[at] - center[i]);
    }
}

template <class T>
void grad_sums(const T* g, const T* x, int64_t rows, int64_t channels, const T* center, T* sum,
               T* centered_sum) {
  for (int64_t r = 0; r < rows; r += kRowsPerPass)
    grad_sums_of_rows(g + r * channels, x + r * channels, std::min(kRowsPerPass, rows - r),
                      channels, center, sum, centered_sum);
}

template <class T>
void affine(const T* x, T* out, int64_t channels, const T* center, const T* scale, const T* shift) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes)
    hn::StoreU(hn::MulAdd(hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, center + c)),
                          hn::LoadU(d, scale + c), hn::LoadU(d, shift + c)),
               d, out + c);
  for (; c < channels; ++c) out[c] = (x[c] - center[c]) * scale[c] + shift[c];
}

template <class T>
void combine(const T* g, const T* x, T* out, int64_t channels, const T* center, const T* scale,
             const T* slope, const T* shift) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    const Vec<T> centered_sum = hn::MulAdd(hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, center + c)),
                                           hn::LoadU(d, slope + c), hn::LoadU(d, shift + c));
    hn::StoreU(hn::MulAdd(hn::LoadU(d, g + c), hn::LoadU(d, scale + c), centered_sum), d, out + c);
  }
  for (; c < channels; ++c) out[c] = g[c] * scale[c] + ((x[c] - center[c]) * slope[c] + shift[c]);
}

template <class T>
constexpr ChannelLoops<T> kLoops = {&moments<T>, &grad_sums<T>, &affine<T>, &combine<T>};

}  // namespace

const ChannelLoops<float>* channel_f32() { return &kLoops<float>; }
const ChannelLoops<double>* channel_f64() { return &kLoops<double>; }

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(channel_f32);
HWY_EXPORT(channel_f64);

template <>
const ChannelLoops<float>& channel_loops<float>() {
  static const ChannelLoops<float>& loops = *HWY_DYNAMIC_DISPATCH(channel_f32)();
  return loops;
}
template <>
const ChannelLoops<double>& channel_loops<double>() {
  static const ChannelLoops<double>& loops = *HWY_DYNAMIC_DISPATCH(channel_f64)();
  return loops;
}

}  // namespace paddle::cpu
#endif
