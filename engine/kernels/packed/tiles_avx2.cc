// Products with packed panels on AVX2.

#include <immintrin.h>

#include "kernels/packed/tiles.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace paddle::cpu {
namespace {

struct V {
  static constexpr int kIntegerRows = 4, kWideRows = 2, kFloatRows = 4, kFloatGroups = 1;
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

  static Ints set_int(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  // Sums in assembly, so that the compiler does not add products to each other first, for which
  // there are too few registers.
  static void add_words(__m256i& sum, __m256i x) { asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(x)); }
  static void add_ints(__m256i& sum, __m256i x) { asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(x)); }
  static __m256i four_features(const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof four);
    return _mm256_set1_epi32(four);
  }

  /// How many products of four features 16 bits hold the sum of.
  template <int kMax>
  static constexpr int kRun = kMax > 127 ? 8 : 32767 / (2 * kMax * 127);
  /// Sums of kRun products, in 16 bits.
  template <int kMax>
  struct Products {
    __m256i low, high;
    void begin(const Ints& /*sum*/) { low = high = _mm256_setzero_si256(); }
    void add(const Bytes& w, const int8_t* x) {
      const __m256i both = four_features(x);
      add_words(low, _mm256_maddubs_epi16(w.low, both));
      add_words(high, _mm256_maddubs_epi16(w.high, both));
    }
    Ints end(Ints sum) const {
      const __m256i ones = _mm256_set1_epi16(1);
      add_ints(sum.low, _mm256_madd_epi16(low, ones));
      add_ints(sum.high, _mm256_madd_epi16(high, ones));
      return sum;
    }
  };
  /// Whether quants are multiplied without their offset.
  static constexpr bool drops_offset(int most) { return most > 127; }

  static float largest_magnitude(Floats a, Floats b) {
    // As integers, which are in the same order.
    const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
    const auto bits = [&](__m256 x) { return _mm256_and_si256(_mm256_castps_si256(x), mask); };
    const __m256i eight = _mm256_max_epi32(_mm256_max_epi32(bits(a.low), bits(a.high)),
                                           _mm256_max_epi32(bits(b.low), bits(b.high)));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xB1));
    return _mm_cvtss_f32(_mm_castsi128_ps(four));
  }
  static Ints to_integers(Floats x) {
    return {_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high)};
  }
  /// Rounded to the nearest.
  static Ints divide_by_128(Ints x) {
    const __m256i half = _mm256_set1_epi32(64);
    return {_mm256_srai_epi32(_mm256_add_epi32(x.low, half), 7),
            _mm256_srai_epi32(_mm256_add_epi32(x.high, half), 7)};
  }
  static Ints sub_times_128(Ints a, Ints b) {
    return {_mm256_sub_epi32(a.low, _mm256_slli_epi32(b.low, 7)),
            _mm256_sub_epi32(a.high, _mm256_slli_epi32(b.high, 7))};
  }
  static void store_bytes(int8_t* to, Ints x) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.low, x.high), 0xD8);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(to),
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }
  static int32_t sum(Ints x) {
    const __m256i eight = _mm256_add_epi32(x.low, x.high);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
  }
};

/// 16 bits hold a pair of these, and of signed bytes only: they are multiplied as weights.
template <>
struct V::Products<255> {
  Ints sums;
  void begin(const Ints& sum) { sums = sum; }
  void add(const Bytes& w, const int8_t* x) {
    const __m256i both = four_features(x);
    sums.low = _mm256_add_epi32(sums.low, products(w.low, both));
    sums.high = _mm256_add_epi32(sums.high, products(w.high, both));
  }
  static __m256i products(__m256i w, __m256i x) {
    const __m256i signs = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(signs), _mm256_sign_epi8(x, signs));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  Ints end(const Ints& /*sum*/) const { return sums; }
};

}  // namespace
}  // namespace paddle::cpu

#include "kernels/packed/tiles-inl.h"

