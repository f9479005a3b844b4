// Products with packed panels on AVX-512 with VNNI.

// GCC 12 takes the undefined operands of its own intrinsics for uninitialized variables.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include "kernels/packed/tiles.h"

#pragma GCC push_options
#pragma GCC target( \
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c,prefer-vector-width=512")

namespace paddle::cpu {
namespace {

struct V {
  static constexpr int kIntegerRows = 12, kWideRows = 8, kFloatRows = 12, kFloatGroups = 2;
  using Floats = __m512;
  using Ints = __m512i;
  using Bytes = __m512i;

  static Floats set(float x) { return _mm512_set1_ps(x); }
  static Floats load(const float* x) { return _mm512_loadu_ps(x); }
  static Floats load(const bfloat16* x) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Floats load_half(const uint8_t* x) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  static __m128i load_sixteen(const uint8_t* x) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  }
  static Floats load_u8(const uint8_t* x) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_sixteen(x)));
  }
  static Floats load_i8(const uint8_t* x) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_sixteen(x)));
  }
  static void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Ints add_times_128(Ints a, Ints b) { return _mm512_add_epi32(a, _mm512_slli_epi32(b, 7)); }
  static Floats to_float(Ints x) { return _mm512_cvtepi32_ps(x); }
  static Bytes load_bytes(const uint8_t* x) { return _mm512_loadu_si512(x); }
  static Bytes low_nibbles(Bytes x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
  static Bytes high_nibbles(Bytes x) { return low_nibbles(_mm512_srli_epi16(x, 4)); }

  static Ints set_int(int32_t x) { return _mm512_set1_epi32(x); }
  template <int kMax>
  static constexpr int kRun = 8;
  /// Sums of kRun products of four features.
  template <int kMax>
  struct Products {
    Ints sums;
    void begin(Ints sum) { sums = sum; }
    void add(Bytes w, const int8_t* x) {
      int32_t four;
      std::memcpy(&four, x, sizeof four);
      sums = _mm512_dpbusd_epi32(sums, w, _mm512_set1_epi32(four));
    }
    Ints end(Ints /*sum*/) const { return sums; }
  };
  static constexpr bool drops_offset(int /*most*/) { return false; }

  static float largest_magnitude(Floats a, Floats b) {
    // As integers, which are in the same order.
    const __m512i mask = _mm512_set1_epi32(0x7FFFFFFF);
    const __m512i bits = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a), mask),
                                          _mm512_and_si512(_mm512_castps_si512(b), mask));
    const int32_t most = _mm512_reduce_max_epi32(bits);
    float out;
    std::memcpy(&out, &most, sizeof out);
    return out;
  }
  static Ints to_integers(Floats x) { return _mm512_cvtps_epi32(x); }
  /// Rounded to the nearest.
  static Ints divide_by_128(Ints x) {
    return _mm512_srai_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(64)), 7);
  }
  static Ints sub_times_128(Ints a, Ints b) { return _mm512_sub_epi32(a, _mm512_slli_epi32(b, 7)); }
  static void store_bytes(int8_t* to, Ints x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtsepi32_epi8(x));
  }
  static int32_t sum(Ints x) { return _mm512_reduce_add_epi32(x); }
};

}  // namespace
}  // namespace paddle::cpu

#include "kernels/packed/tiles-inl.h"

namespace paddle::cpu {

const PackedLoops& packed_loops_vnni() {
  static constexpr PackedLoops kLoops = {
      "cpu:packed:avx512_vnni", multiply, nullptr, nullptr, nullptr, quantize};
  return kLoops;
}

}  // namespace paddle::cpu

#pragma GCC pop_options
