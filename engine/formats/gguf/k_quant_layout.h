#pragma once
// Where ggml's k-quants keep scales and levels. Blocks have 256 values: in q4_k and q5_k 8 parts of
// 32 with a scale and an offset each, in q6_k 16 parts of 16 with a scale each.

#include <array>
#include <cstdint>

namespace paddle::formats::gguf {

inline constexpr int kKBlock = 256;
inline constexpr int kAffinePart = 32, kAffineParts = kKBlock / kAffinePart;
inline constexpr int kSignedPart = 16, kSignedParts = kKBlock / kSignedPart;

/// Of values: up to 15, 31 or 63.
using KLevels = std::array<uint8_t, kKBlock>;

/// Writes a value as float16 and returns what that holds. Scales beyond float16 are cut.
float put_clamped_half(uint8_t* to, float value);
/// Eight scales and eight offsets of 6 bits in 12 bytes.
void put_six_bits(const int* scales, const int* offsets, uint8_t* to);
void put_q4_levels(const KLevels& levels, uint8_t* block);
void put_q5_levels(const KLevels& levels, uint8_t* block);
void put_q6_levels(const KLevels& levels, uint8_t* block);

}  // namespace paddle::formats::gguf
