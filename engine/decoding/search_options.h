#pragma once
// Options of autoregressive token generation, under the names of Hugging Face's GenerationConfig.

#include <cstdint>
#include <optional>
#include <vector>

namespace paddle::decoding {

using Tokens = std::vector<int32_t>;

/// Special tokens of a speech model that emits timestamps (Whisper).
struct TimestampTokens {
  int32_t start_of_transcript, translate, transcribe, start_of_lm, no_timestamps;
  int32_t first_timestamp;  ///< time 0; later tokens are steps of 20 ms
};

struct SearchOptions {
  int64_t batch = 0;
  int64_t num_beams = 1;             ///< rows per sample
  int64_t num_return_sequences = 1;  ///< at most `num_beams`
  int64_t min_length = 0, max_length = 0;
  int64_t vocabulary_size = 0;
  int32_t eos_token = -1, pad_token = -1;
  float length_penalty = 1, repetition_penalty = 1, presence_penalty = 0, temperature = 1;
  int64_t no_repeat_ngram_size = 0;  ///< 0: n-grams may repeat
  bool early_stopping = false;
  Tokens vocabulary_mask;         ///< [vocabulary], 0: never generated; may be empty
  Tokens prefix_vocabulary_mask;  ///< [batch, vocabulary], 0: not the first token; may be empty
  Tokens presence_mask;           ///< [batch, vocabulary], times `presence_penalty`; may be empty
  std::optional<TimestampTokens> timestamps;

  int64_t rows() const { return batch * num_beams; }
};

}  // namespace paddle::decoding
