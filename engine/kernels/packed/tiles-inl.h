// Products of rows with panels, over the vectors V of an instruction set: 16 floats, 16 int32 sums,
// or 64 bytes. V::Products sums V::kRun products of bytes in the way that is fastest for the range
// of the weights; these sums are exact. The sums of a row are made in the same order whatever rows
// are next to it. Included once in each of the files that define V.

namespace paddle::cpu {
namespace {

/// The products of kRows rows with one group of integer panels, whose quants are kMax at most.
template <PanelScales kScales, int kMax, bool kWide, int kRows>
void integer_tile(const TileProduct& p, const uint8_t* at, int64_t row, V::Floats* out) {
  constexpr bool kNibbles = kMax == 15;
  constexpr int kLines = kNibbles ? 9 : 17, kPrefetchDistance = 2048;
  const int64_t units = p.layout->units();
  const QuantizedRows& x = p.quantized;
  const int8_t* values[kRows];
  for (int r = 0; r < kRows; ++r) values[r] = x.values + (row + r) * p.layout->features;
  [[maybe_unused]] const ptrdiff_t low = kWide ? x.low - x.values : 0;
  const float* const row_scales = x.scales + row * units;
  const float* const totals = x.totals + row * units;
  const int32_t* const corrections = x.corrections + row * units * 2;
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
    // Hardware prefetching ends with each page.
    for (int line = 0; line < kLines; ++line)
      __builtin_prefetch(at + kPrefetchDistance + line * 64, 0, 3);
    constexpr int kHalves = kScales == PanelScales::kSuper16 ? 2 : 1;
    for (int half = 0; half < kHalves; ++half) {
      V::Ints sum[kRows];
      [[maybe_unused]] V::Ints high[kRows];  // products with the high bytes of 16 bits
      for (int r = 0; r < kRows; ++r) {
        sum[r] = V::set_int(corrections[(r * units + u) * 2 + half]);
        if constexpr (kWide) high[r] = V::set_int(0);
      }
      constexpr int kVectors = (kNibbles ? 4 : 8) / kHalves;  // of 64 bytes
      constexpr int kRun = std::min(V::kRun<kMax> / (kNibbles ? 2 : 1), kVectors);
      for (int begin = 0; begin < kVectors; begin += kRun) {
        V::Products<kMax> run[kRows];
        [[maybe_unused]] V::Products<kMax> high_run[kRows];
        for (int r = 0; r < kRows; ++r) {
          run[r].begin(sum[r]);
          if constexpr (kWide) high_run[r].begin(high[r]);
        }
        const auto add_vector = [&](int i) {
          const V::Bytes w = V::load_bytes(quants + i * 64);
          [[maybe_unused]] const V::Bytes nibbles[2] = {V::low_nibbles(w), V::high_nibbles(w)};
          for (int r = 0; r < kRows; ++r) {
            const int8_t* const four = values[r] + i * 4;
            const auto add = [&](const V::Bytes& part, int feature) {
              if constexpr (kWide) high_run[r].add(part, four + feature);
              run[r].add(part, four + feature + low);
            };
            if constexpr (kNibbles) {
              add(nibbles[0], 0);
              add(nibbles[1], kUnit / 2);
            } else {
              add(w, 0);
            }
          }
        };
        const int first = half * kVectors + begin;
#pragma GCC unroll 8
        for (int i = 0; i < kRun; ++i) add_vector(first + i);
        for (int r = 0; r < kRows; ++r) {
          sum[r] = run[r].end(sum[r]);
          if constexpr (kWide) high[r] = high_run[r].end(high[r]);
        }
      }
      V::Floats scale;
      if constexpr (kScales == PanelScales::kSuper)
        scale = V::mul(super, V::load_u8(at));
      else if constexpr (kScales == PanelScales::kSuper16)
        scale = V::mul(super, V::load_i8(at + half * 16));
      else
        scale = V::load_half(at);
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kWide) sum[r] = V::add_times_128(sum[r], high[r]);
        acc[r] =
            V::fma(V::to_float(sum[r]), V::mul(scale, V::set(row_scales[r * units + u])), acc[r]);
      }
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
    at = quants + kPanelColumns * kUnit * (kNibbles ? 4 : 8) / 8;
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

/// Tiles of kRows rows from `row` on, up to `end`.
template <PanelScales kScales, int kMax, bool kWide, int kRows>
void integer_rows(const TileProduct& p, const uint8_t* panel, int64_t group, int64_t end,
                  int64_t& row) {
  for (; row + kRows <= end; row += kRows) {
    V::Floats out[kRows];
    integer_tile<kScales, kMax, kWide, kRows>(p, panel, row, out);
    for (int r = 0; r < kRows; ++r) store_columns(p, row + r, group, out[r]);
  }
}

template <PanelScales kScales, int kMax, bool kWide>
void multiply_groups(const TileProduct& p) {
  for (int64_t g = 0; g < p.groups; ++g) {
    const auto* const panel =
        reinterpret_cast<const uint8_t*>(p.panels + static_cast<size_t>(g) * p.layout->group_bytes);
    int64_t row = 0;
    constexpr int kRows = kWide ? V::kWideRows : V::kIntegerRows;
    if constexpr (kRows > 8) {
      // Few rows in a tile take more time for each, so 16 are two tiles of 8, not 12 and 4.
      static_assert(kRows == 12);
      const int64_t rest = p.rows % kRows == 4 && p.rows > kRows ? 16 : 0;
      integer_rows<kScales, kMax, kWide, kRows>(p, panel, g, p.rows - rest, row);
      integer_rows<kScales, kMax, kWide, 8>(p, panel, g, p.rows, row);
    } else {
      integer_rows<kScales, kMax, kWide, kRows>(p, panel, g, p.rows, row);
    }
    if constexpr (kRows > 4) integer_rows<kScales, kMax, kWide, 4>(p, panel, g, p.rows, row);
    if constexpr (kRows > 2) integer_rows<kScales, kMax, kWide, 2>(p, panel, g, p.rows, row);
    integer_rows<kScales, kMax, kWide, 1>(p, panel, g, p.rows, row);
  }
}

template <PanelScales kScales, int kMax>
void multiply_integers(const TileProduct& p) {
  if (p.quantized.low)
    multiply_groups<kScales, kMax, true>(p);
  else
    multiply_groups<kScales, kMax, false>(p);
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
  const int most = format->most;
  switch (format->scales) {
    case PanelScales::kHalf:
      if (most == 15) return multiply_integers<PanelScales::kHalf, 15>(p);
      return most == 31 ? multiply_integers<PanelScales::kHalf, 31>(p)
                        : multiply_integers<PanelScales::kHalf, 255>(p);
    case PanelScales::kHalfMinimum:
      return most == 15 ? multiply_integers<PanelScales::kHalfMinimum, 15>(p)
                        : multiply_integers<PanelScales::kHalfMinimum, 31>(p);
    case PanelScales::kSuper:
      return most == 15 ? multiply_integers<PanelScales::kSuper, 15>(p)
                        : multiply_integers<PanelScales::kSuper, 31>(p);
    case PanelScales::kSuper16:
      return multiply_integers<PanelScales::kSuper16, 63>(p);
  }
}

/// Each unit is scaled so that its largest value becomes 127, or 127 * 128 in 16 bits. A value that
/// is not finite makes the scale NaN.
void quantize(const UnpackedFormat& format, const float* x, int64_t units, int8_t* values,
              int8_t* low, float* scales, int32_t* corrections, float* totals) {
  const float limit = low ? 127.0F * 128.0F : 127.0F;
  const bool halves = format.scales == PanelScales::kSuper16;
  const int32_t offset = V::drops_offset(format.most) ? 0 : format.offset;
  for (int64_t u = 0; u < units; ++u, x += kUnit, values += kUnit) {
    V::Floats first = V::load(x), second = V::load(x + kUnit / 2);
    const float top = V::largest_magnitude(first, second);
    // Below the first, the scale or its inverse would not be normal numbers.
    float scale = 0, inverse = 0;
    if (top > 1e-30F) {
      scale = top / limit;
      inverse = limit / top;
    }
    if (!(top <= std::numeric_limits<float>::max())) {
      scale = std::numeric_limits<float>::quiet_NaN();
      first = second = V::set(0);  // no integers stand for them
    }
    const V::Floats factor = V::set(inverse);
    const V::Ints integers[2] = {V::to_integers(V::mul(first, factor)),
                                 V::to_integers(V::mul(second, factor))};
    for (int half = 0; half < 2; ++half) {
      const int64_t place = half * kUnit / 2;
      if (low) {
        const V::Ints high = V::divide_by_128(integers[half]);
        V::store_bytes(values + place, high);
        V::store_bytes(low + place, V::sub_times_128(integers[half], high));
      } else {
        V::store_bytes(values + place, integers[half]);
      }
    }
    if (low) low += kUnit;
    const int32_t sums[2] = {V::sum(integers[0]), V::sum(integers[1])}, sum = sums[0] + sums[1];
    scales[u] = scale;
    corrections[2 * u] = -offset * (halves ? sums[0] : sum);
    corrections[2 * u + 1] = -offset * sums[1];
    totals[u] = scale * static_cast<float>(sum);
  }
}

}  // namespace
}  // namespace paddle::cpu
