// Vector loops of reductions and rows. Sums and products use vectors of double, which f32 runs
// enter in groups of four vectors that are added or multiplied as floats, or, for f32 rows of exp,
// f32 vectors that are flushed into a double every 64 steps.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/reduce_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#if HWY_ARCH_X86
#include <xmmintrin.h>
#endif

#include "kernels/common/vector_math-inl.h"
#include "kernels/reduce/reduce_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {

using D64 = Tag<double>;

/// Vectors of the float type that widen to one vector of double.
template <class T>
using Narrow = hn::Rebind<T, D64>;

HWY_INLINE Vec<double> widen(hn::Vec<Narrow<float>> v) { return hn::PromoteTo(D64(), v); }
HWY_INLINE Vec<double> widen(Vec<double> v) { return v; }

// --- functors over double accumulators ---

// clang-format off
struct SumOf {
  static constexpr double kStart = 0;
  template <class V> V operator()(V a, V x) const { return hn::Add(a, x); }
  double operator()(double a, double x) const { return a + x; }
};
struct ProdOf {
  static constexpr double kStart = 1;
  template <class V> V operator()(V a, V x) const { return hn::Mul(a, x); }
  double operator()(double a, double x) const { return a * x; }
};
// A NaN accumulator stays NaN, because no comparison with it is true.
struct MaxOf {
  static constexpr double kStart = -std::numeric_limits<double>::infinity();
  template <class V> V operator()(V a, V x) const {
    return hn::IfThenElse(hn::Or(hn::Gt(x, a), hn::IsNaN(x)), x, a); }
  double operator()(double a, double x) const { return x > a || x != x ? x : a; }
};
struct MinOf {
  static constexpr double kStart = std::numeric_limits<double>::infinity();
  template <class V> V operator()(V a, V x) const {
    return hn::IfThenElse(hn::Or(hn::Lt(x, a), hn::IsNaN(x)), x, a); }
  double operator()(double a, double x) const { return x < a || x != x ? x : a; }
};
// clang-format on

template <class F>
HWY_INLINE double fold_lanes(F f, Vec<double> v) {
  const D64 d;
  HWY_ALIGN double lanes[hn::MaxLanes(D64())];
  hn::Store(v, d, lanes);
  double total = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) total = f(total, lanes[i]);
  return total;
}

/// A run has four vectors of accumulators.
HWY_INLINE int64_t run_lanes() { return 4 * static_cast<int64_t>(hn::Lanes(D64())); }

template <class F, class T>
void run(void* accumulators, const void* source, int64_t n) {
  const F f;
  const D64 d;
  const Narrow<T> dn;
  const T* const x = static_cast<const T*>(source);
  double* const to = static_cast<double*>(accumulators);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (n >= 4 * lanes) {
    Vec<double> a = hn::LoadU(d, to), b = hn::LoadU(d, to + lanes),
                c = hn::LoadU(d, to + 2 * lanes), e = hn::LoadU(d, to + 3 * lanes);
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a = f(a, widen(hn::LoadU(dn, x + i)));
      b = f(b, widen(hn::LoadU(dn, x + i + lanes)));
      c = f(c, widen(hn::LoadU(dn, x + i + 2 * lanes)));
      e = f(e, widen(hn::LoadU(dn, x + i + 3 * lanes)));
    }
    hn::StoreU(a, d, to);
    hn::StoreU(b, d, to + lanes);
    hn::StoreU(c, d, to + 2 * lanes);
    hn::StoreU(e, d, to + 3 * lanes);
  }
  for (int64_t lane = 0; i < n; ++lane, ++i) to[lane] = f(to[lane], static_cast<double>(x[i]));
}

#if HWY_TARGET != HWY_SCALAR
template <class F>
HWY_INLINE void fold_widened(Vec<float> v, Vec<double>& low, Vec<double>& high) {
  const D64 d;
  const Narrow<float> half;
  low = F()(low, hn::PromoteTo(d, hn::LowerHalf(half, v)));
  high = F()(high, hn::PromoteTo(d, hn::UpperHalf(half, v)));
}

