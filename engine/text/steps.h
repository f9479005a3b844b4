#pragma once
// The steps around a token model, under the names of Hugging Face's tokenizer.json: normalizers
// rewrite a text, pre-tokenizers cut it into pieces, decoders turn tokens back into text. Each is
// charged for what it makes, as files can ask for long replacements.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.h"
#include "text/text_budget.h"
#include "text/unicode.h"

namespace paddle::tokenizers {

using Normalizer = std::function<void(std::string&, TextBudget&)>;

struct BertNormalizerOptions {
  bool clean_text = true, handle_chinese_chars = true, strip_accents = true, lowercase = true;
};
Normalizer bert_normalizer(const BertNormalizerOptions& options);
Normalizer unicode_normalizer(unicode::Form form);
Normalizer lowercase_normalizer();
Normalizer strip_normalizer(bool left, bool right);
Normalizer strip_accents_normalizer();
Normalizer nmt_normalizer();
Normalizer replace_normalizer(Pattern pattern, std::string content);
/// Puts `prefix` in front of a text that is not empty.
Normalizer prepend_normalizer(std::string prefix);
Normalizer byte_level_normalizer();
/// SentencePiece's compiled table of replacements, as Hugging Face applies it (by grapheme
/// clusters) or as SentencePiece does (longest match). kModel if the table is damaged.
Normalizer precompiled_normalizer(std::string_view charsmap, bool longest_match);
/// SentencePiece's remove_extra_whitespaces: one space for several, none at the ends.
Normalizer squeeze_spaces_normalizer();
/// SentencePiece's form of spaces: each is U+2581, and one more stands in front of the text.
Normalizer escape_spaces_normalizer(bool prefix);

struct Piece {
  std::string text;
  bool begins_text = false;  ///< at the beginning of the whole text
};
using Pieces = std::vector<Piece>;
using PreTokenizer = std::function<void(Pieces&, TextBudget&)>;

/// The pieces that the matches of a split become.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
PreTokenizer split_pre_tokenizer(Pattern pattern, SplitBehavior behavior, bool invert);
/// Splits at the code points that satisfy the predicate; each is a match of its own.
PreTokenizer character_pre_tokenizer(std::function<bool(uint32_t)> is_match,
                                     SplitBehavior behavior);
PreTokenizer bert_pre_tokenizer();
PreTokenizer punctuation_pre_tokenizer(SplitBehavior behavior);
PreTokenizer byte_level_pre_tokenizer(bool add_prefix_space, bool use_pattern);
PreTokenizer whitespace_pre_tokenizer();
enum class PrependScheme { kAlways, kFirst, kNever };
PreTokenizer metaspace_pre_tokenizer(std::string replacement, PrependScheme scheme, bool split);
PreTokenizer fixed_length_pre_tokenizer(size_t characters);
/// The pattern of GPT-2.
const Pattern& gpt2_pattern();
void split_piece(const Piece& piece, const std::vector<std::pair<size_t, size_t>>& matches,
                 SplitBehavior behavior, bool invert, Pieces& out);

/// Rewrites a list of tokens, whose concatenation is the decoded text.
using Decoder = std::function<void(std::vector<std::string>&, TextBudget&)>;

Decoder byte_level_decoder();
Decoder word_piece_decoder(std::string prefix, bool cleanup);
Decoder metaspace_decoder(std::string replacement, PrependScheme scheme);
Decoder bpe_decoder(std::string suffix);
Decoder ctc_decoder(std::string pad, std::string delimiter, bool cleanup);
Decoder replace_decoder(Pattern pattern, std::string content);
Decoder byte_fallback_decoder();
Decoder fuse_decoder();
Decoder strip_decoder(std::string content, size_t start, size_t stop);
/// Removes the U+2581 that begins the first token, or all that begin the text.
Decoder leading_space_decoder(bool all);
/// Writes one token as another text.
Decoder rename_decoder(std::string token, std::string text);
/// Tokens with spaces in between, for tokenizers without a decoder.
Decoder space_decoder();

}  // namespace paddle::tokenizers
