#pragma once
// A tokenizer: text to token ids and back. `load_tokenizer` reads the files that models come with.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/models.h"
#include "text/steps.h"
#include "text/vocabulary.h"

namespace paddle::tokenizers {

/// A token that is found in the text before it is cut, such as "<|im_end|>".
struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;      ///< not parsed in ordinary text, left out of decoded text
  bool normalized = false;   ///< searched in the normalized text
  bool single_word = false;  ///< not inside of words
  bool left_strip = false, right_strip = false;  ///< with the whitespace next to it
  bool verbatim = false;  ///< of a normalized one: its content is not normalized itself
};

struct EncodeOptions {
  /// Parses special tokens and adds the tokenizer's own beginning and end tokens. Otherwise text
  /// that looks like a special token is ordinary text.
  bool special = false;
  /// Parses special tokens without adding any: for rendered chat templates.
  bool parse_special = false;
};

class Tokenizer {
 public:
  /// kData for a tokenizer that makes far more of a text than there is.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Malformed UTF-8 becomes U+FFFD. Without `special`, special tokens are left out. kData for ids
  /// out of range.
  std::string decode(std::span<const TokenId> ids, bool special = false) const;

  /// The text of a token as the vocabulary spells it; nullptr if there is no such id.
  const std::string* token(TokenId id) const;
  std::optional<TokenId> find(std::string_view token) const;
  bool is_special(TokenId id) const;
  int64_t vocabulary_size() const { return size_; }  ///< largest id + 1
  const std::vector<AddedToken>& added_tokens() const { return added_; }
  /// The tokenizer's own tokens around a text.
  const std::vector<TokenId>& beginning_tokens() const { return prefix_; }
  const std::vector<TokenId>& end_tokens() const { return suffix_; }

  // Settings of the files for the tokenizer's use.
  std::optional<TokenId> beginning, end;
  std::string chat_template;  ///< empty if there is none
  /// Texts of further special tokens ("unk", "pad", "sep", "cls", "mask") that the files name.
  std::map<std::string, std::string> named_tokens;

 private:
  friend class TokenizerBuilder;
  void encode_section(std::string_view text, bool begins_text, bool special, TextBudget& budget,
                      std::vector<TokenId>& ids) const;
  void find_added(const PrefixIndex& index, std::string_view text, bool special,
                  const std::function<void(std::string_view, bool)>& other,
                  std::vector<TokenId>& ids) const;

  /// Of the model, which refers to it. Added tokens need not be in it: a special token is not found
  /// in ordinary text even where the model could assemble it.
  std::unique_ptr<Vocabulary> vocabulary_ = std::make_unique<Vocabulary>();
  int64_t size_ = 0;
  std::vector<AddedToken> added_;
  Vocabulary added_vocabulary_;
  std::vector<bool> special_;                 ///< by id
  PrefixIndex raw_added_, normalized_added_;  ///< values are indices of `added_`
  std::vector<Normalizer> normalizers_;
  std::vector<PreTokenizer> pre_tokenizers_;
  std::unique_ptr<TokenModel> model_;
  std::vector<Decoder> decoders_;
  std::vector<TokenId> prefix_, suffix_;  ///< added with EncodeOptions::special
};

/// Assembles a tokenizer; used by the readers of files.
class TokenizerBuilder {
 public:
  Vocabulary& vocabulary() { return *tokenizer_.vocabulary_; }
  void add_token(AddedToken token) { tokenizer_.added_.push_back(std::move(token)); }
  void add(Normalizer step) { tokenizer_.normalizers_.push_back(std::move(step)); }
  void add(PreTokenizer step) { tokenizer_.pre_tokenizers_.push_back(std::move(step)); }
  void add(Decoder step) { tokenizer_.decoders_.push_back(std::move(step)); }
  void set_model(std::unique_ptr<TokenModel> model) { tokenizer_.model_ = std::move(model); }
  /// Tokens around a single text.
  void set_surrounding(std::vector<TokenId> prefix, std::vector<TokenId> suffix);
  Tokenizer& tokenizer() { return tokenizer_; }
  Tokenizer build();

 private:
  Tokenizer tokenizer_;
};

/// Decodes a growing list of ids piece by piece: characters are held back until they are complete.
/// The pieces together are exactly `decode` of all ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool special = false)
      : tokenizer_(tokenizer), special_(special) {}
  /// Decodes what follows these ids: their text is not returned, but decoders that treat the
  /// beginning of a text differently know that this is none. Ids without a token are left out.
  void begin_after(std::span<const TokenId> ids);
  /// Whether the next token is the first one of the text.
  bool at_beginning() const;
  std::string add(TokenId id);
  /// The text that is still held back.
  std::string finish();

 private:
  std::string flush(bool all);
  size_t context_begin() const;
  bool has_text(TokenId id) const { return special_ || !tokenizer_.is_special(id); }
  const Tokenizer& tokenizer_;
  bool special_;
  std::vector<TokenId> ids_;  ///< those since `anchor_`
  size_t shown_ = 0;          ///< ids whose text was returned
};

}  // namespace paddle::tokenizers
