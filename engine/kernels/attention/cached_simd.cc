// Vector loops of attention to cached keys and values.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/cached_simd.cc"
#include "hwy/foreach_target.h"

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"

#include "kernels/attention/cached_simd.h"
#include "ops/generation/packed_format.h"

HWY_BEFORE_NAMESPACE();
namespace paddle::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kKeyBlock>;
using Vector = hn::Vec<D>;

int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
/// Vectors of a block of keys.
constexpr int64_t kVectors = kKeyBlock / static_cast<int64_t>(hn::MaxLanes(D()));

HWY_INLINE Vector load(const float* x) { return hn::LoadU(D(), x); }
HWY_INLINE Vector load(const bfloat16* x) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::RebindToUnsigned<D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(x));
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
HWY_INLINE Vector load(const int8_t* x) {
  const hn::Rebind<int8_t, D> narrow;
  const hn::RebindToSigned<D> wide;
  return hn::ConvertTo(D(), hn::PromoteTo(wide, hn::LoadU(narrow, x)));
}

template <class T, int kRows>
void score_rows(const CachedScores& t, int64_t first) {
  const D d;
  for (int64_t b = 0; b < t.blocks; ++b) {
    const int64_t block = t.table ? t.table[b] : b;
    const T* const keys = reinterpret_cast<const T*>(t.keys + block * t.block_bytes);
    Vector sum[kRows][kVectors];
    for (int r = 0; r < kRows; ++r)
      for (int64_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    for (int64_t i = 0; i < t.width; ++i) {
      Vector key[kVectors];
      for (int64_t v = 0; v < kVectors; ++v) key[v] = load(keys + i * kKeyBlock + v * lanes());
      for (int r = 0; r < kRows; ++r) {
        const Vector q = hn::Set(d, t.query[first + r][i]);
        for (int64_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(q, key[v], sum[r][v]);
      }
    }
    for (int64_t v = 0; v < kVectors; ++v) {
      auto factor = hn::Set(d, t.scale);
      if constexpr (sizeof(T) == 1) {
        float scales[kKeyBlock];
        std::memcpy(scales, keys + t.width * kKeyBlock, sizeof scales);
        factor = hn::Mul(factor, hn::LoadU(d, scales + v * lanes()));
      }
      for (int r = 0; r < kRows; ++r)
        hn::StoreU(hn::Mul(sum[r][v], factor), d,
                   t.scores + (first + r) * t.pitch + b * kKeyBlock + v * lanes());
    }
  }
}

template <class T>
void scores(const CachedScores& t) {
  static_assert(kCachedRows == 4);
  switch (t.rows) {
    case 1:
      return score_rows<T, 1>(t, 0);
    case 2:
      return score_rows<T, 2>(t, 0);
    case 3:
      return score_rows<T, 3>(t, 0);
    default:
      return score_rows<T, 4>(t, 0);
  }
}

/// Calls body(key, value) for all keys in their order.
template <class T, class Body>
HWY_INLINE void for_each_value(const CachedSum& t, Body body) {
  for (int64_t first = 0; first < t.keys; first += kKeyBlock) {
    const int64_t block = t.table ? t.table[first / kKeyBlock] : first / kKeyBlock;
    const std::byte* value = t.values + block * kKeyBlock * t.slot_bytes;
    const int64_t last = std::min(t.keys, first + kKeyBlock);
    for (int64_t k = first; k < last; ++k, value += t.slot_bytes)
      body(k, reinterpret_cast<const T*>(value));
  }
}

template <class T>
HWY_INLINE float weight_of(const CachedSum& t, int64_t row, int64_t key, const T* value) {
  float weight = t.weights[row * t.pitch + key];
  if constexpr (sizeof(T) == 1) {
    float scale;
    std::memcpy(&scale, value + t.width, sizeof scale);
    weight *= scale;
  }
  return weight;
}

/// kColumns vectors of the results, from column `begin` on.
template <class T, int kRows, int kColumns>
HWY_INLINE void sum_columns(const CachedSum& t, int64_t begin) {
  const D d;
  Vector sum[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) sum[r][c] = hn::Zero(d);
  for_each_value<T>(t, [&](int64_t k, const T* value) HWY_ATTR {
    Vector v[kColumns];
    for (int c = 0; c < kColumns; ++c) v[c] = load(value + begin + c * lanes());
    for (int r = 0; r < kRows; ++r) {
      const Vector w = hn::Set(d, weight_of(t, r, k, value));
      for (int c = 0; c < kColumns; ++c) sum[r][c] = hn::MulAdd(w, v[c], sum[r][c]);
    }
  });
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c)
      hn::StoreU(sum[r][c], d, t.out + r * t.width + begin + c * lanes());
}

template <class T, int kRows>
void sum_rows(const CachedSum& t) {
  int64_t column = 0;
  for (; column + 4 * lanes() <= t.width; column += 4 * lanes())
    sum_columns<T, kRows, 4>(t, column);
  for (; column + lanes() <= t.width; column += lanes()) sum_columns<T, kRows, 1>(t, column);
  for (; column < t.width; ++column)
    for (int r = 0; r < kRows; ++r) {
      float sum = 0;
      for_each_value<T>(t, [&](int64_t k, const T* value) HWY_ATTR {
        sum += weight_of(t, r, k, value) * static_cast<float>(value[column]);
      });
      t.out[r * t.width + column] = sum;
    }
}

template <class T>
void sum(const CachedSum& t) {
  switch (t.rows) {
    case 1:
      return sum_rows<T, 1>(t);
    case 2:
      return sum_rows<T, 2>(t);
    case 3:
      return sum_rows<T, 3>(t);
    default:
      return sum_rows<T, 4>(t);
  }
}

}  // namespace

CachedLoops loops_of_target(DType cache) {
  if (cache == DType::kBF16) return {&scores<bfloat16>, &sum<bfloat16>};
  if (cache == DType::kI8) return {&scores<int8_t>, &sum<int8_t>};
  return {&scores<float>, &sum<float>};
}

}  // namespace paddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paddle::cpu {

HWY_EXPORT(loops_of_target);

CachedLoops cached_loops(DType cache) { return HWY_DYNAMIC_DISPATCH(loops_of_target)(cache); }

}  // namespace paddle::cpu
#endif