/// Vector k of a group of four from x + i on; what lies at n or beyond is F's start.
template <class F>
HWY_INLINE Vec<float> group_vector(const float* x, int64_t i, int64_t k, int64_t n) {
  const Tag<float> ds;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(ds)), at = i + k * lanes;
  const Vec<float> start = hn::Set(ds, static_cast<float>(F::kStart));
  if (at + lanes <= n) return hn::LoadU(ds, x + at);
  if (at >= n) return start;
  const auto some = hn::FirstN(ds, static_cast<size_t>(n - at));
  return hn::IfThenElse(some, hn::MaskedLoad(some, ds, x + at), start);
}

/// The exponents and fractions of floats as integers, below kNormal for normal numbers.
constexpr uint32_t kNormal = 0xFE000000;
HWY_INLINE Vec<uint32_t> magnitude(Vec<float> v) {
  const Tag<uint32_t> du;
  return hn::Sub(hn::ShiftLeft<1>(hn::BitCast(du, v)), hn::Set(du, 0x01000000));
}

/// A sum or product of four vectors, in the first one, if it can be computed in float: a sum that
/// is finite, or a product without factors beyond normal numbers. Otherwise false, and the
/// four vectors have to be folded in double; products do so only with kChecked, and lanes without
/// such factors have their product in the first vector, and ones.
template <class F, bool kChecked>
HWY_INLINE bool fold_group(Vec<float>& a, Vec<float>& b, Vec<float>& c, Vec<float>& e) {
  const Tag<float> ds;
  const Vec<float> ab = F()(a, b), ce = F()(c, e), all = F()(ab, ce);
  if constexpr (std::is_same_v<F, SumOf>) {
    const Vec<float> zero = hn::Sub(all, all);  // or NaN
    if (HWY_UNLIKELY(!hn::AllTrue(ds, hn::Eq(zero, zero)))) return false;
  } else if constexpr (kChecked) {
    const Tag<uint32_t> du;
    const auto largest = hn::Max(hn::Max(magnitude(ab), magnitude(ce)), magnitude(all));
    const auto normal = hn::RebindMask(ds, hn::Lt(largest, hn::Set(du, kNormal)));
    if (HWY_UNLIKELY(!hn::AllTrue(ds, normal))) {
      const Vec<float> one = hn::Set(ds, 1.0f);
      a = hn::IfThenElse(normal, all, a);
      b = hn::IfThenElse(normal, one, b);
      c = hn::IfThenElse(normal, one, c);
      e = hn::IfThenElse(normal, one, e);
      return false;
    }
  }
  a = all;
  return true;
}

/// Folds n floats in groups of four vectors, the last one filled up: widening each vector takes
/// most of the time otherwise. Compiled groups repeat this (compiler/codegen/llvm).
template <class F, bool kChecked>
HWY_INLINE void fold_groups(const float* x, int64_t n, Vec<double>& low, Vec<double>& high) {
  const Tag<float> ds;
  const int64_t group = 4 * static_cast<int64_t>(hn::Lanes(ds));
  const auto add = [&](Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> e) HWY_ATTR {
    const bool is_one = fold_group<F, kChecked>(a, b, c, e);
    fold_widened<F>(a, low, high);
    if (HWY_LIKELY(is_one)) return;
    fold_widened<F>(b, low, high);
    fold_widened<F>(c, low, high);
    fold_widened<F>(e, low, high);
  };
  const auto at = [&](int64_t i) HWY_ATTR { return hn::LoadU(ds, x + i); };
  const int64_t lanes = group / 4;
  int64_t i = 0;
  for (; i + group <= n; i += group)
    add(at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes));
  if (i < n)
    add(group_vector<F>(x, i, 0, n), group_vector<F>(x, i, 1, n), group_vector<F>(x, i, 2, n),
        group_vector<F>(x, i, 3, n));
}

/// The flags of the processor that a product sets if it, or a factor, is infinite or subnormal:
/// with them the products of many groups are checked at once.
class ProductFlags {
 public:
#if HWY_ARCH_X86
  ProductFlags() {
    _mm_setcsr(_mm_getcsr() & ~kMask);
    hold_order();
  }
  bool raised() const {
    hold_order();
    return (_mm_getcsr() & kMask) != 0;
  }

 private:
  static constexpr unsigned kMask = 0x1A;  // denormal operand, overflow, underflow
  /// Loads and stores stay on their side of the flags, and with them what is computed in between.
  static void hold_order() { asm volatile("" ::: "memory"); }
#else
  bool raised() const { return true; }
#endif
};

