#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/models.h"
#include "text/unicode.h"

namespace paddle::tokenizers {

namespace {

constexpr double kUnknownPenalty = 10;

class Unigram final : public TokenModel {
 public:
  Unigram(std::vector<std::pair<std::string, double>> pieces, const UnigramOptions& options,
          const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), options_(options), bytes_(byte_tokens(vocabulary)) {
    std::vector<std::pair<std::string, int32_t>> texts;
    double lowest = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < pieces.size(); ++i) {
      lowest = std::min(lowest, pieces[i].second);
      scores_.push_back(pieces[i].second);
      texts.emplace_back(std::move(pieces[i].first), static_cast<int32_t>(i));
    }
    unknown_score_ = rounded(lowest - kUnknownPenalty);
    index_ = PrefixIndex(std::move(texts));
  }

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    struct Node {
      double score = 0;
      size_t begin = 0;
      int32_t id = -1;  ///< -1: unknown
      bool reached = false;
    };
    std::vector<Node> best(piece.size() + 1);  // the best segmentation that ends at a byte
    best[0].reached = true;
    const auto improve = [&](size_t begin, size_t length, int32_t id, double score) {
      Node& end = best[begin + length];
      const double sum = rounded(score + best[begin].score);
      if (!end.reached || sum > end.score) end = {sum, begin, id, true};
    };
    for (size_t begin = 0; begin < piece.size();) {
      const size_t character = std::max<size_t>(utf8_character(piece, begin).length, 1);
      bool single = false;
      index_.for_each_prefix(piece.substr(begin), [&](size_t length, int32_t id) {
        improve(begin, length, id, scores_[static_cast<size_t>(id)]);
        single |= length == character;
      });
      if (!single) improve(begin, character, -1, unknown_score_);
      begin += character;
    }
    std::vector<const Node*> path;
    for (size_t end = piece.size(); end > 0; end = path.back()->begin) path.push_back(&best[end]);
    for (size_t i = path.size(); i-- > 0;) {
      const Node& node = *path[i];
      if (node.id >= 0) {
        ids.push_back(node.id);
        continue;
      }
      // Neighboring unknown characters are one token.
      while (i > 0 && path[i - 1]->id < 0) --i;
      const size_t end = i == 0 ? piece.size() : path[i - 1]->begin;
      append_unknown(piece.substr(node.begin, end - node.begin), ids);
    }
  }

 private:
  double rounded(double value) const {
    return options_.single_precision ? static_cast<double>(static_cast<float>(value)) : value;
  }

  void append_unknown(std::string_view text, std::vector<TokenId>& ids) const {
    if (const auto id = vocabulary_.find(text)) {
      ids.push_back(*id);
    } else if (options_.byte_fallback && bytes_) {
      for (const char c : text) ids.push_back((*bytes_)[static_cast<unsigned char>(c)]);
    } else if (options_.unknown) {
      ids.push_back(*options_.unknown);
    } else {
      fail(ErrorCode::kData, "'", unicode::beginning(text),
           "' is not in the vocabulary, which has no token for unknown characters");
    }
  }

  const Vocabulary& vocabulary_;
  UnigramOptions options_;
  std::optional<std::array<TokenId, 256>> bytes_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  PrefixIndex index_;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(std::vector<std::pair<std::string, double>> pieces,
                                         const UnigramOptions& options,
                                         const Vocabulary& vocabulary) {
  return std::make_unique<Unigram>(std::move(pieces), options, vocabulary);
}

}  // namespace paddle::tokenizers
