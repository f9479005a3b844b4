#include "formats/gguf/blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tensor/dtype.h"

namespace paddle::formats::gguf {
namespace {

template <class T>
T read(const uint8_t* from) {
  T out;
  std::memcpy(&out, from, sizeof(T));
  return out;
}

float half(const uint8_t* from) { return float(read<float16>(from)); }

/// Bits [at, at + bits) of a byte.
int field(uint8_t byte, int at, int bits) { return (byte >> at) & ((1 << bits) - 1); }

void f32(const uint8_t* b, float* y) { *y = read<float>(b); }
void f16(const uint8_t* b, float* y) { *y = half(b); }
void bf16(const uint8_t* b, float* y) {
  *y = std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(b)) << 16);
}

void q4_0(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i)
    y[i] = d * static_cast<float>(field(b[2 + i % 16], i / 16 * 4, 4) - 8);
}

void q4_1(const uint8_t* b, float* y) {
  const float d = half(b), minimum = half(b + 2);
  for (int i = 0; i < 32; ++i)
    y[i] = d * static_cast<float>(field(b[4 + i % 16], i / 16 * 4, 4)) + minimum;
}

void q5_1(const uint8_t* b, float* y) {
  const float d = half(b), minimum = half(b + 2);
  const auto high = read<uint32_t>(b + 4);
  for (int i = 0; i < 32; ++i) {
    const int q = field(b[8 + i % 16], i / 16 * 4, 4) | static_cast<int>(high >> i & 1) << 4;
    y[i] = d * static_cast<float>(q) + minimum;
  }
}

void q5_0(const uint8_t* b, float* y) {
  const float d = half(b);
  const auto high = read<uint32_t>(b + 2);
  for (int i = 0; i < 32; ++i) {
    const int q = field(b[6 + i % 16], i / 16 * 4, 4) | static_cast<int>(high >> i & 1) << 4;
    y[i] = d * static_cast<float>(q - 16);
  }
}

void q8_0(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

void q2_0(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 64; ++i) y[i] = d * static_cast<float>(field(b[2 + i / 4], i % 4 * 2, 2) - 1);
}

/// Sixteen sub-blocks of 16, each with a scale and a minimum of 4 bits.
void q2_k(const uint8_t* b, float* y) {
  const uint8_t *scales = b, *quants = b + 16;
  const float d = half(b + 80), min_scale = half(b + 82);
  for (int i = 0; i < 256; ++i) {
    const int side = i / 128, shift = i % 128 / 32 * 2;
    const int q = field(quants[side * 32 + i % 32], shift, 2);
    const uint8_t scale = scales[i / 16];
    const float factor = d * static_cast<float>(scale & 15),
                offset = min_scale * static_cast<float>(scale >> 4);
    y[i] = factor * static_cast<float>(q) - offset;
  }
}

/// Sixteen sub-blocks of 16, each with a signed scale of 6 bits: four low bits, then two high ones.
void q3_k(const uint8_t* b, float* y) {
  const uint8_t *high = b, *low = b + 32, *scales = b + 96;
  const float d = half(b + 108);
  for (int i = 0; i < 256; ++i) {
    const int sub = i / 16, side = i / 128, shift = i % 128 / 32 * 2;
    const int scale =
        field(scales[sub % 8], sub / 8 * 4, 4) | field(scales[8 + sub % 4], sub / 4 * 2, 2) << 4;
    const int q =
        field(low[side * 32 + i % 32], shift, 2) - (field(high[i % 32], i / 32, 1) != 0 ? 0 : 4);
    y[i] = d * static_cast<float>(scale - 32) * static_cast<float>(q);
  }
}

/// The scale and the minimum, of 6 bits each, of one of eight sub-blocks of 32; those of the last
/// four are split over two bytes.
struct SubBlock {
  int scale, minimum;
};
SubBlock sub_block(const uint8_t* scales, int sub) {
  if (sub < 4) return {scales[sub] & 63, scales[sub + 4] & 63};
  return {(scales[sub + 4] & 15) | (scales[sub - 4] >> 6) << 4,
          scales[sub + 4] >> 4 | (scales[sub] >> 6) << 4};
}

void q4_k(const uint8_t* b, float* y) {
  const float d = half(b), min_scale = half(b + 2);
  const uint8_t* low = b + 16;
  for (int sub = 0; sub < 8; ++sub) {
    const auto [scale, minimum] = sub_block(b + 4, sub);
    const float factor = d * static_cast<float>(scale),
                offset = min_scale * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const int q = field(low[sub / 2 * 32 + i], sub % 2 * 4, 4);
      y[sub * 32 + i] = factor * static_cast<float>(q) - offset;
    }
  }
}

void q5_k(const uint8_t* b, float* y) {
  const float d = half(b), min_scale = half(b + 2);
  const uint8_t *high = b + 16, *low = b + 48;
  for (int sub = 0; sub < 8; ++sub) {
    const auto [scale, minimum] = sub_block(b + 4, sub);
    const float factor = d * static_cast<float>(scale),
                offset = min_scale * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const int q = field(low[sub / 2 * 32 + i], sub % 2 * 4, 4) | field(high[i], sub, 1) << 4;
      y[sub * 32 + i] = factor * static_cast<float>(q) - offset;
    }
  }
}

/// Sixteen sub-blocks of 16, each with an 8-bit scale.
void q6_k(const uint8_t* b, float* y) {
  const uint8_t *low = b, *high = b + 128, *scales = b + 192;
  const float d = half(b + 208);
  for (int i = 0; i < 256; ++i) {
    const int side = i / 128, quarter = i / 32 % 4, at = i % 32;
    const int q = field(low[side * 64 + quarter % 2 * 32 + at], quarter / 2 * 4, 4) |
                  field(high[side * 32 + at], quarter * 2, 2) << 4;
    const auto scale = static_cast<int8_t>(scales[i / 16]);
    y[i] = d * static_cast<float>(scale) * static_cast<float>(q - 32);
  }
}