/// Calls work(std::bool_constant<checked>), and again if what it computed without checks is not
/// right. It stores its results.
template <class F, class Work>
HWY_INLINE void checked_if_needed(const Work& work) {
  if constexpr (std::is_same_v<F, SumOf>) {
    work(std::true_type());
  } else {
    const ProductFlags flags;
    work(std::false_type());
    if (HWY_UNLIKELY(flags.raised())) work(std::true_type());
  }
}

/// `run` for sums and products of floats: of the accumulators it uses as many as a vector of floats
/// has.
template <class F>
void group_run(void* accumulators, const void* source, int64_t n) {
  const D64 d;
  const auto* const x = static_cast<const float*>(source);
  auto* const to = static_cast<double*>(accumulators);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n < 2 * lanes) {  // there may be no more accumulators than elements
    for (int64_t i = 0; i < n; ++i) to[i] = F()(to[i], static_cast<double>(x[i]));
    return;
  }
  const Vec<double> first_low = hn::LoadU(d, to), first_high = hn::LoadU(d, to + lanes);
  checked_if_needed<F>([&](auto checked) HWY_ATTR {
    Vec<double> low = first_low, high = first_high;
    fold_groups<F, decltype(checked)::value>(x, n, low, high);
    hn::StoreU(low, d, to);
    hn::StoreU(high, d, to + lanes);
  });
}

/// The value that `group_run` and `fold` give.
template <class F, bool kChecked>
HWY_INLINE double folded_groups(const float* x, int64_t n) {
  const F f;
  const D64 d;
  Vec<double> low = hn::Set(d, F::kStart), high = low;
  fold_groups<F, kChecked>(x, n, low, high);
  if (n >= run_lanes()) return fold_lanes(f, f(low, high));
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN double each[2 * hn::MaxLanes(D64())];
  hn::Store(low, d, each);
  hn::Store(high, d, each + lanes);
  double total = each[0];
  for (int64_t k = 1; k < std::min(n, 2 * lanes); ++k) total = f(total, each[k]);
  return total;
}
#endif

/// The largest (MaxOf) or smallest (MinOf) of n elements, as T; NaN if there is one.
template <class F, class T>
T row_extremum(const T* x, int64_t n) {
  constexpr bool kLargest = std::is_same_v<F, MaxOf>;
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr T kLowest = static_cast<T>(F::kStart);
  Vec<T> best = hn::Set(d, kLowest), second = best, third = best, fourth = best;
  const F f;
  const auto at = [&](int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); };
  const auto pick = [&](Vec<T> a, Vec<T> b)
                        HWY_ATTR { return kLargest ? hn::Max(a, b) : hn::Min(a, b); };
  // A sum is NaN where one of its terms is, or where it adds infinities of both signs: then the run
  // is looked at again, one by one.
  auto is_nan = hn::IsNaN(hn::Zero(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const Vec<T> a = at(i), b = at(i + lanes), c = at(i + 2 * lanes), e = at(i + 3 * lanes);
    best = pick(best, a);
    second = pick(second, b);
    third = pick(third, c);
    fourth = pick(fourth, e);
    is_nan = hn::Or(is_nan, hn::IsNaN(hn::Add(hn::Add(a, b), hn::Add(c, e))));
  }
  if (!hn::AllFalse(d, is_nan)) {
    i = 0;
    best = second = third = fourth = hn::Set(d, kLowest);
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      best = f(best, at(i));
      second = f(second, at(i + lanes));
      third = f(third, at(i + 2 * lanes));
      fourth = f(fourth, at(i + 3 * lanes));
    }
  }
  for (; i + lanes <= n; i += lanes) best = f(best, at(i));
  if (i < n && n >= lanes) {  // overlaps the vector before
    second = f(second, at(n - lanes));
    i = n;
  }
  best = f(f(best, second), f(third, fourth));
  // A NaN lane stays NaN here, but the extremum of lanes would drop it.
  if (!hn::AllTrue(d, hn::Eq(best, best))) return std::numeric_limits<T>::quiet_NaN();
  T result = hn::GetLane(kLargest ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best));
  for (; i < n; ++i)
    if ((kLargest ? x[i] > result : x[i] < result) || x[i] != x[i]) result = x[i];
  return result;
}