namespace paddle::cpu {
namespace {

/// See widened_bytes.
struct WidenedGroup {
  int16_t* words;
  float *scales, *minimums;
};

/// Four features of 16 columns, less the offset, as two pairs.
void widen_four(V::Bytes quants, __m256i offset, int16_t* to) {
  const auto pair = [&](__m256i x, int first) {
    const auto at = [&](int column) { return static_cast<int>(column * 4 + first); };
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(static_cast<char>(at(0)), -1, static_cast<char>(at(0) + 1), -1,
                      static_cast<char>(at(1)), -1, static_cast<char>(at(1) + 1), -1,
                      static_cast<char>(at(2)), -1, static_cast<char>(at(2) + 1), -1,
                      static_cast<char>(at(3)), -1, static_cast<char>(at(3) + 1), -1));
    return _mm256_sub_epi16(_mm256_shuffle_epi8(x, order), offset);
  };
  const auto store = [](int16_t* place, __m256i x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(place), x);
  };
  store(to, pair(quants.low, 0));
  store(to + 16, pair(quants.high, 0));
  store(to + 32, pair(quants.low, 2));
  store(to + 48, pair(quants.high, 2));
}

void widen(const PanelLayout& layout, const uint8_t* at, const WidenedGroup& to) {
  const UnpackedFormat& format = *layout.packed;
  const PanelScales kind = format.scales;
  const __m256i offset = _mm256_set1_epi16(static_cast<int16_t>(format.offset));
  V::Floats super = V::set(0), super_minimum = super;
  float *scales = to.scales, *minimums = to.minimums;
  for (int64_t u = 0; u < layout.units(); ++u) {
    const bool has_super = kind == PanelScales::kSuper || kind == PanelScales::kSuper16;
    if (has_super && u % kUnitsOfSuper == 0) {
      super = V::load_half(at);
      if (kind == PanelScales::kSuper) super_minimum = V::load_half(at + 32);
      at += kind == PanelScales::kSuper ? 64 : 32;
    }
    if (kind == PanelScales::kSuper) {
      V::store(scales, V::mul(super, V::load_u8(at)));
      V::store(minimums, V::mul(super_minimum, V::load_u8(at + 16)));
    } else if (kind == PanelScales::kSuper16) {
      V::store(scales, V::mul(super, V::load_i8(at)));
      scales += kPanelColumns;
      V::store(scales, V::mul(super, V::load_i8(at + 16)));
    } else {
      V::store(scales, V::load_half(at));
      if (kind == PanelScales::kHalfMinimum) V::store(minimums, V::load_half(at + 32));
    }
    scales += kPanelColumns;
    minimums += kPanelColumns;
    at += kind == PanelScales::kHalfMinimum ? 64 : 32;
    int16_t* const words = to.words + u * kUnit * kPanelColumns;
    const bool nibbles = format.bits() == 4;
    for (int i = 0; i < (nibbles ? 4 : 8); ++i, at += 64) {
      const V::Bytes quants = V::load_bytes(at);
      widen_four(nibbles ? V::low_nibbles(quants) : quants, offset, words + i * 64);
      if (nibbles) widen_four(V::high_nibbles(quants), offset, words + (4 + i) * 64);
    }
  }
}

/// Rows of q8_0 weights as they are stored: a float16 scale and 32 signed bytes for each unit. They
/// are read once from memory however they are multiplied, so panels of them save no time.
struct StoredRows {
  static constexpr int64_t kBlock = 34;
  const uint8_t* at[8];
  const uint8_t* next;  ///< the rows after them

  /// Eight columns of the product from `column` on; the last valid one stands for those beyond.
  StoredRows(const TileProduct& p, int64_t column) {
    const auto* const rows = reinterpret_cast<const uint8_t*>(p.panels);
    for (int64_t c = 0; c < 8; ++c)
      at[c] = rows + std::min(column + c, p.columns - 1) * p.row_bytes;
    next = at[0] + 8 * p.row_bytes;
  }
  /// Sixteen weights of a row.
  __m256i words(int64_t row, int64_t unit, int64_t half) const {
    return _mm256_cvtepi8_epi16(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[row] + unit * kBlock + 2 + half * 16)));
  }
  __m256 scales(int64_t unit) const {
    const auto of = [&](int64_t row) {
      int16_t half;
      std::memcpy(&half, at[row] + unit * kBlock, sizeof half);
      return half;
    };
    return _mm256_cvtph_ps(_mm_setr_epi16(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)));
  }
  /// As many bytes as a unit of all rows has, in order: each row is too short for the prefetching
  /// of the hardware.
  void prefetch(int64_t unit) const {
    const uint8_t* const from = next + unit * 8 * kBlock;
    for (int64_t line = 0; line < 5; ++line) __builtin_prefetch(from + line * 64, 0, 2);
  }
};

