#pragma once
// Quantization to ggml's k-quants: blocks of 256 values whose parts of 32 or 16 have scales of a
// few bits. Values that are not finite become 0.

#include <cstdint>

namespace paddle::formats::gguf {

/// With the bytes of ggml's reference for values below 1e7, whose scales have the least error
/// weighted by the size of values.
void plain_q4_k(const float* values, uint8_t* block);
void plain_q5_k(const float* values, uint8_t* block);
void plain_q6_k(const float* values, uint8_t* block);

/// With scales of the least squared error.
void searched_q4_k(const float* values, uint8_t* block);
void searched_q5_k(const float* values, uint8_t* block);
void searched_q6_k(const float* values, uint8_t* block);

}  // namespace paddle::formats::gguf
