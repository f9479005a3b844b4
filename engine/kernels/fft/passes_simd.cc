#include "kernels/fft/passes_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fft/passes_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Complex numbers in registers: V is a vector, or T for the rest of a row.
template <class V>
struct Z {
  V re, im;
};
template <class V>
HWY_INLINE Z<V> operator+(Z<V> a, Z<V> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
HWY_INLINE Z<V> operator-(Z<V> a, Z<V> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V>
HWY_INLINE Z<V> operator*(Z<V> a, Z<V> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class V>
HWY_INLINE Z<V> scaled(Z<V> a, V by) {
  return {a.re * by, a.im * by};
}
/// How a loop step reads, writes and repeats numbers: vectors of up to kLanes, or single ones.
template <class T, size_t kLanes>
struct Vectors {
  using D = hn::CappedTag<T, kLanes>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const T* p) { return hn::LoadU(D(), p); }
  static HWY_INLINE void store(V v, T* p) { hn::StoreU(v, D(), p); }
  static HWY_INLINE V repeat(T x) { return hn::Set(D(), x); }
  /// -i z
  static HWY_INLINE Z<V> turned(Z<V> z) { return {z.im, hn::Neg(z.re)}; }
};
template <class T>
struct Singles {
  using V = T;
  static HWY_INLINE V load(const T* p) { return *p; }
  static HWY_INLINE void store(V v, T* p) { *p = v; }
  static HWY_INLINE V repeat(T x) { return x; }
  static HWY_INLINE Z<V> turned(Z<V> z) { return {z.im, -z.re}; }
};

template <class M, int kRadix>
HWY_INLINE void butterfly(const Z<typename M::V>* a, Z<typename M::V>* b) {
  using C = Z<typename M::V>;
  if constexpr (kRadix == 2) {
    b[0] = a[0] + a[1];
    b[1] = a[0] - a[1];
  } else if constexpr (kRadix == 3) {
    const C sum = a[1] + a[2];
    const C middle = a[0] - scaled(sum, M::repeat(0.5));
    const C side = M::turned(scaled(a[1] - a[2], M::repeat(0.86602540378443864676)));
    b[0] = a[0] + sum;
    b[1] = middle + side;
    b[2] = middle - side;
  } else if constexpr (kRadix == 4) {
    const C s = a[0] + a[2], d = a[0] - a[2], t = a[1] + a[3], e = M::turned(a[1] - a[3]);
    b[0] = s + t;
    b[1] = d + e;
    b[2] = s - t;
    b[3] = d - e;
  } else {
    static_assert(kRadix == 5);
    const auto c1 = M::repeat(0.30901699437494742410), c2 = M::repeat(-0.80901699437494742410);
    const auto s1 = M::repeat(0.95105651629515357212), s2 = M::repeat(0.58778525229247312917);
    const C p = a[1] + a[4], q = a[2] + a[3], d = a[1] - a[4], e = a[2] - a[3];
    const C m1 = a[0] + scaled(p, c1) + scaled(q, c2), m2 = a[0] + scaled(p, c2) + scaled(q, c1);
    const C n1 = M::turned(scaled(d, s1) + scaled(e, s2));
    const C n2 = M::turned(scaled(d, s2) - scaled(e, s1));
    b[0] = a[0] + p + q;
    b[1] = m1 + n1;
    b[2] = m2 + n2;
    b[3] = m2 - n2;
    b[4] = m1 - n1;
  }
}

/// With kTurned unless all twiddles are 1.
template <class T, class M, int kRadix, bool kTurned>
HWY_INLINE void step(const FftPass<T>& pass, int64_t p, int64_t q, const T* twiddles) {
  using C = Z<typename M::V>;
  const int64_t s = pass.stride, m = pass.count;
  C a[kRadix], b[kRadix];
  for (int j = 0; j < kRadix; ++j) {
    const int64_t at = q + s * (p + m * j);
    a[j] = {M::load(pass.x.re + at), M::load(pass.x.im + at)};
  }
  butterfly<M, kRadix>(a, b);
  for (int k = 0; k < kRadix; ++k) {
    if (kTurned && k > 0)
      b[k] = b[k] * C{M::repeat(twiddles[2 * k - 2]), M::repeat(twiddles[2 * k - 1])};
    const int64_t at = q + s * (kRadix * p + k);
    M::store(b[k].re, pass.y.re + at);
    M::store(b[k].im, pass.y.im + at);
  }
}

template <class T, int kRadix, size_t kLanes, bool kTurned>
HWY_INLINE void row_of_steps(const FftPass<T>& pass, int64_t p, const T* twiddles) {
  using M = Vectors<T, kLanes>;
  const auto width = static_cast<int64_t>(hn::Lanes(typename M::D()));
  int64_t q = 0;
  for (; q + width <= pass.stride; q += width) step<T, M, kRadix, kTurned>(pass, p, q, twiddles);
  for (; q < pass.stride; ++q) step<T, Singles<T>, kRadix, kTurned>(pass, p, q, twiddles);
}

template <class T, int kRadix, size_t kLanes>
void run_pass_of(const FftPass<T>& pass) {
  row_of_steps<T, kRadix, kLanes, false>(pass, 0, pass.twiddles);
  for (int64_t p = 1; p < pass.count; ++p)
    row_of_steps<T, kRadix, kLanes, true>(pass, p, pass.twiddles + 2 * p * (kRadix - 1));
}

template <class T, int kRadix>
void run_pass(const FftPass<T>& pass) {
  constexpr size_t kMax = hn::MaxLanes(hn::ScalableTag<T>());
  const auto stride = static_cast<size_t>(pass.stride);
  if (stride < kMax && stride >= 8) return run_pass_of<T, kRadix, 8>(pass);
  if (stride < kMax && stride >= 4) return run_pass_of<T, kRadix, 4>(pass);
  run_pass_of<T, kRadix, kMax>(pass);
}

/// A pass of radix 4 and stride 1, over vectors of butterflies. The results of one are neighbors.
template <class T>
void run_first_pass(const FftPass<T>& pass) {
  const int64_t m = pass.count;
  int64_t p = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  using V = hn::Vec<hn::ScalableTag<T>>;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  for (; p + width <= m; p += width) {
    Z<V> a[4], b[4];
    for (int j = 0; j < 4; ++j)
      a[j] = {hn::LoadU(d, pass.x.re + p + m * j), hn::LoadU(d, pass.x.im + p + m * j)};
    butterfly<Vectors<T, hn::MaxLanes(hn::ScalableTag<T>())>, 4>(a, b);
    for (int k = 1; k < 4; ++k) {
      const T* const w = pass.columns + 2 * (k - 1) * m + p;
      b[k] = b[k] * Z<V>{hn::LoadU(d, w), hn::LoadU(d, w + m)};
    }
    hn::StoreInterleaved4(b[0].re, b[1].re, b[2].re, b[3].re, d, pass.y.re + 4 * p);
    hn::StoreInterleaved4(b[0].im, b[1].im, b[2].im, b[3].im, d, pass.y.im + 4 * p);
  }
#endif
  for (; p < m; ++p) step<T, Singles<T>, 4, true>(pass, p, 0, pass.twiddles + 6 * p);
}

/// Any radix, by its definition.
template <class T>
void run_general_pass(const FftPass<T>& pass) {
  constexpr int64_t kBlock = 64;
  const int64_t s = pass.stride, m = pass.count, r = pass.radix;
  for (int64_t p = 0; p < m; ++p)
    for (int64_t first = 0; first < s; first += kBlock) {
      const int64_t n = s - first < kBlock ? s - first : kBlock;
      for (int64_t k = 0; k < r; ++k) {
        T re[kBlock] = {}, im[kBlock] = {};
        for (int64_t j = 0; j < r; ++j) {
          const T c = pass.roots[2 * (j * k % r)], d = pass.roots[2 * (j * k % r) + 1];
          const T* HWY_RESTRICT x_re = pass.x.re + first + s * (p + m * j);
          const T* HWY_RESTRICT x_im = pass.x.im + first + s * (p + m * j);
          for (int64_t q = 0; q < n; ++q) {
            re[q] += x_re[q] * c - x_im[q] * d;
            im[q] += x_re[q] * d + x_im[q] * c;
          }
        }
        const T* const w = k == 0 ? pass.roots : pass.twiddles + 2 * (p * (r - 1) + k - 1);
        T* HWY_RESTRICT y_re = pass.y.re + first + s * (r * p + k);
        T* HWY_RESTRICT y_im = pass.y.im + first + s * (r * p + k);
        for (int64_t q = 0; q < n; ++q) {
          y_re[q] = re[q] * w[0] - im[q] * w[1];
          y_im[q] = re[q] * w[1] + im[q] * w[0];
        }
      }
    }
}

template <class T>
void run_any(const FftPass<T>& pass) {
  if (pass.stride == 1 && pass.radix == 4 && pass.columns) return run_first_pass<T>(pass);
  switch (pass.radix) {
    case 2:
      return run_pass<T, 2>(pass);
    case 3:
      return run_pass<T, 3>(pass);
    case 4:
      return run_pass<T, 4>(pass);
    case 5:
      return run_pass<T, 5>(pass);
    default:
      return run_general_pass<T>(pass);
  }
}

template <class T>
void multiply_each(Parts<T> x, const T* factors, int64_t count, int64_t lanes) {
  for (int64_t k = 0; k < count; ++k) {
    const T c = factors[2 * k], d = factors[2 * k + 1];
    T* HWY_RESTRICT re = x.re + k * lanes;
    T* HWY_RESTRICT im = x.im + k * lanes;
    for (int64_t q = 0; q < lanes; ++q) {
      const T a = re[q], b = im[q];
      re[q] = a * c - b * d;
      im[q] = a * d + b * c;
    }
  }
}

template <class T>
void split_complex(const std::complex<T>* in, int64_t n, Parts<T> out) {
  const auto* const x = reinterpret_cast<const T*>(in);
  int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  for (; k + width <= n; k += width) {
    hn::Vec<hn::ScalableTag<T>> re, im;
    hn::LoadInterleaved2(d, x + 2 * k, re, im);
    hn::StoreU(re, d, out.re + k);
    hn::StoreU(im, d, out.im + k);
  }
#endif
  for (; k < n; ++k) {
    out.re[k] = x[2 * k];
    out.im[k] = x[2 * k + 1];
  }
}

template <class T>
void join_complex(Parts<T> in, int64_t n, T scale, std::complex<T>* out) {
  auto* const y = reinterpret_cast<T*>(out);
  int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, scale);
  for (; k + width <= n; k += width)
    hn::StoreInterleaved2(hn::Mul(hn::LoadU(d, in.re + k), by),
                          hn::Mul(hn::LoadU(d, in.im + k), by), d, y + 2 * k);
#endif
  for (; k < n; ++k) {
    y[2 * k] = in.re[k] * scale;
    y[2 * k + 1] = in.im[k] * scale;
  }
}

/// y(k) and y(n - k) give the bin k of both spectra.
template <class T>
void split_pair(Parts<T> y, int64_t n, int64_t bins, T half, T sign, std::complex<T>* even,
                std::complex<T>* odd) {
  auto *const first = reinterpret_cast<T*>(even), *const second = reinterpret_cast<T*>(odd);
  const T turned = half * sign;
  const auto one = [&](int64_t k) {
    const int64_t b = k == 0 ? 0 : n - k;
    first[2 * k] = (y.re[k] + y.re[b]) * half;
    first[2 * k + 1] = (y.im[k] - y.im[b]) * turned;
    if (!odd) return;
    second[2 * k] = (y.im[k] + y.im[b]) * half;
    second[2 * k + 1] = (y.re[b] - y.re[k]) * turned;
  };
  if (bins > 0) one(0);
  int64_t k = 1;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const auto h = hn::Set(d, half), t = hn::Set(d, turned);
  for (; k + width <= bins; k += width) {
    const auto re = hn::LoadU(d, y.re + k), im = hn::LoadU(d, y.im + k);
    const auto other_re = hn::Reverse(d, hn::LoadU(d, y.re + n - k - width + 1));
    const auto other_im = hn::Reverse(d, hn::LoadU(d, y.im + n - k - width + 1));
    hn::StoreInterleaved2(hn::Mul(hn::Add(re, other_re), h), hn::Mul(hn::Sub(im, other_im), t), d,
                          first + 2 * k);
    if (odd)
      hn::StoreInterleaved2(hn::Mul(hn::Add(im, other_im), h), hn::Mul(hn::Sub(other_re, re), t), d,
                            second + 2 * k);
  }
#endif
  for (; k < bins; ++k) one(k);
}

template <class T>
FftRowLoops<T> row_loops() {
  return {&split_complex<T>, &join_complex<T>, &split_pair<T>};
}

}  // namespace

