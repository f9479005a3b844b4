#include "kernels/packed/unpack.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "tensor/dtype.h"

namespace paddle::cpu {
namespace {

uint16_t bits_at(const uint8_t* from) {
  uint16_t out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

float half(uint16_t bits) { return static_cast<float>(std::bit_cast<float16>(bits)); }

void unpack_nibbles(const uint8_t* from, uint8_t* quants) {
  for (int i = 0; i < 16; ++i) {
    quants[i] = from[i] & 15;
    quants[16 + i] = static_cast<uint8_t>(from[i] >> 4);
  }
}

void add_fifth_bits(const uint8_t* from, uint8_t* quants) {
  uint32_t high;
  std::memcpy(&high, from, sizeof high);
  for (uint32_t i = 0; i < 32; ++i)
    quants[i] = static_cast<uint8_t>(quants[i] | (high >> i & 1) << 4);
}

void q4_0(const uint8_t* b, int64_t, WeightUnit& out) {
  out.scale = bits_at(b);
  unpack_nibbles(b + 2, out.quants);
}

void q4_1(const uint8_t* b, int64_t, WeightUnit& out) {
  out.scale = bits_at(b);
  out.minimum_scale = bits_at(b + 2);
  unpack_nibbles(b + 4, out.quants);
}

void q5_0(const uint8_t* b, int64_t, WeightUnit& out) {
  out.scale = bits_at(b);
  unpack_nibbles(b + 6, out.quants);
  add_fifth_bits(b + 2, out.quants);
}

void q5_1(const uint8_t* b, int64_t, WeightUnit& out) {
  out.scale = bits_at(b);
  out.minimum_scale = bits_at(b + 2);
  unpack_nibbles(b + 8, out.quants);
  add_fifth_bits(b + 4, out.quants);
}

void q8_0(const uint8_t* b, int64_t, WeightUnit& out) {
  out.scale = bits_at(b);
  for (int i = 0; i < 32; ++i) out.quants[i] = static_cast<uint8_t>(b[2 + i] ^ 128);
}

/// The scale and the minimum, of 6 bits each, of one of eight units; those of the last four are
/// split over two bytes.
void set_super_scales(const uint8_t* b, int64_t unit, WeightUnit& out) {
  const uint8_t* const s = b + 4;
  if (unit < 4) {
    out.scales[0] = s[unit] & 63;
    out.minimum = s[unit + 4] & 63;
  } else {
    out.scales[0] = static_cast<uint8_t>((s[unit + 4] & 15) | (s[unit - 4] >> 6) << 4);
    out.minimum = static_cast<uint8_t>(s[unit + 4] >> 4 | (s[unit] >> 6) << 4);
  }
  out.scales[1] = out.scales[0];
  out.scale = bits_at(b);
  out.minimum_scale = bits_at(b + 2) ^ 0x8000;  // it is subtracted
}

void q4_k(const uint8_t* b, int64_t unit, WeightUnit& out) {
  set_super_scales(b, unit, out);
  for (int64_t i = 0; i < 32; ++i)
    out.quants[i] = static_cast<uint8_t>(b[16 + unit / 2 * 32 + i] >> unit % 2 * 4 & 15);
}

void q5_k(const uint8_t* b, int64_t unit, WeightUnit& out) {
  set_super_scales(b, unit, out);
  for (int64_t i = 0; i < 32; ++i)
    out.quants[i] = static_cast<uint8_t>((b[48 + unit / 2 * 32 + i] >> unit % 2 * 4 & 15) |
                                         (b[16 + i] >> unit & 1) << 4);
}

void q6_k(const uint8_t* b, int64_t unit, WeightUnit& out) {
  const uint8_t *low = b, *high = b + 128, *scales = b + 192;
  out.scale = bits_at(b + 208);
  for (int64_t i = 0; i < 2; ++i) out.scales[i] = scales[unit * 2 + i];
  const int64_t side = unit / 4, quarter = unit % 4;
  for (int64_t i = 0; i < 32; ++i)
    out.quants[i] =
        static_cast<uint8_t>((low[side * 64 + quarter % 2 * 32 + i] >> quarter / 2 * 4 & 15) |
                             (high[side * 32 + i] >> quarter * 2 & 3) << 4);
}

constexpr UnpackedFormat kFormats[] = {
    {"q4_0", PanelScales::kHalf, 15, 8, q4_0},    {"q4_1", PanelScales::kHalfMinimum, 15, 0, q4_1},
    {"q5_0", PanelScales::kHalf, 31, 16, q5_0},   {"q5_1", PanelScales::kHalfMinimum, 31, 0, q5_1},
    {"q8_0", PanelScales::kHalf, 255, 128, q8_0}, {"q4_k", PanelScales::kSuper, 15, 0, q4_k},
    {"q5_k", PanelScales::kSuper, 31, 0, q5_k},   {"q6_k", PanelScales::kSuper16, 63, 32, q6_k},
};

}  // namespace

UnitFactors unit_factors(PanelScales scales, const WeightUnit& unit) {
  const float d = half(unit.scale);
  switch (scales) {
    case PanelScales::kHalf:
      return {{d, d}, 0};
    case PanelScales::kHalfMinimum:
      return {{d, d}, half(unit.minimum_scale)};
    case PanelScales::kSuper: {
      const float factor = d * static_cast<float>(unit.scales[0]);
      return {{factor, factor}, half(unit.minimum_scale) * static_cast<float>(unit.minimum)};
    }
    case PanelScales::kSuper16:
      break;
  }
  const auto signed_scale = [&](int i) {
    return static_cast<float>(static_cast<int8_t>(unit.scales[i]));
  };
  return {{d * signed_scale(0), d * signed_scale(1)}, 0};
}

const UnpackedFormat* find_unpacked_format(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const UnpackedFormat& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace paddle::cpu
