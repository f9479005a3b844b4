#include "onnx/packed_formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tensor/dtype.h"

namespace paddle::onnx {
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

/// Eight parts of 32, each with a scale and a minimum of 6 bits; of the last four these lie in two
/// pieces.
void q5_k(const uint8_t* b, float* y) {
  const float d = half(b), least = half(b + 2);
  const uint8_t *scales = b + 4, *high = b + 16, *low = b + 48;
  for (int part = 0; part < 8; ++part) {
    int scale, minimum;
    if (part < 4) {
      scale = scales[part] & 63;
      minimum = scales[part + 4] & 63;
    } else {
      scale = (scales[part + 4] & 15) | (scales[part - 4] >> 6) << 4;
      minimum = scales[part + 4] >> 4 | (scales[part] >> 6) << 4;
    }
    const float by = d * static_cast<float>(scale), less = least * static_cast<float>(minimum);
    for (int i = 0; i < 32; ++i) {
      const int q = field(low[part / 2 * 32 + i], part % 2 * 4, 4) | field(high[i], part, 1) << 4;
      y[part * 32 + i] = by * static_cast<float>(q) - less;
    }
  }
}

/// Sixteen parts of 16, each with a scale of 8 bits.
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

constexpr std::array<float, 16> kNonLinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};

void iq4_nl(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i)
    y[i] = d * kNonLinear[static_cast<size_t>(field(b[2 + i % 16], i / 16 * 4, 4))];
}

void iq4_xs(const uint8_t* b, float* y) {
  const float d = half(b);
  const auto high = read<uint16_t>(b + 2);
  for (int part = 0; part < 8; ++part) {
    const int scale = field(b[4 + part / 2], part % 2 * 4, 4) | (high >> (2 * part) & 3) << 4;
    const float by = d * static_cast<float>(scale - 32);
    for (int i = 0; i < 32; ++i)
      y[part * 32 + i] =
          by * kNonLinear[static_cast<size_t>(field(b[8 + part * 16 + i % 16], i / 16 * 4, 4))];
  }
}

/// Eight signs from seven bits: the number of minus signs is even.
uint8_t even_signs(uint32_t bits) {
  bits &= 127;
  return static_cast<uint8_t>(bits | static_cast<uint32_t>(std::popcount(bits) & 1) << 7);
}

/// A vector of eight from a codebook.
void vector_of_eight(uint16_t code, uint8_t signs, float by, float* y) {
  constexpr std::array<float, 4> kSizes = {8, 25, 43, 0};
  for (int i = 0; i < 8; ++i) {
    const float v = by * kSizes[static_cast<size_t>(code >> (2 * i) & 3)];
    y[i] = signs >> i & 1 ? -v : v;
  }
}

void iq2_xxs(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int part = 0; part < 8; ++part) {
    const uint8_t* indices = b + 2 + part * 8;
    const auto rest = read<uint32_t>(indices + 4);
    const float by = d * (0.5f + static_cast<float>(rest >> 28)) * 0.25f;
    for (int i = 0; i < 4; ++i)
      vector_of_eight(packed_vectors_256()[indices[i]], even_signs(rest >> (7 * i)), by,
                      y + part * 32 + i * 8);
  }
}

void iq2_xs(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) {
    const auto code = read<uint16_t>(b + 2 + i * 2);
    const int scale = field(b[66 + i / 4], i / 2 % 2 * 4, 4);
    vector_of_eight(packed_vectors_512()[code & 511], even_signs(code >> 9),
                    d * (0.5f + static_cast<float>(scale)) * 0.25f, y + i * 8);
  }
}

void iq2_s(const uint8_t* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) {
    const int code = b[2 + i] | field(b[66 + i / 4], i % 4 * 2, 2) << 8;
    const int scale = field(b[74 + i / 4], i / 2 % 2 * 4, 4);
    vector_of_eight(packed_vectors_1024()[static_cast<size_t>(code)], b[34 + i],
                    d * (0.5f + static_cast<float>(scale)) * 0.25f, y + i * 8);
  }
}

void iq3_xxs(const uint8_t* b, float* y) {
  constexpr std::array<float, 8> kSizes = {4, 12, 20, 28, 36, 44, 52, 62};
  const float d = half(b);
  for (int part = 0; part < 8; ++part) {
    const auto rest = read<uint32_t>(b + 66 + part * 4);
    const float by = d * (0.5f + static_cast<float>(rest >> 28)) * 0.5f;
    for (int i = 0; i < 32; ++i) {
      const uint16_t code = packed_quads()[b[2 + part * 8 + i / 4]];
      const float v = by * kSizes[static_cast<size_t>(code >> (3 * (i % 4)) & 7)];
      y[part * 32 + i] = even_signs(rest >> (7 * (i / 8))) >> (i % 8) & 1 ? -v : v;
    }
  }
}

constexpr PackedFormat kFormats[] = {
    {0, 1, 4, f32},         {1, 1, 2, f16},         {2, 32, 18, q4_0},    {6, 32, 22, q5_0},
    {8, 32, 34, q8_0},      {13, 256, 176, q5_k},   {14, 256, 210, q6_k}, {16, 256, 66, iq2_xxs},
    {17, 256, 74, iq2_xs},  {18, 256, 98, iq3_xxs}, {20, 32, 18, iq4_nl}, {22, 256, 82, iq2_s},
    {23, 256, 136, iq4_xs}, {30, 1, 2, bf16},       {42, 64, 18, q2_0},
};

}  // namespace

const PackedFormat* packed_format(int64_t type) {
  const auto* found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const PackedFormat& format) { return format.type == type; });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace paddle::onnx
