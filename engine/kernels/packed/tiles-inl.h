// Products of rows with panels, over the vectors V of an instruction set: 16 floats, 16 int32 sums,
// or 64 bytes. The sums of a row are made in the same order whatever rows are beside it. Included
// once in each of the files that define V.

namespace paddle::cpu {
namespace {

/// The products of kRows rows with one group of integer panels.
template <PanelScales kScales, int kBits, bool kFullRange, bool kWide, int kRows>
void integer_tile(const TileProduct& p, const uint8_t* at, int64_t row, V::Floats* out) {
  const int64_t units = p.layout->units();
  const QuantizedRows& x = p.quantized;
  const int8_t* values[kRows];
  for (int r = 0; r < kRows; ++r) values[r] = x.values + (row + r) * p.layout->features;
  [[maybe_unused]] const ptrdiff_t low = kWide ? x.low - x.values : 0;
  const float* const row_scales = x.scales + row * units;
  const float* const totals = x.totals + row * units;
  const int32_t* const sums = x.sums + row * units * 2;
  const int32_t offset = kFullRange && V::kSignsFullRange ? 0 : p.layout->packed->offset;
  V::Floats acc[kRows];
  for (int r = 0; r < kRows; ++r) acc[r] = V::set(0);
  [[maybe_unused]] V::Floats super = V::set(0), super_minimum = super;
  for (int64_t u = 0; u < units; ++u) {
    if constexpr (kScales == PanelScales::kSuper || kScales == PanelScales::kSuper16)
      if (u % kUnitsOfSuper == 0) {
        super = V::load_half(at);
        if constexpr (kScales == PanelScales::kSuper) super_minimum = V::load_half(at + 32);
        at += kScales == PanelScales::kSuper ? 64 : 32;
      }
    const uint8_t* const quants = at + (kScales == PanelScales::kHalfMinimum ? 64 : 32);
    constexpr int kHalves = kScales == PanelScales::kSuper16 ? 2 : 1;
    for (int half = 0; half < kHalves; ++half) {
      V::Ints sum[kRows];
      [[maybe_unused]] V::Ints high[kRows];  // products with the high bytes of 16 bits
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kWide) high[r] = V::set_int(0);
        const int32_t* const s = sums + (r * units + u) * 2;
        sum[r] = V::set_int(-offset * (kHalves == 2 ? s[half] : s[0] + s[1]));
      }
      if constexpr (kBits == 8) {
#pragma GCC unroll 8
        for (int g = 0; g < 8 / kHalves; ++g) {
          const int at_group = half * 4 + g;
          const V::Bytes w = V::load_bytes(quants + at_group * 64);
          for (int r = 0; r < kRows; ++r) {
            const int8_t* const four = values[r] + at_group * 4;
            if constexpr (kWide) high[r] = V::dot<kFullRange>(high[r], w, four);
            sum[r] = V::dot<kFullRange>(sum[r], w, four + low);
          }
        }
      } else {
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) {
          const V::Bytes w = V::load_bytes(quants + g * 64);
          const V::Bytes parts[2] = {V::low_nibbles(w), V::high_nibbles(w)};
#pragma GCC unroll 2
          for (int part = 0; part < 2; ++part)
            for (int r = 0; r < kRows; ++r) {
              const int8_t* const four = values[r] + part * 16 + g * 4;
              if constexpr (kWide) high[r] = V::dot<false>(high[r], parts[part], four);
              sum[r] = V::dot<false>(sum[r], parts[part], four + low);
            }
        }
      }
      if constexpr (kWide)
        for (int r = 0; r < kRows; ++r) sum[r] = V::add_times_128(sum[r], high[r]);
      V::Floats scale;
      if constexpr (kScales == PanelScales::kSuper)
        scale = V::mul(super, V::load_u8(at));
      else if constexpr (kScales == PanelScales::kSuper16)
        scale = V::mul(super, V::load_i8(at + half * 16));
      else
        scale = V::load_half(at);
      for (int r = 0; r < kRows; ++r)
        acc[r] =
            V::fma(V::to_float(sum[r]), V::mul(scale, V::set(row_scales[r * units + u])), acc[r]);
    }
    if constexpr (kScales == PanelScales::kHalfMinimum || kScales == PanelScales::kSuper) {
      V::Floats minimum;
      if constexpr (kScales == PanelScales::kSuper)
        minimum = V::mul(super_minimum, V::load_u8(at + 16));
      else
        minimum = V::load_half(at + 32);
      for (int r = 0; r < kRows; ++r)
        acc[r] = V::fma(minimum, V::set(totals[r * units + u]), acc[r]);
    }
    for (int r = 0; r < kRows; ++r) values[r] += kUnit;
    at = quants + kPanelColumns * kUnit * kBits / 8;
  }
  for (int r = 0; r < kRows; ++r) out[r] = acc[r];
}