/// Pairs of words of eight rows, so that equal pairs of all rows are neighbors.
void transpose_pairs(__m256i (&x)[8]) {
  __m256i two[8], four[8];
  for (int i = 0; i < 8; i += 2) {
    two[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
    two[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; ++k) {
      four[i + 2 * k] = _mm256_unpacklo_epi64(two[i + k], two[i + k + 2]);
      four[i + 2 * k + 1] = _mm256_unpackhi_epi64(two[i + k], two[i + k + 2]);
    }
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x20);
    x[i + 4] = _mm256_permute2x128_si256(four[i], four[i + 4], 0x31);
  }
}

void widen_rows(const TileProduct& p, int64_t group, const WidenedGroup& to) {
  for (int64_t eight = 0; eight < 2; ++eight) {
    const StoredRows rows(p, group * kPanelColumns + eight * 8);
    for (int64_t u = 0; u < p.layout->units(); ++u) {
      rows.prefetch(u);
      int16_t* const words = to.words + u * kUnit * kPanelColumns + eight * 16;
      for (int64_t half = 0; half < 2; ++half) {
        __m256i x[8];
        for (int64_t row = 0; row < 8; ++row) x[row] = rows.words(row, u, half);
        transpose_pairs(x);
        for (int64_t pair = 0; pair < 8; ++pair)
          _mm256_storeu_si256(
              reinterpret_cast<__m256i*>(words + (half * 8 + pair) * 2 * kPanelColumns), x[pair]);
      }
      _mm256_storeu_ps(to.scales + u * kPanelColumns + eight * 8, rows.scales(u));
    }
  }
}

/// The sums of the lanes of four vectors, each over half of the lanes.
__m256i half_sums(const __m256i (&x)[4]) {
  return _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
}

/// The products of kRows rows of x with eight stored rows.
template <int kRows>
void stored_tile(const TileProduct& p, const StoredRows& rows, int64_t row, __m256* out) {
  const int64_t units = p.layout->units(), features = p.layout->features;
  const int16_t* const words = p.quantized.words + row * features;
  const float* const row_scales = p.quantized.scales + row * units;
  __m256 acc[kRows];
  for (int r = 0; r < kRows; ++r) acc[r] = _mm256_setzero_ps();
  for (int64_t u = 0; u < units; ++u) {
    rows.prefetch(u);
    __m256i x[kRows][2], sums[kRows][2];
    for (int r = 0; r < kRows; ++r)
      for (int half = 0; half < 2; ++half)
        x[r][half] = _mm256_loadu_si256(
            reinterpret_cast<const __m256i*>(words + r * features + u * kUnit + half * 16));
#pragma GCC unroll 2
    for (int four = 0; four < 2; ++four) {
      __m256i products[kRows][4];
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const __m256i first = rows.words(four * 4 + c, u, 0),
                      second = rows.words(four * 4 + c, u, 1);
        for (int r = 0; r < kRows; ++r)
          products[r][c] = _mm256_add_epi32(_mm256_madd_epi16(first, x[r][0]),
                                            _mm256_madd_epi16(second, x[r][1]));
      }
      for (int r = 0; r < kRows; ++r) sums[r][four] = half_sums(products[r]);
    }
    const __m256 scales = rows.scales(u);
    for (int r = 0; r < kRows; ++r) {
      const __m256i sum = _mm256_add_epi32(_mm256_permute2x128_si256(sums[r][0], sums[r][1], 0x20),
                                           _mm256_permute2x128_si256(sums[r][0], sums[r][1], 0x31));
      acc[r] =
          _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum),
                          _mm256_mul_ps(scales, _mm256_set1_ps(row_scales[r * units + u])), acc[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) out[r] = acc[r];
}

template <int kRows>
void stored_rows(const TileProduct& p, int64_t group, int64_t& row) {
  for (; row + kRows <= p.rows; row += kRows) {
    __m256 out[2][kRows];
    for (int64_t eight = 0; eight < 2; ++eight)
      stored_tile<kRows>(p, StoredRows(p, group * kPanelColumns + eight * 8), row, out[eight]);
    for (int r = 0; r < kRows; ++r) store_columns(p, row + r, group, {out[0][r], out[1][r]});
  }
}

bool reads_rows(const UnpackedFormat& format) { return format.name == "q8_0"; }

void multiply_rows(const TileProduct& p) {
  for (int64_t group = 0; group < p.groups; ++group) {
    int64_t row = 0;
    stored_rows<2>(p, group, row);
    stored_rows<1>(p, group, row);
  }
}

