#include "kernels/packed/panels.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "kernels/common/convert.h"
#include "ops/generation/packed_format.h"

namespace paddle::cpu {
namespace {

size_t unit_bytes(const UnpackedFormat& format) {
  const auto quants = static_cast<size_t>(kPanelColumns * kUnit * format.bits() / 8);
  return quants + (format.scales == PanelScales::kHalfMinimum ? 64 : 32);
}

size_t super_bytes(const UnpackedFormat& format) {
  if (format.scales == PanelScales::kSuper) return 64;
  return format.scales == PanelScales::kSuper16 ? 32 : 0;
}

void put(std::byte* to, uint16_t value) { std::memcpy(to, &value, sizeof value); }

using FourWords = uint32_t __attribute__((vector_size(16)));

/// Words of 4 bytes of 16 rows, `row_bytes` each, so that equal words of all rows are neighbors.
void transpose_words(const uint8_t* rows, int64_t row_bytes, std::byte* out) {
  const auto load = [&](int64_t row, int64_t word) {
    FourWords four;
    std::memcpy(&four, rows + row * row_bytes + 4 * word, sizeof four);
    return four;
  };
  const auto store = [&](FourWords four, int64_t word, int64_t row) {
    std::memcpy(out + (word * kPanelColumns + row) * 4, &four, sizeof four);
  };
  for (int64_t word = 0; word < row_bytes / 4; word += 4)
    for (int64_t row = 0; row < kPanelColumns; row += 4) {
      const FourWords a = load(row, word), b = load(row + 1, word), c = load(row + 2, word),
                      d = load(row + 3, word);
      const FourWords low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                      low2 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const FourWords high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                      high2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      store(__builtin_shufflevector(low, low2, 0, 1, 4, 5), word, row);
      store(__builtin_shufflevector(low, low2, 2, 3, 6, 7), word + 1, row);
      store(__builtin_shufflevector(high, high2, 0, 1, 4, 5), word + 2, row);
      store(__builtin_shufflevector(high, high2, 2, 3, 6, 7), word + 3, row);
    }
}

/// One group of integers: 16 rows, of which `valid` are there.
void pack_group(const PanelLayout& layout, const std::byte* rows, int64_t row_bytes, int64_t valid,
                std::byte* out) {
  const UnpackedFormat& format = *layout.packed;
  const PackedFormat& blocks = *find_packed_format(format.name);
  const int64_t units_of_block = blocks.values / kUnit;
  const PanelScales scales = format.scales;
  const int64_t word_bytes = kUnit * format.bits() / 8;
  alignas(16) uint8_t words[kPanelColumns * kUnit];
  for (int64_t u = 0; u < layout.units(); ++u) {
    const bool begins = super_bytes(format) > 0 && u % kUnitsOfSuper == 0;
    std::byte* const super = out;
    if (begins) out += super_bytes(format);
    std::byte* const quants = out + (scales == PanelScales::kHalfMinimum ? 64 : 32);
    for (int64_t c = 0; c < kPanelColumns; ++c) {
      WeightUnit unit{};
      if (c < valid)
        format.unpack(reinterpret_cast<const uint8_t*>(rows) + c * row_bytes +
                          u / units_of_block * blocks.bytes,
                      u % units_of_block, unit);
      else
        std::fill(std::begin(unit.quants), std::end(unit.quants),
                  static_cast<uint8_t>(format.offset));
      if (begins) put(super + 2 * c, unit.scale);
      if (begins && scales == PanelScales::kSuper) put(super + 32 + 2 * c, unit.minimum_scale);
      if (scales == PanelScales::kHalf || scales == PanelScales::kHalfMinimum)
        put(out + 2 * c, unit.scale);
      if (scales == PanelScales::kHalfMinimum) put(out + 32 + 2 * c, unit.minimum_scale);
      if (scales == PanelScales::kSuper || scales == PanelScales::kSuper16) {
        out[c] = static_cast<std::byte>(unit.scales[0]);
        out[16 + c] =
            static_cast<std::byte>(scales == PanelScales::kSuper ? unit.minimum : unit.scales[1]);
      }
      uint8_t* const to = words + c * word_bytes;
      if (format.bits() == 8)
        std::memcpy(to, unit.quants, 32);
      else
        for (int64_t i = 0; i < 16; ++i)
          to[i] = static_cast<uint8_t>(unit.quants[i] | unit.quants[16 + i] << 4);
    }
    transpose_words(words, word_bytes, quants);
    out = quants + kPanelColumns * kUnit * format.bits() / 8;
  }
}

/// One group of floats.
void pack_float_group(const PanelLayout& layout, DType dtype, const std::byte* rows,
                      int64_t row_bytes, int64_t valid, std::byte* out) {
  const ConvertFn convert = convert_fn(dtype, layout.floats);
  constexpr int64_t kPart = 256;
  const auto item = static_cast<size_t>(item_size(layout.floats));
  alignas(64) std::byte values[kPart * 4];
  for (int64_t c = 0; c < kPanelColumns; ++c)
    for (int64_t begin = 0; begin < layout.features; begin += kPart) {
      const int64_t n = std::min(kPart, layout.features - begin);
      if (c < valid)
        convert(rows + c * row_bytes + begin * item_size(dtype), 1, values, n);
      else
        std::memset(values, 0, sizeof values);
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(out + static_cast<size_t>((begin + i) * kPanelColumns + c) * item,
                    values + static_cast<size_t>(i) * item, item);
    }
}

}  // namespace

PanelLayout panel_layout(std::string_view format, DType dtype, int64_t features, int64_t columns) {
  PanelLayout out;
  out.packed = find_unpacked_format(format);
  out.features = features;
  out.columns = columns;
  if (!out.packed) {
    out.floats = dtype == DType::kBF16 ? DType::kBF16 : DType::kF32;
    out.group_bytes = static_cast<size_t>(features * kPanelColumns * item_size(out.floats));
    return out;
  }
  const int64_t supers = super_bytes(*out.packed) > 0 ? out.units() / kUnitsOfSuper : 0;
  out.group_bytes = unit_bytes(*out.packed) * static_cast<size_t>(out.units()) +
                    super_bytes(*out.packed) * static_cast<size_t>(supers);
  return out;
}

void pack_panels(const PanelLayout& layout, DType dtype, const std::byte* rows, int64_t row_bytes,
                 std::byte* panels) {
  parallel_for(layout.groups(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const std::byte* const from = rows + g * kPanelColumns * row_bytes;
      const int64_t valid = std::min(kPanelColumns, layout.columns - g * kPanelColumns);
      std::byte* const to = panels + static_cast<size_t>(g) * layout.group_bytes;
      if (layout.packed)
        pack_group(layout, from, row_bytes, valid, to);
      else
        pack_float_group(layout, dtype, from, row_bytes, valid, to);
    }
  });
}

}  // namespace paddle::cpu
