// Plain loops, which the compiler vectorizes for each of Highway's targets.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer/update_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"

#include "kernels/optimizer/update_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

// `__restrict` would be wrong, because results may alias operands; `ivdep` says that elements are
// independent.

/// The scaled and clipped gradient, propagating NaN.
template <class T>
HWY_INLINE T clipped_gradient(T gradient, const UpdateScalars<T>& k) {
  const T scaled = gradient * k.scale, above = scaled < -k.bound ? -k.bound : scaled;
  return above > k.bound ? k.bound : above;
}

template <class T>
void sgd(const UpdateSpan<T>& r, const UpdateScalars<T>& s) {
  const T *p = r.param, *g = r.grad;
  T* out = r.out;
  const UpdateScalars<T> k = s;
#pragma GCC ivdep
  for (int64_t i = 0; i < r.n; ++i)
    out[i] = p[i] - k.lr * (clipped_gradient(g[i], k) + k.decay * p[i]);
}

template <class T>
void momentum(const UpdateSpan<T>& r, const UpdateScalars<T>& s) {
  const T *p = r.param, *g = r.grad, *v = r.state[0];
  T *out = r.out, *new_v = r.new_state[0];
  const UpdateScalars<T> k = s;
  if (k.flag) {
#pragma GCC ivdep
    for (int64_t i = 0; i < r.n; ++i) {
      const T slope = clipped_gradient(g[i], k) + k.decay * p[i], velocity = k.a * v[i] + slope;
      out[i] = p[i] - k.lr * (slope + k.a * velocity);
      new_v[i] = velocity;
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < r.n; ++i) {
      const T velocity = k.a * v[i] + (clipped_gradient(g[i], k) + k.decay * p[i]);
      out[i] = p[i] - k.lr * velocity;
      new_v[i] = velocity;
    }
  }
}

template <class T>
void adam(const UpdateSpan<T>& r, const UpdateScalars<T>& s) {
  const T *p = r.param, *g = r.grad, *m = r.state[0], *v = r.state[1];
  T *out = r.out, *new_m = r.new_state[0], *new_v = r.new_state[1];
  const UpdateScalars<T> k = s;
  const T one_minus_a = T(1) - k.a, one_minus_b = T(1) - k.b;
#pragma GCC ivdep
  for (int64_t i = 0; i < r.n; ++i) {
    const T slope = clipped_gradient(g[i], k) + k.decay * p[i];
    const T first = k.a * m[i] + one_minus_a * slope,
            second = k.b * v[i] + one_minus_b * slope * slope;
    out[i] = p[i] * k.shrink - k.lr * first / (std::sqrt(second) + k.epsilon);
    new_m[i] = first;
    new_v[i] = second;
  }
}

template <class T>
void adagrad(const UpdateSpan<T>& r, const UpdateScalars<T>& s) {
  const T *p = r.param, *g = r.grad, *m = r.state[0];
  T *out = r.out, *new_m = r.new_state[0];
  const UpdateScalars<T> k = s;
#pragma GCC ivdep
  for (int64_t i = 0; i < r.n; ++i) {
    const T slope = clipped_gradient(g[i], k) + k.decay * p[i], moment = m[i] + slope * slope;
    out[i] = p[i] - k.lr * slope / (std::sqrt(moment) + k.epsilon);
    new_m[i] = moment;
  }
}

template <class T>
void rmsprop(const UpdateSpan<T>& r, const UpdateScalars<T>& s) {
  const T *p = r.param, *g = r.grad, *square = r.state[0], *mean = r.state[1], *v = r.state[2];
  T *out = r.out, *new_square = r.new_state[0], *new_mean = r.new_state[1], *new_v = r.new_state[2];
  const UpdateScalars<T> k = s;
  const T one_minus_b = T(1) - k.b, centered = k.flag ? T(1) : T(0);
#pragma GCC ivdep
  for (int64_t i = 0; i < r.n; ++i) {
    const T slope = clipped_gradient(g[i], k) + k.decay * p[i];
    const T next_square = k.b * square[i] + one_minus_b * slope * slope;
    const T next_mean = k.flag ? k.b * mean[i] + one_minus_b * slope : mean[i];
    const T variance = next_square - centered * next_mean * next_mean;
    const T velocity = k.a * v[i] + k.lr * slope / std::sqrt(variance + k.epsilon);
    out[i] = p[i] - velocity;
    new_square[i] = next_square;
    new_mean[i] = next_mean;
    new_v[i] = velocity;
  }
}

/// Without the sign, the bits of a float grow with its magnitude; infinity and NaN are the largest.
template <class T>
bool all_finite(const T* x, int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kSize = std::numeric_limits<Bits>::max() >> 1;
  Bits highest = 0;
  for (int64_t i = 0; i < n; ++i) highest = std::max(highest, std::bit_cast<Bits>(x[i]) & kSize);
  return highest < std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  constexpr int64_t kLanes = 32;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) {
      const auto value = static_cast<double>(x[i + k]);
      sums[k] += value * value;
    }
  for (; i < n; ++i) {
    const auto value = static_cast<double>(x[i]);
    sums[i % kLanes] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <class T>
constexpr UpdateLoops<T> kLoops = {&sgd<T>,     &momentum<T>,   &adam<T>,          &adagrad<T>,
                                   &rmsprop<T>, &all_finite<T>, &sum_of_squares<T>};

}  // namespace

const UpdateLoops<float>* update_loops_f32() { return &kLoops<float>; }
const UpdateLoops<double>* update_loops_f64() { return &kLoops<double>; }

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(update_loops_f32);
HWY_EXPORT(update_loops_f64);

template <>
const UpdateLoops<float>& update_loops<float>() {
  static const UpdateLoops<float>& loops = *HWY_DYNAMIC_DISPATCH(update_loops_f32)();
  return loops;
}
template <>
const UpdateLoops<double>& update_loops<double>() {
  static const UpdateLoops<double>& loops = *HWY_DYNAMIC_DISPATCH(update_loops_f64)();
  return loops;
}

}  // namespace paddle::cpu
#endif
