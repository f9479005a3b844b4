// Vector loops of recurrent layers.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/recurrent_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"

#include "kernels/common/vector_math-inl.h"
#include "kernels/recurrent/recurrent_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

/// A tile of kRows × kColumns dot products over `n` elements.
template <class T, int kRows, int kColumns>
void dots(const T* const* h, const T* const* w, int64_t n, T sums[kRows][kColumns]) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec<T> acc[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) acc[r][c] = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes) {
    Vec<T> wv[kColumns];
    for (int c = 0; c < kColumns; ++c) wv[c] = hn::LoadU(d, w[c] + k);
    for (int r = 0; r < kRows; ++r) {
      const Vec<T> hv = hn::LoadU(d, h[r] + k);
      for (int c = 0; c < kColumns; ++c) acc[r][c] = hn::MulAdd(hv, wv[c], acc[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) {
      T sum = hn::GetLane(hn::SumOfLanes(d, acc[r][c]));
      for (int64_t i = k; i < n; ++i) sum += h[r][i] * w[c][i];
      sums[r][c] = sum;
    }
}

/// W h for kRows states, `stride` apart, and columns [first, last).
template <class T, int kRows, int kColumns>
void hidden_gates_of_rows(const T* h, int64_t stride, const T* weight, int64_t hidden,
                          int64_t first, int64_t last, T* out, int64_t out_stride) {
  const T *hr[kRows], *wc[kColumns];
  for (int r = 0; r < kRows; ++r) hr[r] = h + r * stride;
  for (int64_t j = first; j < last; j += kColumns) {
    // Columns past the end repeat the last one.
    for (int c = 0; c < kColumns; ++c) wc[c] = weight + std::min(j + c, last - 1) * hidden;
    T sums[kRows][kColumns];
    dots<T, kRows, kColumns>(hr, wc, hidden, sums);
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < std::min<int64_t>(kColumns, last - j); ++c)
        out[r * out_stride + j + c] = sums[r][c];
  }
}

template <class T>
void forward(const T* h, int64_t batch, int64_t h_stride, const T* weight, int64_t hidden,
             int64_t first, int64_t last, T* out, int64_t out_stride) {
  for (int64_t b = 0; b < batch; b += 4) {
    const T* const from = h + b * h_stride;
    T* const to = out + b * out_stride;
    switch (std::min<int64_t>(4, batch - b)) {
      case 1:
        hidden_gates_of_rows<T, 1, 8>(from, h_stride, weight, hidden, first, last, to, out_stride);
        break;
      case 2:
        hidden_gates_of_rows<T, 2, 4>(from, h_stride, weight, hidden, first, last, to, out_stride);
        break;
      case 3:
        hidden_gates_of_rows<T, 3, 4>(from, h_stride, weight, hidden, first, last, to, out_stride);
        break;
      default:
        hidden_gates_of_rows<T, 4, 4>(from, h_stride, weight, hidden, first, last, to, out_stride);
    }
  }
}

template <class T>
void backward(const T* g, int64_t batch, int64_t g_stride, const T* weight, int64_t gates,
              int64_t hidden, int64_t first, int64_t last, T* out) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kRows = 4, kVectors = 4;
  for (int64_t b = 0; b < batch; b += kRows) {
    const T* gr[kRows];
    for (int r = 0; r < kRows; ++r) gr[r] = g + std::min(b + r, batch - 1) * g_stride;
    const int64_t rows = std::min<int64_t>(kRows, batch - b);
    int64_t k = first;
    for (; k + kVectors * lanes <= last; k += kVectors * lanes) {
      Vec<T> acc[kRows][kVectors];
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(d);
      for (int64_t j = 0; j < gates; ++j) {
        Vec<T> wv[kVectors];
        for (int v = 0; v < kVectors; ++v)
          wv[v] = hn::LoadU(d, weight + j * hidden + k + v * lanes);
        for (int r = 0; r < kRows; ++r) {
          const Vec<T> gv = hn::Set(d, gr[r][j]);
          for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(gv, wv[v], acc[r][v]);
        }
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int v = 0; v < kVectors; ++v)
          hn::StoreU(acc[r][v], d, out + (b + r) * hidden + k + v * lanes);
    }
    for (; k < last; ++k)
      for (int64_t r = 0; r < rows; ++r) {
        T sum = 0;
        for (int64_t j = 0; j < gates; ++j) sum += gr[r][j] * weight[j * hidden + k];
        out[(b + r) * hidden + k] = sum;
      }
  }
}

template <class T, class F>
void each_vector(const T* x, T* y, int64_t n, F f) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN T padded[hn::MaxLanes(Tag<T>())] = {};
  std::copy(x + i, x + n, padded);
  hn::Store(f(hn::Load(d, padded)), d, padded);
  std::copy(padded, padded + (n - i), y + i);
}
template <class T>
void sigmoid(const T* x, T* y, int64_t n) {
  each_vector(x, y, n, [](Vec<T> v) HWY_ATTR { return v_sigmoid(v); });
}
template <class T>
void tanh_of(const T* x, T* y, int64_t n) {
  each_vector(x, y, n, [](Vec<T> v) HWY_ATTR { return v_tanh(v); });
}

template <class T>
constexpr RecurrentLoops<T> kLoops = {&forward<T>, &backward<T>, &sigmoid<T>, &tanh_of<T>};

}  // namespace

const RecurrentLoops<float>* recurrent_f32() { return &kLoops<float>; }
const RecurrentLoops<double>* recurrent_f64() { return &kLoops<double>; }

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(recurrent_f32);
HWY_EXPORT(recurrent_f64);

template <>
const RecurrentLoops<float>& recurrent_loops<float>() {
  static const RecurrentLoops<float>& loops = *HWY_DYNAMIC_DISPATCH(recurrent_f32)();
  return loops;
}
template <>
const RecurrentLoops<double>& recurrent_loops<double>() {
  static const RecurrentLoops<double>& loops = *HWY_DYNAMIC_DISPATCH(recurrent_f64)();
  return loops;
}

}  // namespace paddle::cpu
#endif