/// A run of floats needs no accumulators in double but one.
template <class F>
void extremum_run(void* accumulators, const void* source, int64_t n) {
  double* const to = static_cast<double*>(accumulators);
  to[0] = F()(to[0], static_cast<double>(row_extremum<F>(static_cast<const float*>(source), n)));
}

template <class F>
void fold(void* accumulators, int64_t used) {
  const F f;
  const D64 d;
  double* const from = static_cast<double*>(accumulators);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (used < run_lanes()) {
    for (int64_t i = 1; i < used; ++i) from[0] = f(from[0], from[i]);
    return;
  }
  from[0] = fold_lanes(f, f(f(hn::LoadU(d, from), hn::LoadU(d, from + lanes)),
                            f(hn::LoadU(d, from + 2 * lanes), hn::LoadU(d, from + 3 * lanes))));
}

template <class F, class T>
void rows(void* accumulators, const void* source, int64_t n) {
  const F f;
  const D64 d;
  const Narrow<T> dn;
  const T* const x = static_cast<const T*>(source);
  double* const a = static_cast<double*>(accumulators);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(f(hn::LoadU(d, a + i), widen(hn::LoadU(dn, x + i))), d, a + i);
  for (; i < n; ++i) a[i] = f(a[i], static_cast<double>(x[i]));
}

template <class F>
void combine(void* accumulators, const void* others, int64_t n) {
  rows<F, double>(accumulators, others, n);
}
template <class F>
void clear(void* accumulators, int64_t n) {
  std::fill_n(static_cast<double*>(accumulators), n, F::kStart);
}

/// The value that `run` and `fold` give, with the accumulators in registers.
template <class F, class T>
HWY_INLINE double fold_run(const T* x, int64_t n) {
  const F f;
  const D64 d;
  const Narrow<T> dn;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec<double> part[4];
  for (auto& each : part) each = hn::Set(d, F::kStart);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    for (int k = 0; k < 4; ++k) part[k] = f(part[k], widen(hn::LoadU(dn, x + i + k * lanes)));
  for (int k = 0; i < n; ++k, i += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, n - i));
    const Vec<double> next = f(part[k], widen(hn::MaskedLoad(hn::FirstN(dn, count), dn, x + i)));
    part[k] = hn::IfThenElse(hn::FirstN(d, count), next, part[k]);
  }
  if (n >= run_lanes()) return fold_lanes(f, f(f(part[0], part[1]), f(part[2], part[3])));
  HWY_ALIGN double each[4 * hn::MaxLanes(D64())];
  for (int k = 0; k < 4; ++k) hn::Store(part[k], d, each + k * lanes);
  double total = each[0];
  for (int64_t k = 1; k < n; ++k) total = f(total, each[k]);
  return total;
}

#if HWY_TARGET != HWY_SCALAR
/// Like fold_groups, but only a total that is not finite is computed again in double.
HWY_INLINE void add_groups(const float* x, int64_t n, Vec<double>& low, Vec<double>& high) {
  const D64 d;
  const Tag<float> ds;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(ds)), group = 4 * lanes;
  const Vec<double> first_low = low, first_high = high;
  const auto at = [&](int64_t i) HWY_ATTR { return hn::LoadU(ds, x + i); };
  const auto some = [&](int64_t i) HWY_ATTR { return group_vector<SumOf>(x, i, 0, n); };
  int64_t i = 0;
  for (; i + group <= n; i += group)
    fold_widened<SumOf>(
        hn::Add(hn::Add(at(i), at(i + lanes)), hn::Add(at(i + 2 * lanes), at(i + 3 * lanes))), low,
        high);
  if (i < n)
    fold_widened<SumOf>(hn::Add(hn::Add(some(i), some(i + lanes)),
                                hn::Add(some(i + 2 * lanes), some(i + 3 * lanes))),
                        low, high);
  if (hn::AllTrue(d, hn::IsFinite(hn::Add(low, high)))) return;
  low = first_low;
  high = first_high;
  for (int64_t k = 0; k < n; k += lanes) fold_widened<SumOf>(some(k), low, high);
}
#endif

