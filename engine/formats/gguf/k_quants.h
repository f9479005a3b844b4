#pragma once
// Quantization to ggml's k-quants: blocks of 256 values whose parts of 32 or 16 have scales of a
// few bits. Scales are searched for the least squared error. Values that are not finite become 0.

#include <cstdint>

namespace paddle::formats::gguf {

void quantize_q4_k(const float* values, uint8_t* block);
void quantize_q5_k(const float* values, uint8_t* block);
void quantize_q6_k(const float* values, uint8_t* block);

}  // namespace paddle::formats::gguf