constexpr std::array<float, 16> kNonlinearLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};

void iq4_nl(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i)
    y[i] = d * kNonlinearLevels[static_cast<size_t>(field(b[2 + i % 16], i / 16 * 4, 4))];
}

/// A scale of 8 exponent bits (OCP Microscaling Formats, 2023) and numbers of 4 bits.
void mxfp4(const uint8_t* b, float* y) {
  constexpr std::array<float, 16> kDoubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                              0, -1, -2, -3, -4, -6, -8, -12};
  // Half of the scale, for values that are doubled: 2^(e - 128), below 2^-126 a subnormal number.
  const uint32_t bits = b[0] < 2 ? 0x00200000u << b[0] : static_cast<uint32_t>(b[0] - 1) << 23;
  const auto half_scale = std::bit_cast<float>(bits);
  for (int i = 0; i < 32; ++i)
    y[i] = half_scale * kDoubled[static_cast<size_t>(field(b[1 + i % 16], i / 16 * 4, 4))];
}

void iq4_xs(const uint8_t* b, float* y) {
  const float d = half(b);
  const auto high = read<uint16_t>(b + 2);
  for (int sub = 0; sub < 8; ++sub) {
    const int scale = field(b[4 + sub / 2], sub % 2 * 4, 4) | (high >> (2 * sub) & 3) << 4;
    const float factor = d * static_cast<float>(scale - 32);
    for (int i = 0; i < 32; ++i)
      y[sub * 32 + i] =
          factor *
          kNonlinearLevels[static_cast<size_t>(field(b[8 + sub * 16 + i % 16], i / 16 * 4, 4))];
  }
}

/// Eight signs from seven bits; the eighth makes the number of minus signs even.
uint8_t even_signs(uint32_t bits) {
  bits &= 127;
  return static_cast<uint8_t>(bits | static_cast<uint32_t>(std::popcount(bits) & 1) << 7);
}

/// Decodes a codebook entry of eight values.
void decode_eight(uint16_t code, uint8_t signs, float factor, float* y) {
  constexpr std::array<float, 4> kMagnitudes = {8, 25, 43, 0};
  for (int i = 0; i < 8; ++i) {
    const float v = factor * kMagnitudes[static_cast<size_t>(code >> (2 * i) & 3)];
    y[i] = signs >> i & 1 ? -v : v;
  }
}

void iq2_xxs(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int sub = 0; sub < 8; ++sub) {
    const uint8_t* indices = b + 2 + sub * 8;
    const auto rest = read<uint32_t>(indices + 4);
    const float factor = d * (0.5f + static_cast<float>(rest >> 28)) * 0.25f;
    for (int i = 0; i < 4; ++i)
      decode_eight(iq2_xxs_codebook()[indices[i]], even_signs(rest >> (7 * i)), factor,
                   y + sub * 32 + i * 8);
  }
}

void iq2_xs(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) {
    const auto code = read<uint16_t>(b + 2 + i * 2);
    const int scale = field(b[66 + i / 4], i / 2 % 2 * 4, 4);
    decode_eight(iq2_xs_codebook()[code & 511], even_signs(code >> 9),
                 d * (0.5f + static_cast<float>(scale)) * 0.25f, y + i * 8);
  }
}

void iq2_s(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) {
    const int code = b[2 + i] | field(b[66 + i / 4], i % 4 * 2, 2) << 8;
    const int scale = field(b[74 + i / 4], i / 2 % 2 * 4, 4);
    decode_eight(iq2_s_codebook()[static_cast<size_t>(code)], b[34 + i],
                 d * (0.5f + static_cast<float>(scale)) * 0.25f, y + i * 8);
  }
}

void iq3_xxs(const uint8_t* b, float* y) {
  constexpr std::array<float, 8> kMagnitudes = {4, 12, 20, 28, 36, 44, 52, 62};
  const float d = half(b);
  for (int sub = 0; sub < 8; ++sub) {
    const auto rest = read<uint32_t>(b + 66 + sub * 4);
    const float factor = d * (0.5f + static_cast<float>(rest >> 28)) * 0.5f;
    for (int i = 0; i < 32; ++i) {
      const uint16_t code = iq3_xxs_codebook()[b[2 + sub * 8 + i / 4]];
      const float v = factor * kMagnitudes[static_cast<size_t>(code >> (3 * (i % 4)) & 7)];
      y[sub * 32 + i] = even_signs(rest >> (7 * (i / 8))) >> (i % 8) & 1 ? -v : v;
    }
  }
}

constexpr BlockFormat kFormats[] = {
    {0, 1, 4, f32},         {1, 1, 2, f16},         {2, 32, 18, q4_0},      {3, 32, 20, q4_1},
    {6, 32, 22, q5_0},      {7, 32, 24, q5_1},      {8, 32, 34, q8_0},      {10, 256, 84, q2_k},
    {11, 256, 110, q3_k},   {12, 256, 144, q4_k},   {13, 256, 176, q5_k},   {14, 256, 210, q6_k},
    {16, 256, 66, iq2_xxs}, {17, 256, 74, iq2_xs},  {18, 256, 98, iq3_xxs}, {20, 32, 18, iq4_nl},
    {22, 256, 82, iq2_s},   {23, 256, 136, iq4_xs}, {30, 1, 2, bf16},       {39, 32, 17, mxfp4},
    {42, 64, 18, q2_0},
};

}  // namespace

const BlockFormat* find_block_format(int64_t type) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const BlockFormat& format) { return format.type == type; });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace paddle::formats::gguf