template <class T>
double row_sum(const T* x, int64_t n) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<T, float>) {
    Vec<double> low = hn::Zero(D64()), high = low;
    add_groups(x, n, low, high);
    const D64 d;
    HWY_ALIGN double lanes[hn::MaxLanes(D64())];
    hn::Store(hn::Add(low, high), d, lanes);
    for (size_t half = hn::Lanes(d) / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
  }
#endif
  return fold_run<SumOf>(x, n);
}

template <class F, class T>
void all_runs(double* results, const void* source, int64_t count, int64_t n) {
  constexpr bool kExtremum = std::is_same_v<F, MaxOf> || std::is_same_v<F, MinOf>;
  const T* x = static_cast<const T*>(source);
#if HWY_TARGET != HWY_SCALAR
  if constexpr (!kExtremum && std::is_same_v<T, float>)
    return checked_if_needed<F>([&](auto checked) HWY_ATTR {
      for (int64_t r = 0; r < count; ++r)
        results[r] = folded_groups<F, decltype(checked)::value>(x + r * n, n);
    });
#endif
  for (int64_t r = 0; r < count; ++r, x += n) {
    if constexpr (kExtremum && std::is_same_v<T, float>)
      results[r] = static_cast<double>(row_extremum<F>(x, n));
    else
      results[r] = fold_run<F>(x, n);
  }
}

template <class F>
ReduceLoops float_loops(bool f64) {
  static_assert(4 * hn::MaxLanes(D64()) <= kMaxRunLanes);
  constexpr bool kExtremum = std::is_same_v<F, MaxOf> || std::is_same_v<F, MinOf>;
  void (*narrow_run)(void*, const void*, int64_t) = &run<F, float>;
  if constexpr (kExtremum) narrow_run = &extremum_run<F>;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (!kExtremum) narrow_run = &group_run<F>;
#endif
  return {f64 ? &run<F, double> : narrow_run,
          &fold<F>,
          f64 ? &rows<F, double> : &rows<F, float>,
          &combine<F>,
          &clear<F>,
          static_cast<int>(run_lanes()),
          f64 ? &all_runs<F, double> : &all_runs<F, float>};
}

// --- rows ---

template <class T>
T row_max(const T* x, int64_t n) {
  return row_extremum<MaxOf>(x, n);
}

template <class T>
HWY_INLINE double total_of(Vec<T> v) {
  const Tag<T> d;
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v)));
}

/// Σ of `value(i)` (a vector starting at element i) and of the padded vector `tail`, flushed into a
/// double every 64 vectors.
template <class T, class Value, class Tail>
HWY_INLINE double blocked_sum(int64_t n, Value value, Tail tail) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  double total = 0;
  int64_t i = 0;
  while (i + lanes <= n) {
    const int64_t stop = std::min(n - lanes + 1, i + 64 * lanes);
    Vec<T> part = hn::Zero(d);
    for (; i < stop; i += lanes) part = hn::Add(part, value(i));
    total += total_of<T>(part);
  }
  if (i < n) total += tail(i);
  return total;
}

template <class T, bool kStore>
double exp_sum(const T* x, T* y, int64_t n, T shift) {
  const Tag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vec<T> by = hn::Set(d, shift);
  double total = 0;
  int64_t i = 0;
  while (i + lanes <= n) {
    const int64_t stop = std::min(n - lanes + 1, i + 64 * lanes);
    Vec<T> part = hn::Zero(d);
    for (; i < stop; i += lanes) {
      const Vec<T> e = v_exp_normal(hn::Sub(hn::LoadU(d, x + i), by));
      if constexpr (kStore) hn::StoreU(e, d, y + i);
      part = hn::Add(part, e);
    }
    total += total_of<T>(part);
  }
  if (i == n) return total;
  const auto rest = hn::FirstN(d, static_cast<size_t>(n - i));
  const Vec<T> e =
      hn::IfThenElseZero(rest, v_exp_normal(hn::Sub(hn::MaskedLoad(rest, d, x + i), by)));
  if constexpr (kStore) hn::BlendedStore(e, rest, d, y + i);
  return total + total_of<T>(e);
}
template <class T>
double sum_exp(const T* x, int64_t n, T shift) {
  return exp_sum<T, false>(x, nullptr, n, shift);
}
template <class T>
double exp_and_sum(const T* x, T* y, int64_t n, T shift) {
  return exp_sum<T, true>(x, y, n, shift);
}
template <class T>
void scale(const T* x, T* y, int64_t n, T factor) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}
template <class T>
void subtract_both(const T* x, T* y, int64_t n, T first, T second) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - first) - second;
}
template <class T>
double dot(const T* x, const T* y, int64_t n) {
  const Tag<T> d;
  return blocked_sum<T>(
      n, [&](int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, y + i)); },
      [&](int64_t i) {
        double sum = 0;
        for (; i < n; ++i) sum += static_cast<double>(x[i] * y[i]);
        return sum;
      });
}
template <class T>
double squared_distance(const T* x, int64_t n, T center) {
  const Tag<T> d;
  const Vec<T> c = hn::Set(d, center);
  return blocked_sum<T>(
      n,
      [&](int64_t i) HWY_ATTR {
        const Vec<T> gap = hn::Sub(hn::LoadU(d, x + i), c);
        return hn::Mul(gap, gap);
      },
      [&](int64_t i) {
        double sum = 0;
        for (; i < n; ++i) sum += static_cast<double>((x[i] - center) * (x[i] - center));
        return sum;
      });
}