FftRowLoops<float> rows_f32() { return row_loops<float>(); }
FftRowLoops<double> rows_f64() { return row_loops<double>(); }
void pass_f32(const FftPass<float>& pass) { run_any(pass); }
void pass_f64(const FftPass<double>& pass) { run_any(pass); }
void multiply_f32(Parts<float> x, const float* factors, int64_t count, int64_t lanes) {
  multiply_each(x, factors, count, lanes);
}
void multiply_f64(Parts<double> x, const double* factors, int64_t count, int64_t lanes) {
  multiply_each(x, factors, count, lanes);
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {
HWY_EXPORT(pass_f32);
HWY_EXPORT(pass_f64);
HWY_EXPORT(multiply_f32);
HWY_EXPORT(multiply_f64);
HWY_EXPORT(rows_f32);
HWY_EXPORT(rows_f64);
template <>
FftRowLoops<float> fft_row_loops<float>() {
  return HWY_DYNAMIC_DISPATCH(rows_f32)();
}
template <>
FftRowLoops<double> fft_row_loops<double>() {
  return HWY_DYNAMIC_DISPATCH(rows_f64)();
}
void fft_pass(const FftPass<float>& pass) { HWY_DYNAMIC_DISPATCH(pass_f32)(pass); }
void fft_pass(const FftPass<double>& pass) { HWY_DYNAMIC_DISPATCH(pass_f64)(pass); }
void multiply_by(Parts<float> x, const float* factors, int64_t count, int64_t lanes) {
  HWY_DYNAMIC_DISPATCH(multiply_f32)(x, factors, count, lanes);
}
void multiply_by(Parts<double> x, const double* factors, int64_t count, int64_t lanes) {
  HWY_DYNAMIC_DISPATCH(multiply_f64)(x, factors, count, lanes);
}
}  // namespace paddle::cpu
#endif