/// The products of kRows rows with kGroups groups of float panels, [kRows][kGroups].
template <class T, int kRows, int kGroups>
void float_tile(const TileProduct& p, const std::byte* panels, int64_t row, V::Floats* out) {
  const int64_t features = p.layout->features;
  const T* w[kGroups];
  for (int g = 0; g < kGroups; ++g)
    w[g] = reinterpret_cast<const T*>(panels + static_cast<size_t>(g) * p.layout->group_bytes);
  const float* const x = p.x + row * features;
  V::Floats acc[kRows][kGroups];
  for (int r = 0; r < kRows; ++r)
    for (int g = 0; g < kGroups; ++g) acc[r][g] = V::set(0);
  for (int64_t i = 0; i < features; ++i) {
    V::Floats right[kGroups];
    for (int g = 0; g < kGroups; ++g) right[g] = V::load(w[g] + i * kPanelColumns);
    for (int r = 0; r < kRows; ++r) {
      const V::Floats left = V::set(x[r * features + i]);
      for (int g = 0; g < kGroups; ++g) acc[r][g] = V::fma(left, right[g], acc[r][g]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int g = 0; g < kGroups; ++g) out[r * kGroups + g] = acc[r][g];
}

/// Adds the bias and stores the valid columns of one row and group.
inline void store_columns(const TileProduct& p, int64_t row, int64_t group, V::Floats value) {
  const int64_t column = group * kPanelColumns;
  float* const out = p.out + row * p.pitch + column;
  if (p.columns - column >= kPanelColumns) {
    V::store(out, p.bias ? V::add(value, V::load(p.bias + column)) : value);
    return;
  }
  float values[kPanelColumns];
  V::store(values, value);
  for (int64_t c = 0; column + c < p.columns; ++c)
    out[c] = values[c] + (p.bias ? p.bias[column + c] : 0);
}

template <PanelScales kScales, int kBits, bool kFullRange, bool kWide, int kRows>
void integer_rows(const TileProduct& p, const uint8_t* panel, int64_t group, int64_t& row) {
  for (; row + kRows <= p.rows; row += kRows) {
    V::Floats out[kRows];
    integer_tile<kScales, kBits, kFullRange, kWide, kRows>(p, panel, row, out);
    for (int r = 0; r < kRows; ++r) store_columns(p, row + r, group, out[r]);
  }
}

template <PanelScales kScales, int kBits, bool kFullRange, bool kWide>
void multiply_groups(const TileProduct& p) {
  for (int64_t g = 0; g < p.groups; ++g) {
    const auto* const panel =
        reinterpret_cast<const uint8_t*>(p.panels + static_cast<size_t>(g) * p.layout->group_bytes);
    int64_t row = 0;
    constexpr int kMost = kWide ? V::kWideRows : V::kIntegerRows;
    integer_rows<kScales, kBits, kFullRange, kWide, kMost>(p, panel, g, row);
    if constexpr (kMost > 4) integer_rows<kScales, kBits, kFullRange, kWide, 4>(p, panel, g, row);
    if constexpr (kMost > 2) integer_rows<kScales, kBits, kFullRange, kWide, 2>(p, panel, g, row);
    integer_rows<kScales, kBits, kFullRange, kWide, 1>(p, panel, g, row);
  }
}

template <PanelScales kScales, int kBits, bool kFullRange>
void multiply_integers(const TileProduct& p) {
  if (p.quantized.low)
    multiply_groups<kScales, kBits, kFullRange, true>(p);
  else
    multiply_groups<kScales, kBits, kFullRange, false>(p);
}

template <class T, int kRows, int kGroups>
void float_rows(const TileProduct& p, const std::byte* panels, int64_t group, int64_t& row) {
  for (; row + kRows <= p.rows; row += kRows) {
    V::Floats out[kRows * kGroups];
    float_tile<T, kRows, kGroups>(p, panels, row, out);
    for (int r = 0; r < kRows; ++r)
      for (int g = 0; g < kGroups; ++g) store_columns(p, row + r, group + g, out[r * kGroups + g]);
  }
}

template <class T, int kGroups>
void float_groups(const TileProduct& p, int64_t group) {
  const std::byte* const panels = p.panels + static_cast<size_t>(group) * p.layout->group_bytes;
  int64_t row = 0;
  float_rows<T, V::kFloatRows, kGroups>(p, panels, group, row);
  float_rows<T, 4, kGroups>(p, panels, group, row);
  float_rows<T, 1, kGroups>(p, panels, group, row);
}

template <class T>
void multiply_floats(const TileProduct& p) {
  int64_t group = 0;
  for (; group + V::kFloatGroups <= p.groups; group += V::kFloatGroups)
    float_groups<T, V::kFloatGroups>(p, group);
  for (; group < p.groups; ++group) float_groups<T, 1>(p, group);
}

void multiply(const TileProduct& p) {
  const UnpackedFormat* const format = p.layout->packed;
  if (!format)
    return p.layout->floats == DType::kBF16 ? multiply_floats<bfloat16>(p)
                                            : multiply_floats<float>(p);
  const bool nibbles = format->bits == 4;
  switch (format->scales) {
    case PanelScales::kHalf:
      if (nibbles) return multiply_integers<PanelScales::kHalf, 4, false>(p);
      return format->offset == 128 ? multiply_integers<PanelScales::kHalf, 8, true>(p)
                                   : multiply_integers<PanelScales::kHalf, 8, false>(p);
    case PanelScales::kHalfMinimum:
      return nibbles ? multiply_integers<PanelScales::kHalfMinimum, 4, false>(p)
                     : multiply_integers<PanelScales::kHalfMinimum, 8, false>(p);
    case PanelScales::kSuper:
      return nibbles ? multiply_integers<PanelScales::kSuper, 4, false>(p)
                     : multiply_integers<PanelScales::kSuper, 8, false>(p);
    case PanelScales::kSuper16:
      return multiply_integers<PanelScales::kSuper16, 8, false>(p);
  }
}

/// Each unit is scaled so that its largest value becomes 127, or 127 * 128 in 16 bits. A value that
/// is not finite makes the scale NaN.
void quantize(const float* x, int64_t units, int8_t* values, int8_t* low, float* scales,
              int32_t* sums, float* totals) {
  const float limit = low ? 127.0F * 128.0F : 127.0F;
  for (int64_t u = 0; u < units; ++u, x += kUnit, values += kUnit) {
    float largest[16], finite[16];
    for (int i = 0; i < 16; ++i) {
      const float a = x[i] < 0 ? -x[i] : x[i], b = x[i + 16] < 0 ? -x[i + 16] : x[i + 16];
      largest[i] = a > b ? a : b;
      finite[i] = x[i] * 0.0F + x[i + 16] * 0.0F;
    }
    float top = 0, probe = 0;
    for (int i = 0; i < 16; ++i) {
      top = largest[i] > top ? largest[i] : top;
      probe += finite[i];
    }
    // Below the first, the scale or its inverse would not be normal numbers.
    const float scale = top > 1e-30F ? top / limit : 0.0F,
                inverse = top > 1e-30F ? limit / top : 0.0F;
    // Adding 1.5 * 2^23 rounds to an integer in the low bits.
    constexpr float kRound = 12582912.0F;
    int32_t integers[kUnit];
    for (int i = 0; i < kUnit; ++i) {
      const float shifted = x[i] * inverse + kRound;
      int32_t bits;
      __builtin_memcpy(&bits, &shifted, sizeof bits);
      integers[i] = bits - 0x4B400000;
    }
    if (low) {
      for (int i = 0; i < kUnit; ++i) {
        const int32_t high = (integers[i] + 64) >> 7;
        values[i] = static_cast<int8_t>(high);
        low[i] = static_cast<int8_t>(integers[i] - high * 128);
      }
      low += kUnit;
    } else {
      for (int i = 0; i < kUnit; ++i) values[i] = static_cast<int8_t>(integers[i]);
    }
    int32_t half[2] = {0, 0};
    for (int i = 0; i < kUnit; ++i) half[i / 16] += integers[i];
    scales[u] = scale + probe;
    sums[2 * u] = half[0];
    sums[2 * u + 1] = half[1];
    totals[u] = scales[u] * static_cast<float>(half[0] + half[1]);
  }
}

}  // namespace
}  // namespace paddle::cpu
