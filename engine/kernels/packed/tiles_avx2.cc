// Products with packed panels on AVX2.

#include <immintrin.h>

#include "kernels/packed/tiles.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace paddle::cpu {
namespace {

struct V {
  static constexpr int kIntegerRows = 4, kWideRows = 2, kFloatRows = 4, kFloatGroups = 1;
  /// Pairs of products of unsigned bytes above 127 do not fit into 16 bits; such weights are
  /// multiplied as signed ones.
  static constexpr bool kSignsFullRange = true;
  struct Floats {
    __m256 low, high;
  };
  struct Ints {
    __m256i low, high;
  };
  struct Bytes {
    __m256i low, high;
  };

  static Floats set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Floats load(const float* x) { return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)}; }
  static __m256 widen(const bfloat16* x) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Floats load(const bfloat16* x) { return {widen(x), widen(x + 8)}; }
  static Floats load_half(const uint8_t* x) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 16)))};
  }
  static __m128i load_eight(const uint8_t* x) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  }
  static Floats load_u8(const uint8_t* x) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_eight(x))),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_eight(x + 8)))};
  }
  static Floats load_i8(const uint8_t* x) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_eight(x))),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_eight(x + 8)))};
  }
  static void store(float* to, Floats x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
  }
  static Floats add(Floats a, Floats b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Floats mul(Floats a, Floats b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Floats fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Ints set_int(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static Ints add_times_128(Ints a, Ints b) {
    return {_mm256_add_epi32(a.low, _mm256_slli_epi32(b.low, 7)),
            _mm256_add_epi32(a.high, _mm256_slli_epi32(b.high, 7))};
  }
  static Floats to_float(Ints x) { return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)}; }
  static Bytes load_bytes(const uint8_t* x) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 32))};
  }
  static Bytes low_nibbles(Bytes x) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(x.low, mask), _mm256_and_si256(x.high, mask)};
  }
  static Bytes high_nibbles(Bytes x) {
    return low_nibbles({_mm256_srli_epi16(x.low, 4), _mm256_srli_epi16(x.high, 4)});
  }
  template <bool kFullRange>
  static __m256i products(__m256i w, __m256i x) {
    if constexpr (kFullRange) {
      const __m256i sign = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
      return _mm256_maddubs_epi16(_mm256_abs_epi8(sign), _mm256_sign_epi8(x, sign));
    }
    return _mm256_maddubs_epi16(w, x);
  }
  template <bool kFullRange>
  static Ints dot(Ints sum, Bytes w, const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    const __m256i both = _mm256_set1_epi32(four), ones = _mm256_set1_epi16(1);
    const auto add = [&](__m256i s, __m256i part) {
      return _mm256_add_epi32(s, _mm256_madd_epi16(products<kFullRange>(part, both), ones));
    };
    return {add(sum.low, w.low), add(sum.high, w.high)};
  }
};

}  // namespace
}  // namespace paddle::cpu

#include "kernels/packed/tiles-inl.h"

namespace paddle::cpu {

const PackedLoops& packed_loops_avx2() {
  static constexpr PackedLoops kLoops = {"cpu:packed:avx2", multiply, quantize};
  return kLoops;
}

}  // namespace paddle::cpu

#pragma GCC pop_options
