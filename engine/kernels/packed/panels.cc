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

/// One group of integers: 16 rows, of which `valid` are there.
void pack_group(const PanelLayout& layout, const std::byte* rows, int64_t row_bytes, int64_t valid,
                std::byte* out) {
  const UnpackedFormat& format = *layout.packed;
  const PackedFormat& blocks = *find_packed_format(format.name);
  const int64_t units_of_block = blocks.values / kUnit;
  const PanelScales scales = format.scales;
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
      const uint8_t* const q = unit.quants;
      if (format.bits() == 8) {
        for (int64_t g = 0; g < 8; ++g) std::memcpy(quants + (g * 16 + c) * 4, q + g * 4, 4);
      } else {
        uint8_t pairs[16];
        for (int64_t i = 0; i < 16; ++i) pairs[i] = static_cast<uint8_t>(q[i] | q[16 + i] << 4);
        for (int64_t g = 0; g < 4; ++g) std::memcpy(quants + (g * 16 + c) * 4, pairs + g * 4, 4);
      }
    }
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
