// Vector loops of the int16 GEMM.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantized/int16_gemm_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"

#include "kernels/quantized/int16_gemm_simd.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Sums = hn::ScalableTag<int32_t>;
using Floats = hn::RebindToFloat<Sums>;
using Wide = hn::ScalableTag<int16_t>;

// Rows whose accumulators (two vectors each) stay in registers.
constexpr int kRows = 6;

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(Sums())); }

#if HWY_TARGET == HWY_SCALAR

template <int kBlockRows>
void tile_of(const int16_t* x, int64_t pitch, const int8_t* panel, int64_t pairs,
             const int32_t* begin, int64_t begin_pitch, int32_t* sums, int64_t sums_pitch) {
  for (int64_t r = 0; r < kBlockRows; ++r)
    for (int64_t c = 0; c < 2 * lanes(); ++c) {
      int32_t sum = begin[r * begin_pitch + c];
      for (int64_t p = 0; p < pairs; ++p)
        for (int64_t k = 0; k < 2; ++k)
          sum += x[r * pitch + 2 * p + k] * panel[(p * 2 * lanes() + c) * 2 + k];
      sums[r * sums_pitch + c] = sum;
    }
}

#else

using Pairs = hn::RepartitionToNarrow<Sums>;

template <int kBlockRows>
void tile_of(const int16_t* x, int64_t pitch, const int8_t* panel, int64_t pairs,
             const int32_t* begin, int64_t begin_pitch, int32_t* sums, int64_t sums_pitch) {
  const Sums d;
  const Pairs narrow;
  const hn::Rebind<int8_t, Pairs> bytes;
  hn::Vec<Sums> sum[kBlockRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kBlockRows; ++r) {
    sum[r][0] = hn::LoadU(d, begin + r * begin_pitch);
    sum[r][1] = hn::LoadU(d, begin + r * begin_pitch + lanes());
  }
  auto unused = hn::Zero(d);  // second accumulator of targets that add pairs in two halves
  for (int64_t p = 0; p < pairs; ++p, panel += 4 * lanes()) {
    const auto left = hn::PromoteTo(narrow, hn::LoadU(bytes, panel));
    const auto right = hn::PromoteTo(narrow, hn::LoadU(bytes, panel + 2 * lanes()));
#pragma GCC unroll 6
    for (int r = 0; r < kBlockRows; ++r) {
      int32_t pair;
      std::memcpy(&pair, x + r * pitch + 2 * p, sizeof(pair));
      const auto both = hn::BitCast(narrow, hn::Set(d, pair));
      sum[r][0] = hn::ReorderWidenMulAccumulate(d, both, left, sum[r][0], unused);
      sum[r][1] = hn::ReorderWidenMulAccumulate(d, both, right, sum[r][1], unused);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kBlockRows; ++r) {
    hn::StoreU(sum[r][0], d, sums + r * sums_pitch);
    hn::StoreU(sum[r][1], d, sums + r * sums_pitch + lanes());
  }
}

#endif

/// functions[i] is made for i + 1 rows.
template <size_t... kIndex>
constexpr auto tile_functions(std::index_sequence<kIndex...>) {
  return std::array{&tile_of<static_cast<int>(kIndex) + 1>...};
}

void tile(const int16_t* x, int64_t pitch, int64_t rows, const int8_t* panel, int64_t pairs,
          const int32_t* begin, int64_t begin_pitch, int32_t* sums, int64_t sums_pitch) {
  static constexpr auto functions =
      tile_functions(std::make_index_sequence<static_cast<size_t>(kRows)>());
  functions[static_cast<size_t>(rows - 1)](x, pitch, panel, pairs, begin, begin_pitch, sums,
                                           sums_pitch);
}

template <class T>
void load_centered(const T* x, int64_t n, int16_t zero, int16_t* to) {
  const Wide d;
  const hn::Rebind<T, Wide> from;
  const auto origin = hn::Set(d, zero);
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  if (n < step) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int16_t>(x[i] - zero);
    return;
  }
  // The last vector overlaps the one before it.
  for (int64_t i = 0; i < n; i += step) {
    const int64_t at = std::min(i, n - step);
    hn::StoreU(hn::Sub(hn::PromoteTo(d, hn::LoadU(from, x + at)), origin), d, to + at);
  }
}

/// Loads bytes or floats as a vector of floats.
template <class T>
HWY_INLINE auto load_as_float(const T* x) {
  const Floats d;
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(d, x);
  } else {
    const hn::Rebind<T, Floats> from;
    return hn::ConvertTo(d, hn::PromoteTo(Sums(), hn::LoadU(from, x)));
  }
}

/// Quantizes x without the zero point and without rounding; bounds are integers, so clamping first
/// is the same. NaN becomes the minimum.
template <class V>
HWY_INLINE V to_grid(V x, const IntegerGrid& s) {
  const Floats d;
  const auto min = hn::Set(d, s.min);
  const auto v = hn::Mul(x, hn::Set(d, s.inverse));
  return hn::Min(hn::IfThenElse(hn::Gt(v, min), v, min), hn::Set(d, s.max));
}

