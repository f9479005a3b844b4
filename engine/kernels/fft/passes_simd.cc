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
/// How a loop step reads, writes and repeats numbers: vectors, or single ones.
template <class T>
struct Vectors {
  using D = hn::ScalableTag<T>;
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

template <class T, class M, int kRadix>
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
    if (k > 0) b[k] = b[k] * C{M::repeat(twiddles[2 * k - 2]), M::repeat(twiddles[2 * k - 1])};
    const int64_t at = q + s * (kRadix * p + k);
    M::store(b[k].re, pass.y.re + at);
    M::store(b[k].im, pass.y.im + at);
  }
}

template <class T, int kRadix>
void run_pass(const FftPass<T>& pass) {
  const auto width = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t p = 0; p < pass.count; ++p) {
    const T* const twiddles = pass.twiddles + 2 * p * (kRadix - 1);
    int64_t q = 0;
    for (; q + width <= pass.stride; q += width) step<T, Vectors<T>, kRadix>(pass, p, q, twiddles);
    for (; q < pass.stride; ++q) step<T, Singles<T>, kRadix>(pass, p, q, twiddles);
  }
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

}  // namespace

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
