#pragma once
// The four models that cut a pre-tokenized piece into tokens: BPE, WordPiece, whole words, and
// Unigram. Each appends ids to a list and keeps a reference to the vocabulary, which must outlive
// it.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace paddle::tokenizers {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Valid UTF-8, not empty.
  virtual void encode(std::string_view piece, std::vector<TokenId>& ids) const = 0;
};

/// Ids of <0x00> … <0xFF>; nullopt unless the vocabulary has all of them.
std::optional<std::array<TokenId, 256>> byte_tokens(const Vocabulary& vocabulary);

/// Byte-pair encoding (Sennrich et al., 2016) by a list of merges, the first of which has priority.
struct BpeOptions {
  std::optional<TokenId> unknown = {};
  std::string continuing_prefix = "";  ///< of tokens that do not begin a word
  std::string end_suffix = "";         ///< of tokens that end a word
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  ///< a piece that is a token is not cut
  bool skip_missing = false;   ///< ignore merges of tokens that the vocabulary lacks
};
using Merge = std::pair<std::string, std::string>;
std::unique_ptr<TokenModel> make_bpe(const Vocabulary& vocabulary, std::vector<Merge> merges,
                                     const BpeOptions& options);

/// BPE without a list of merges: neighbors whose concatenation is a token are merged, the highest
/// score first (SentencePiece), or the lowest rank first (tiktoken; scores are negated ranks).
struct ScoreBpeOptions {
  std::optional<TokenId> unknown = {};
  bool from_bytes = false;        ///< begins with bytes (tiktoken), not with characters
  bool byte_fallback = false;     ///< unknown characters become <0x..> tokens
  bool whole_pieces = false;      ///< a piece that is a token is not cut
  std::vector<bool> unused = {};  ///< by id: tokens that only serve as steps of merges
};
std::unique_ptr<TokenModel> make_score_bpe(const Vocabulary& vocabulary, std::vector<float> scores,
                                           ScoreBpeOptions options);

/// Greedy longest match (BERT).
std::unique_ptr<TokenModel> make_word_piece(const Vocabulary& vocabulary, TokenId unknown,
                                            std::string continuing_prefix, size_t max_characters);

std::unique_ptr<TokenModel> make_word_level(const Vocabulary& vocabulary,
                                            std::optional<TokenId> unknown);

/// The most likely segmentation under a unigram model (Kudo, 2018).
struct UnigramOptions {
  std::optional<TokenId> unknown = {};
  bool byte_fallback = false;
  bool single_precision = false;  ///< sums in float32, as SentencePiece does
};
std::unique_ptr<TokenModel> make_unigram(std::vector<std::pair<std::string, double>> pieces,
                                         const UnigramOptions& options,
                                         const Vocabulary& vocabulary);

}  // namespace paddle::tokenizers