/// Stores x, rounded half to even, plus `zero`, which is an integer in the range of T.
template <class V, class T>
HWY_INLINE void store_integers(V x, int32_t zero, T* to) {
  const Floats d;
  const Sums integers;
  // Floats of this magnitude have no fraction bits, and hold an integer in their lowest bits.
  const auto large = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const auto origin = hn::Sub(hn::BitCast(integers, large), hn::Set(integers, zero));
  const auto rounded = hn::Sub(hn::BitCast(integers, hn::Add(x, large)), origin);
  const hn::Rebind<T, Floats> narrow;
  hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, to);
}

/// One vector; `Residual` is void if there is none.
template <class Residual, class T>
HWY_INLINE void requantize_vector(const int32_t* sums, const float* scale, const float* bias,
                                  const Residual* residual, const RequantizeParams& f, T* to) {
  const Floats d;
  auto v = hn::Mul(hn::ConvertTo(d, hn::LoadU(Sums(), sums)), hn::LoadU(d, scale));
  if (bias) v = hn::Add(v, hn::LoadU(d, bias));
  if (f.step.scale > 0) v = hn::Mul(hn::Round(to_grid(v, f.step)), hn::Set(d, f.step.scale));
  if constexpr (!std::is_void_v<Residual>)
    v = hn::MulAdd(load_as_float(residual), hn::Set(d, f.residual_scale),
                   hn::Add(v, hn::Set(d, f.residual_shift)));
  if constexpr (std::is_same_v<T, float>) {
    if (f.bounded) {
      const auto low = hn::Set(d, f.low), high = hn::Set(d, f.high);
      v = hn::IfThenElse(hn::Lt(v, low), low, v);  // NaN stays
      v = hn::IfThenElse(hn::Gt(v, high), high, v);
    }
    hn::StoreU(v, d, to);
  } else {
    store_integers(to_grid(v, f.out), f.out_zero, to);
  }
}

template <class Residual, class T>
void requantize(const AccumulatorTile& tile, const RequantizeParams& requantize, const float* scale,
                const float* bias, const void* residual, void* to) {
  using Item = std::conditional_t<std::is_void_v<Residual>, char, Residual>;
  const RequantizeParams f = requantize;  // a copy that results, whatever their type, cannot alias
  const auto one = [&f](const int32_t* s, const float* factor, const float* shift, const Item* r,
                        T* y) {
    if constexpr (std::is_void_v<Residual>)
      requantize_vector<void>(s, factor, shift, nullptr, f, y);
    else
      requantize_vector(s, factor, shift, r, f, y);
  };
  const int64_t n = tile.columns, full = n / lanes() * lanes();
  constexpr size_t kLanes = hn::MaxLanes(Sums());
  const size_t tail = std::min(kLanes, static_cast<size_t>(n - full));
  int32_t tail_sums[kLanes] = {};
  float scales[kLanes] = {}, biases[kLanes] = {};
  Item items[kLanes] = {};
  T results[kLanes];
  std::copy_n(scale + full, tail, scales);
  if (bias) std::copy_n(bias + full, tail, biases);
  for (int64_t row = 0; row < tile.rows; ++row) {
    const int32_t* const sums = tile.sums + row * tile.sums_pitch;
    const auto* const added =
        static_cast<const Item*>(residual) + (residual ? row * tile.pitch : 0);
    T* const out = static_cast<T*>(to) + row * tile.pitch;
    for (int64_t i = 0; i < full; i += lanes())
      one(sums + i, scale + i, bias ? bias + i : nullptr, added + (residual ? i : 0), out + i);
    if (tail == 0) continue;
    std::copy_n(sums + full, tail, tail_sums);
    if (residual) std::copy_n(added + full, tail, items);
    one(tail_sums, scales, bias ? biases : nullptr, items, results);
    std::copy_n(results, tail, out + full);
  }
}

template <class T>
constexpr std::array<RequantizeLoop, 4> requantize_loops() {
  return {requantize<void, T>, requantize<uint8_t, T>, requantize<int8_t, T>, requantize<float, T>};
}

}  // namespace

const Int16GemmLoops* int16_gemm_loops_of_target() {
  static const Int16GemmLoops loops = {
      .columns = 2 * lanes(),
      .rows = kRows,
      .tile = tile,
      .widen_u8 = load_centered<uint8_t>,
      .widen_i8 = load_centered<int8_t>,
      .to_u8 = requantize_loops<uint8_t>(),
      .to_i8 = requantize_loops<int8_t>(),
      .to_f32 = requantize_loops<float>(),
  };
  return &loops;
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(int16_gemm_loops_of_target);

const Int16GemmLoops& int16_gemm_loops() {
  return *HWY_DYNAMIC_DISPATCH(int16_gemm_loops_of_target)();
}

}  // namespace paddle::cpu
#endif