/// The products of kRows rows with a widened group.
template <int kRows, bool kHalves, bool kMinimums>
void words_tile(const TileProduct& p, const WidenedGroup& w, int64_t row, V::Floats* out) {
  const int64_t units = p.layout->units();
  const int16_t* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = p.quantized.words + (row + r) * p.layout->features;
  const float* const row_scales = p.quantized.scales + row * units;
  const float* const totals = p.quantized.totals + row * units;
  const int16_t* words = w.words;
  const float* scales = w.scales;
  V::Floats acc[kRows];
  for (int r = 0; r < kRows; ++r) acc[r] = V::set(0);
  for (int64_t u = 0; u < units; ++u) {
    for (int half = 0; half < (kHalves ? 2 : 1); ++half) {
      constexpr int kPairs = kUnit / (kHalves ? 4 : 2);
      V::Ints sum[kRows];
      for (int r = 0; r < kRows; ++r) sum[r] = V::set_int(0);
#pragma GCC unroll 16
      for (int i = 0; i < kPairs; ++i) {
        const auto* const at = reinterpret_cast<const __m256i*>(words + i * 2 * kPanelColumns);
        const __m256i low = _mm256_loadu_si256(at), high = _mm256_loadu_si256(at + 1);
        for (int r = 0; r < kRows; ++r) {
          int32_t two;
          std::memcpy(&two, x[r] + i * 2, sizeof two);
          const __m256i both = _mm256_set1_epi32(two);
          V::add_ints(sum[r].low, _mm256_madd_epi16(low, both));
          V::add_ints(sum[r].high, _mm256_madd_epi16(high, both));
        }
      }
      const V::Floats scale = V::load(scales);
      for (int r = 0; r < kRows; ++r) {
        acc[r] =
            V::fma(V::to_float(sum[r]), V::mul(scale, V::set(row_scales[r * units + u])), acc[r]);
        x[r] += 2 * kPairs;
      }
      words += kPairs * 2 * kPanelColumns;
      scales += kPanelColumns;
    }
    if constexpr (kMinimums) {
      const V::Floats minimum = V::load(w.minimums + u * kPanelColumns);
      for (int r = 0; r < kRows; ++r)
        acc[r] = V::fma(minimum, V::set(totals[r * units + u]), acc[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) out[r] = acc[r];
}

template <int kRows, bool kHalves, bool kMinimums>
void words_rows(const TileProduct& p, const WidenedGroup& w, int64_t group, int64_t& row) {
  for (; row + kRows <= p.rows; row += kRows) {
    V::Floats out[kRows];
    words_tile<kRows, kHalves, kMinimums>(p, w, row, out);
    for (int r = 0; r < kRows; ++r) store_columns(p, row + r, group, out[r]);
  }
}

template <bool kHalves, bool kMinimums>
void multiply_widened(const TileProduct& p, const WidenedGroup& w) {
  for (int64_t g = 0; g < p.groups; ++g) {
    if (p.row_bytes > 0)
      widen_rows(p, g, w);
    else
      widen(*p.layout,
            reinterpret_cast<const uint8_t*>(p.panels) +
                static_cast<size_t>(g) * p.layout->group_bytes,
            w);
    int64_t row = 0;
    words_rows<4, kHalves, kMinimums>(p, w, g, row);
    words_rows<2, kHalves, kMinimums>(p, w, g, row);
    words_rows<1, kHalves, kMinimums>(p, w, g, row);
  }
}

/// vpmaddwd multiplies twice as many numbers as an addition of floats, and needs no high and low
/// bytes; widening takes about the time of two rows.
void multiply_words(const TileProduct& p, std::byte* scratch) {
  const PanelLayout& layout = *p.layout;
  WidenedGroup w{};
  w.words = reinterpret_cast<int16_t*>(scratch);
  w.scales = reinterpret_cast<float*>(w.words + layout.features * kPanelColumns);
  w.minimums = w.scales + 2 * layout.units() * kPanelColumns;
  switch (layout.packed->scales) {
    case PanelScales::kHalf:
      return multiply_widened<false, false>(p, w);
    case PanelScales::kSuper16:
      return multiply_widened<true, false>(p, w);
    case PanelScales::kHalfMinimum:
    case PanelScales::kSuper:
      return multiply_widened<false, true>(p, w);
  }
}

}  // namespace

const PackedLoops& packed_loops_avx2() {
  static constexpr PackedLoops kLoops = {"cpu:packed:avx2", multiply,      multiply_words,
                                         reads_rows,        multiply_rows, quantize};
  return kLoops;
}

}  // namespace paddle::cpu

#pragma GCC pop_options
