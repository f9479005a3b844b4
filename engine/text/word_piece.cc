#include <algorithm>

#include "base/error.h"
#include "text/models.h"
#include "text/unicode.h"

namespace paddle::tokenizers {

namespace {

class WordPiece final : public TokenModel {
 public:
  WordPiece(const Vocabulary& vocabulary, TokenId unknown, std::string prefix, size_t max)
      : vocabulary_(vocabulary), unknown_(unknown), prefix_(std::move(prefix)), max_(max) {}

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    std::vector<size_t> ends;  // of the characters
    unicode::for_each(piece, [&](uint32_t, std::string_view character) {
      ends.push_back((ends.empty() ? 0 : ends.back()) + character.size());
    });
    const size_t before = ids.size();
    if (ends.size() > max_) {
      ids.push_back(unknown_);
      return;
    }
    std::string text;
    for (size_t begin = 0, first = 0; begin < piece.size();) {
      std::optional<TokenId> found;
      size_t last = ends.size();
      for (; last > first && !found; --last) {
        text.assign(begin == 0 ? "" : prefix_);
        text += piece.substr(begin, ends[last - 1] - begin);
        found = vocabulary_.find(text);
      }
      if (!found) {
        ids.resize(before);
        ids.push_back(unknown_);
        return;
      }
      ids.push_back(*found);
      first = last + 1;
      begin = ends[last];
    }
  }

 private:
  const Vocabulary& vocabulary_;
  TokenId unknown_;
  std::string prefix_;
  size_t max_;
};

class WordLevel final : public TokenModel {
 public:
  WordLevel(const Vocabulary& vocabulary, std::optional<TokenId> unknown)
      : vocabulary_(vocabulary), unknown_(unknown) {}
  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    const auto id = vocabulary_.find(piece);
    if (!id && !unknown_)
      fail(ErrorCode::kData, "'", unicode::beginning(piece),
           "' is not in the vocabulary, which has no token for unknown words");
    ids.push_back(id ? *id : *unknown_);
  }

 private:
  const Vocabulary& vocabulary_;
  std::optional<TokenId> unknown_;
};

}  // namespace

std::unique_ptr<TokenModel> make_word_piece(const Vocabulary& vocabulary, TokenId unknown,
                                            std::string continuing_prefix, size_t max_characters) {
  return std::make_unique<WordPiece>(vocabulary, unknown, std::move(continuing_prefix),
                                     max_characters);
}

std::unique_ptr<TokenModel> make_word_level(const Vocabulary& vocabulary,
                                            std::optional<TokenId> unknown) {
  return std::make_unique<WordLevel>(vocabulary, unknown);
}

}  // namespace paddle::tokenizers
