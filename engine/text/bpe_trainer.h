#pragma once
// Learns a byte-level BPE tokenizer from texts (Sennrich et al., "Neural Machine Translation of
// Rare Words with Subword Units", 2016; bytes as in GPT-2). Merges, their order and the ids are
// those of the trainer in Hugging Face's `tokenizers`.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace paddle::tokenizers {

struct BpeTrainingOptions {
  int64_t vocabulary_size = 8000;  ///< special tokens, 256 bytes, and a token for each merge
  int64_t min_count = 2;           ///< of a pair that is merged
  std::vector<std::string> special_tokens = {"<|endoftext|>"};  ///< ids 0, 1, …
  /// Bytes of distinct words that are kept; beyond them the rarest are dropped.
  size_t max_word_bytes = size_t{128} << 20;
};

struct TrainedBpe {
  std::vector<std::string> tokens;  ///< by id, bytes written as their characters (byte_alphabet.h)
  std::vector<std::pair<TokenId, TokenId>> merges;
  size_t special_tokens = 0;   ///< how many of the tokens are special: the first
  int64_t distinct_words = 0;  ///< that the merges were counted on
  int64_t dropped_words = 0;   ///< rare words that found no room
};

class BpeTrainer {
 public:
  /// kUsage for a vocabulary that does not hold the special tokens and all bytes, or is larger than
  /// tokenizers may be, and for special tokens that are empty or given twice.
  explicit BpeTrainer(BpeTrainingOptions options);
  /// Counts the words of a text of any length. Special tokens in it separate texts.
  void add(std::string_view text);
  /// Fewer tokens than asked for where no pair occurs often enough.
  TrainedBpe train() const;

 private:
  void add_section(std::string_view section);
  void count(std::string_view word);
  void drop_rare_words();

  BpeTrainingOptions options_;
  std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>> words_;
  size_t word_bytes_ = 0;
  int64_t rare_ = 0;  ///< words of at most this count were dropped
  int64_t dropped_ = 0;
};

/// The file tokenizer.json of Hugging Face's `tokenizers`.
std::string tokenizer_json(const TrainedBpe& trained);

}  // namespace paddle::tokenizers