template <class T>
double dot_centered(const T* g, const T* x, int64_t n, T center) {
  const Tag<T> d;
  const Vec<T> c = hn::Set(d, center);
  return blocked_sum<T>(
      n,
      [&](int64_t i)
          HWY_ATTR { return hn::Mul(hn::LoadU(d, g + i), hn::Sub(hn::LoadU(d, x + i), c)); },
      [&](int64_t i) {
        double sum = 0;
        for (; i < n; ++i) sum += static_cast<double>(g[i] * (x[i] - center));
        return sum;
      });
}
// Plain loops, which the compiler vectorizes for each target.
template <class T>
void multiply(const T* x, const T* y, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * y[i];
}
template <class T>
void multiply_centered(const T* x, const T* y, T* out, int64_t n, T center) {
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - center) * y[i];
}
template <class T>
void normalize(const T* x, const T* weight, const T* bias, T* out, int64_t n, T center, T factor) {
  if (weight && bias) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - center) * factor * weight[i] + bias[i];
  } else if (weight) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - center) * factor * weight[i];
  } else if (bias) {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - center) * factor + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - center) * factor;
  }
}
template <class T>
void weighted(const T* g, const T* x, T* out, int64_t n, T a, T b, T center, T c) {
  for (int64_t i = 0; i < n; ++i) out[i] = a * g[i] + b * (x[i] - center) + c;
}
template <class T>
void affine(const T* x, T* out, int64_t n, T center, T factor, T bias) {
  for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - center) * factor + bias;
}
template <class T>
void add(T* sum, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}
template <class T>
void add_centered(T* sum, const T* g, const T* x, int64_t n, T center, T factor) {
  for (int64_t i = 0; i < n; ++i) sum[i] += g[i] * (x[i] - center) * factor;
}

template <class T>
constexpr RowLoops<T> kRows = {
    &row_max<T>,           &sum_exp<T>,   &exp_and_sum<T>,      &scale<T>,        &subtract_both<T>,
    &row_sum<T>,           &dot<T>,       &squared_distance<T>, &dot_centered<T>, &multiply<T>,
    &multiply_centered<T>, &normalize<T>, &weighted<T>,         &affine<T>,       &add<T>,
    &add_centered<T>};

}  // namespace

