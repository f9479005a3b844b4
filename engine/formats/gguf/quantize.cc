#include "formats/gguf/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/parallel.h"
#include "formats/gguf/block_fit.h"
#include "formats/gguf/k_quants.h"
#include "tensor/dtype.h"

namespace paddle::formats::gguf {
namespace {

constexpr int64_t kValues = 32;

void put_half(uint8_t* to, float value) {
  const float16 half(value);
  std::memcpy(to, &half, sizeof half);
}

/// Half away from zero.
float rounded(float x) {
  const float size = std::abs(x), whole = std::floor(size);
  return std::copysign(whole + std::floor(2 * (size - whole)), x);
}

void q8_0(const float* x, uint8_t* block) {
  float largest = 0;
  for (int64_t i = 0; i < kValues; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = largest / 127, inverse = scale == 0 ? 0 : 1 / scale;
  put_half(block, scale);
  for (int64_t i = 0; i < kValues; ++i) {
    const float q = rounded(x[i] * inverse);
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(q >= -127 && q <= 127 ? q : 0));
  }
}

/// Low halves of levels, two to a byte; the fifth bits, if there are any, stand together before.
template <class Level>
void put_levels(uint8_t* to, bool five_bits, const Level& level) {
  uint32_t fifth = 0;
  uint8_t* const low = five_bits ? to + sizeof fifth : to;
  for (int64_t i = 0; i < kValues / 2; ++i) {
    const uint8_t first = level(i), second = level(i + kValues / 2);
    low[i] = static_cast<uint8_t>((first & 15) | (second & 15) << 4);
    fifth |= static_cast<uint32_t>(first >> 4) << i;
    fifth |= static_cast<uint32_t>(second >> 4) << (i + kValues / 2);
  }
  if (five_bits) std::memcpy(to, &fifth, sizeof fifth);
}

/// The value of the largest size becomes -half, so that its sign is in the scale.
void from_largest(const float* x, uint8_t* block, int half, bool five_bits) {
  float largest = x[0];
  for (int64_t i = 1; i < kValues; ++i)
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  const auto middle = static_cast<float>(half);
  const float scale = largest / -middle, inverse = scale == 0 ? 0 : 1 / scale;
  put_half(block, scale);
  put_levels(block + 2, five_bits, [&](int64_t i) {
    const float q = x[i] * inverse + (middle + 0.5f);
    return static_cast<uint8_t>(q >= 0 ? std::min(q, 2 * middle - 1) : middle);
  });
}
void q4_0(const float* x, uint8_t* block) { from_largest(x, block, 8, false); }
void q5_0(const float* x, uint8_t* block) { from_largest(x, block, 16, true); }

/// Levels from the smallest value to the largest, in steps of one scale.
void from_minimum(const float* x, uint8_t* block, float most, bool five_bits) {
  float low = x[0], high = x[0];
  for (int64_t i = 1; i < kValues; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const float scale = (high - low) / most, inverse = scale == 0 ? 0 : 1 / scale;
  put_half(block, scale);
  put_half(block + 2, low);
  put_levels(block + 4, five_bits, [&](int64_t i) {
    const float q = (x[i] - low) * inverse + 0.5f;
    return static_cast<uint8_t>(q >= 0 ? std::min(q, most) : 0);
  });
}
void q4_1(const float* x, uint8_t* block) { from_minimum(x, block, 15, false); }
void q5_1(const float* x, uint8_t* block) { from_minimum(x, block, 31, true); }

// --- searched scales ---

float as_half(float value) {
  return static_cast<float>(float16(std::clamp(value, -65504.0f, 65504.0f)));
}

/// scale * level with levels from `low` to `high`; the searched scale, or the plain one where the
/// search, which does not round to float16, found nothing better.
float searched_scale(const std::array<float, kValues>& x, int low, int high) {
  const float found = as_half(fit_signed(x.data(), kValues, low, high));
  float largest = 0;
  for (const float value : x)
    if (std::abs(value) > std::abs(largest)) largest = value;
  const float plain = as_half(largest / static_cast<float>(low));
  const auto error = [&](float scale) { return signed_error(x.data(), kValues, scale, low, high); };
  return error(found) < error(plain) ? found : plain;
}

void searched_q8_0(const float* values, uint8_t* block) {
  const auto x = finite_values<kValues>(values);
  const float scale = searched_scale(x, -127, 127), inverse = scale == 0 ? 0 : 1 / scale;
  put_half(block, scale);
  for (size_t i = 0; i < x.size(); ++i)
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(level_of(x[i], inverse, 0, -127, 127)));
}

void searched_from_largest(const float* values, uint8_t* block, int half, bool five_bits) {
  const auto x = finite_values<kValues>(values);
  const float scale = searched_scale(x, -half, half - 1), inverse = scale == 0 ? 0 : 1 / scale;
  put_half(block, scale);
  put_levels(block + 2, five_bits, [&](int64_t i) {
    return static_cast<uint8_t>(level_of(x[static_cast<size_t>(i)], inverse, 0, -half, half - 1) +
                                half);
  });
}
void searched_q4_0(const float* x, uint8_t* block) { searched_from_largest(x, block, 8, false); }
void searched_q5_0(const float* x, uint8_t* block) { searched_from_largest(x, block, 16, true); }

void searched_from_minimum(const float* values, uint8_t* block, int most, bool five_bits) {
  const auto x = finite_values<kValues>(values);
  const auto halves = [](Affine fit) { return Affine{as_half(fit.scale), -as_half(-fit.offset)}; };
  const auto [least, largest] = std::minmax_element(x.begin(), x.end());
  const Affine plain = halves({(*largest - *least) / static_cast<float>(most), -*least});
  const Affine found = halves(fit_affine(x.data(), kValues, most, false));
  const auto error = [&](Affine fit) { return affine_error(x.data(), kValues, most, fit); };
  const Affine fit = error(found) < error(plain) ? found : plain;
  const float inverse = fit.scale == 0 ? 0 : 1 / fit.scale;
  put_half(block, fit.scale);
  put_half(block + 2, -fit.offset);
  put_levels(block + 4, five_bits, [&](int64_t i) {
    return static_cast<uint8_t>(level_of(x[static_cast<size_t>(i)], inverse, fit.offset, 0, most));
  });
}
void searched_q4_1(const float* x, uint8_t* block) { searched_from_minimum(x, block, 15, false); }
void searched_q5_1(const float* x, uint8_t* block) { searched_from_minimum(x, block, 31, true); }

constexpr BlockType kTypes[] = {{"q4_0", 2, kValues, 18, q4_0, searched_q4_0},
                                {"q4_1", 3, kValues, 20, q4_1, searched_q4_1},
                                {"q5_0", 6, kValues, 22, q5_0, searched_q5_0},
                                {"q5_1", 7, kValues, 24, q5_1, searched_q5_1},
                                {"q8_0", 8, kValues, 34, q8_0, searched_q8_0},
                                {"q4_k", 12, 256, 144, plain_q4_k, searched_q4_k},
                                {"q5_k", 13, 256, 176, plain_q5_k, searched_q5_k},
                                {"q6_k", 14, 256, 210, plain_q6_k, searched_q6_k}};

}  // namespace

const BlockType* find_block_type(int64_t type) {
  for (const BlockType& each : kTypes)
    if (each.type == type) return &each;
  return nullptr;
}

const BlockType* find_block_type(std::string_view name) {
  for (const BlockType& each : kTypes)
    if (name.size() == std::strlen(each.name) &&
        std::equal(name.begin(), name.end(), each.name, [](char a, char b) {
          return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
        }))
      return &each;
  return nullptr;
}

std::vector<std::string> block_type_names() {
  std::vector<std::string> out;
  for (const BlockType& each : kTypes) out.emplace_back(each.name);
  return out;
}

std::vector<uint8_t> quantize(const BlockType& type, std::span<const float> values,
                              BlockScales scales) {
  const auto count = static_cast<int64_t>(values.size());
  ensure(count % type.values == 0, "quantize: ", count, " values do not fill whole blocks");
  std::vector<uint8_t> out(static_cast<size_t>(count / type.values * type.bytes));
  const auto rule = scales == BlockScales::kPlain ? type.plain : type.searched;
  parallel_for(count / type.values, 256, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      rule(values.data() + b * type.values, out.data() + b * type.bytes);
  });
  return out;
}

}  // namespace paddle::formats::gguf