ReduceLoops float_reduce_loops(Reduction reduction, bool f64) {
  switch (reduction) {
    case Reduction::kProd:
      return float_loops<ProdOf>(f64);
    case Reduction::kMax:
      return float_loops<MaxOf>(f64);
    case Reduction::kMin:
      return float_loops<MinOf>(f64);
    default:
      return float_loops<SumOf>(f64);
  }
}
const RowLoops<float>* row_loops_f32() { return &kRows<float>; }
const RowLoops<double>* row_loops_f64() { return &kRows<double>; }

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {
namespace {

HWY_EXPORT(float_reduce_loops);
HWY_EXPORT(row_loops_f32);
HWY_EXPORT(row_loops_f64);

// --- integers ---

template <class A>
struct IntegerFold {
  static A start(Reduction r) {
    switch (r) {
      case Reduction::kProd:
      case Reduction::kAll:
        return 1;
      case Reduction::kMax:
        return std::numeric_limits<A>::lowest();
      case Reduction::kMin:
        return std::numeric_limits<A>::max();
      default:
        return 0;
    }
  }
  template <Reduction kReduction, class T>
  static A fold(A a, T x) {
    if constexpr (kReduction == Reduction::kSum) {
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(x));
    } else if constexpr (kReduction == Reduction::kProd) {
      return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(x));
    } else if constexpr (kReduction == Reduction::kMax) {
      return static_cast<A>(x) > a ? static_cast<A>(x) : a;
    } else if constexpr (kReduction == Reduction::kMin) {
      return static_cast<A>(x) < a ? static_cast<A>(x) : a;
    } else if constexpr (kReduction == Reduction::kAll) {
      return a & static_cast<A>(x != T(0));
    } else {
      return a | static_cast<A>(x != T(0));
    }
  }
};

template <Reduction kReduction, class T, class A>
ReduceLoops integer_loops() {
  using Fold = IntegerFold<A>;
  return {[](void* accumulator, const void* source, int64_t n) {
            const T* const x = static_cast<const T*>(source);
            A total = *static_cast<A*>(accumulator);
            for (int64_t i = 0; i < n; ++i) total = Fold::template fold<kReduction>(total, x[i]);
            *static_cast<A*>(accumulator) = total;
          },
          [](void*, int64_t) {},
          [](void* accumulators, const void* source, int64_t n) {
            const T* const x = static_cast<const T*>(source);
            A* const a = static_cast<A*>(accumulators);
            for (int64_t i = 0; i < n; ++i) a[i] = Fold::template fold<kReduction>(a[i], x[i]);
          },
          [](void* accumulators, const void* others, int64_t n) {
            const A* const x = static_cast<const A*>(others);
            A* const a = static_cast<A*>(accumulators);
            for (int64_t i = 0; i < n; ++i) a[i] = Fold::template fold<kReduction>(a[i], x[i]);
          },
          [](void* accumulators, int64_t n) {
            std::fill_n(static_cast<A*>(accumulators), n, Fold::start(kReduction));
          },
          1};
}

template <class T>
ReduceLoops integer_loops_of(Reduction reduction) {
  using A =
      std::conditional_t<std::is_unsigned_v<T> && !std::is_same_v<T, bool>, uint64_t, int64_t>;
  switch (reduction) {
    case Reduction::kSum:
      return integer_loops<Reduction::kSum, T, A>();
    case Reduction::kProd:
      return integer_loops<Reduction::kProd, T, A>();
    case Reduction::kMax:
      return integer_loops<Reduction::kMax, T, A>();
    case Reduction::kMin:
      return integer_loops<Reduction::kMin, T, A>();
    case Reduction::kAll:
      return integer_loops<Reduction::kAll, T, A>();
    case Reduction::kAny:
      return integer_loops<Reduction::kAny, T, A>();
  }
  return {};
}

}  // namespace

ReduceLoops reduce_loops(Reduction reduction, DType compute) {
  if (compute == DType::kF32 || compute == DType::kF64) {
    ensure(reduction != Reduction::kAll && reduction != Reduction::kAny,
           "logical reductions convert floats to bool first");
    return HWY_DYNAMIC_DISPATCH(float_reduce_loops)(reduction, compute == DType::kF64);
  }
  return visit_dtype(compute, [&](auto tag) -> ReduceLoops {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) return integer_loops_of<T>(reduction);
    fail(ErrorCode::kInternal, "reduction in ", text(compute));
  });
}

DType accumulator_type(DType compute) {
  if (is_float(compute)) return DType::kF64;
  return info(compute).kind == DTypeKind::kUnsigned ? DType::kU64 : DType::kI64;
}

template <>
const RowLoops<float>& row_loops<float>() {
  static const RowLoops<float>& loops = *HWY_DYNAMIC_DISPATCH(row_loops_f32)();
  return loops;
}
template <>
const RowLoops<double>& row_loops<double>() {
  static const RowLoops<double>& loops = *HWY_DYNAMIC_DISPATCH(row_loops_f64)();
  return loops;
}

}  // namespace paddle::cpu
#endif
