#include <algorithm>
#include <queue>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/models.h"
#include "text/unicode.h"

namespace paddle::tokenizers {

std::optional<std::array<TokenId, 256>> byte_tokens(const Vocabulary& vocabulary) {
  std::array<TokenId, 256> ids;
  for (size_t b = 0; b < 256; ++b) {
    const auto id = vocabulary.find(byte_token(static_cast<unsigned char>(b)));
    if (!id) return std::nullopt;
    ids[b] = *id;
  }
  return ids;
}

namespace {

/// A run of symbols as a doubly linked list; merged symbols drop out of it.
struct Symbol {
  TokenId id;
  int32_t previous, next;  ///< -1 at the ends
  uint32_t begin, length;  ///< bytes of the piece; length 0: merged into another
};

/// A possible merge of a symbol with its successor. The queue's top has the highest priority, and
/// among equals the leftmost.
template <class Priority>
struct Candidate {
  Priority priority;
  int32_t left, right;
  TokenId id;
  uint32_t length;  ///< of both together when this was found
  bool operator<(const Candidate& other) const {
    return priority != other.priority ? priority < other.priority : left > other.left;
  }
};

/// Merges neighbors until nothing can be merged. `find(left, right)` returns the priority and the
/// id of a merge.
template <class Priority, class Find>
void merge_all(std::vector<Symbol>& symbols, Find&& find) {
  std::vector<Candidate<Priority>> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate<Priority>> queue({}, std::move(storage));
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const Symbol &a = symbols[static_cast<size_t>(left)], &b = symbols[static_cast<size_t>(right)];
    if (const auto merge = find(a, b))
      queue.push({merge->first, left, right, merge->second, a.length + b.length});
  };
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) consider(i, i + 1);
  while (!queue.empty()) {
    const auto top = queue.top();
    queue.pop();
    Symbol &left = symbols[static_cast<size_t>(top.left)],
           &right = symbols[static_cast<size_t>(top.right)];
    // Symbols only grow, so an unchanged sum of lengths means that neither was merged since.
    if (left.length == 0 || right.length == 0 || left.next != top.right ||
        left.length + right.length != top.length)
      continue;
    left.id = top.id;
    left.length += right.length;
    left.next = right.next;
    right.length = 0;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = top.left;
    consider(left.previous, top.left);
    consider(top.left, left.next);
  }
}

void append_symbol(std::vector<Symbol>& symbols, TokenId id, size_t begin, size_t length) {
  const auto i = static_cast<int32_t>(symbols.size());
  if (i > 0) symbols.back().next = i;
  symbols.push_back({id, i - 1, -1, static_cast<uint32_t>(begin), static_cast<uint32_t>(length)});
}

class MergeBpe final : public TokenModel {
 public:
  MergeBpe(const Vocabulary& vocabulary, std::vector<Merge> merges, const BpeOptions& options)
      : vocabulary_(vocabulary), options_(options), bytes_(byte_tokens(vocabulary)) {
    merges_.reserve(merges.size());
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const auto& [a, b] = merges[rank];
      const std::string joined =
          a + (b.starts_with(options.continuing_prefix) ? b.substr(options.continuing_prefix.size())
                                                        : b);
      const auto left = vocabulary.find(a), right = vocabulary.find(b),
                 both = vocabulary.find(joined);
      if ((!left || !right || !both) && options.skip_missing) continue;
      if (!left || !right || !both)
        fail(ErrorCode::kModel, "merge ", rank, " ('", a, "' and '", b, "'): '",
             !left    ? a
             : !right ? b
                      : joined,
             "' is not in the vocabulary");
      merges_[pair_key(*left, *right)] = {static_cast<int32_t>(rank), *both};
    }
  }

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    if (options_.ignore_merges)
      if (const auto id = vocabulary_.find(piece)) {
        ids.push_back(*id);
        return;
      }
    std::vector<Symbol> symbols = characters(piece);
    merge_all<int32_t>(
        symbols,
        [&](const Symbol& a, const Symbol& b) -> std::optional<std::pair<int32_t, TokenId>> {
          const auto it = merges_.find(pair_key(a.id, b.id));
          if (it == merges_.end()) return std::nullopt;
          return std::pair(-it->second.first, it->second.second);
        });
    for (const Symbol& s : symbols)
      if (s.length > 0) ids.push_back(s.id);
  }

 private:
  std::vector<Symbol> characters(std::string_view piece) const {
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    std::string decorated;
    bool after_unknown = false;
    size_t begin = 0;
    unicode::for_each(piece, [&](uint32_t, std::string_view character) {
      const bool first = begin == 0, last = begin + character.size() == piece.size();
      std::string_view text = character;
      if ((!first && !options_.continuing_prefix.empty()) ||
          (last && !options_.end_suffix.empty())) {
        decorated.clear();
        if (!first) decorated += options_.continuing_prefix;
        decorated += character;
        if (last) decorated += options_.end_suffix;
        text = decorated;
      }
      if (const auto id = vocabulary_.find(text)) {
        append_symbol(symbols, *id, begin, character.size());
        after_unknown = false;
      } else if (options_.byte_fallback && bytes_) {
        for (const char c : text)
          append_symbol(symbols, (*bytes_)[static_cast<unsigned char>(c)], begin, 1);
        after_unknown = false;
      } else if (options_.unknown) {
        if (after_unknown && options_.fuse_unknown)
          symbols.back().length += static_cast<uint32_t>(character.size());
        else
          append_symbol(symbols, *options_.unknown, begin, character.size());
        after_unknown = true;
      }
      begin += character.size();
    });
    return symbols;
  }

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  std::optional<std::array<TokenId, 256>> bytes_;
  std::unordered_map<uint64_t, std::pair<int32_t, TokenId>> merges_;  ///< rank and new id
};

class ScoreBpe final : public TokenModel {
 public:
  ScoreBpe(const Vocabulary& vocabulary, std::vector<float> scores, ScoreBpeOptions options)
      : vocabulary_(vocabulary),
        scores_(std::move(scores)),
        options_(std::move(options)),
        bytes_(byte_tokens(vocabulary)) {
    options_.unused.resize(static_cast<size_t>(vocabulary.size()));
    scores_.resize(static_cast<size_t>(vocabulary.size()));
  }

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    if (options_.whole_pieces)
      if (const auto id = vocabulary_.find(piece)) {
        ids.push_back(*id);
        return;
      }
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    for (size_t i = 0; i < piece.size();) {
      const size_t length =
          options_.from_bytes ? 1 : std::max<size_t>(utf8_character(piece, i).length, 1);
      append_symbol(symbols, vocabulary_.find(piece.substr(i, length)).value_or(-1), i, length);
      i += length;
    }
    // The parts of merged tokens that are unused, to take these apart again.
    std::unordered_map<uint64_t, uint32_t> parts;
    merge_all<float>(
        symbols, [&](const Symbol& a, const Symbol& b) -> std::optional<std::pair<float, TokenId>> {
          const auto id = vocabulary_.find(piece.substr(a.begin, a.length + b.length));
          if (!id) return std::nullopt;
          if (options_.unused[static_cast<size_t>(*id)])
            parts[pair_key(static_cast<TokenId>(a.begin),
                           static_cast<TokenId>(a.length + b.length))] = a.length;
          return std::pair(scores_[static_cast<size_t>(*id)], *id);
        });
    bool after_unknown = false;
    for (const Symbol& s : symbols)
      if (s.length > 0) append(piece, s.begin, s.length, s.id, parts, ids, after_unknown);
  }

 private:
  void append(std::string_view piece, uint32_t begin, uint32_t length, TokenId id,
              const std::unordered_map<uint64_t, uint32_t>& parts, std::vector<TokenId>& ids,
              bool& after_unknown) const {
    if (id >= 0 && options_.unused[static_cast<size_t>(id)]) {
      const auto it =
          parts.find(pair_key(static_cast<TokenId>(begin), static_cast<TokenId>(length)));
      if (it != parts.end()) {
        const auto find = [&](uint32_t from, uint32_t size) {
          return vocabulary_.find(piece.substr(from, size)).value_or(-1);
        };
        const uint32_t left = it->second;
        append(piece, begin, left, find(begin, left), parts, ids, after_unknown);
        append(piece, begin + left, length - left, find(begin + left, length - left), parts, ids,
               after_unknown);
        return;
      }
    }
    const bool unknown = id < 0 && !(options_.byte_fallback && bytes_);
    if (id >= 0)
      ids.push_back(id);
    else if (!unknown)
      for (const char c : piece.substr(begin, length))
        ids.push_back((*bytes_)[static_cast<unsigned char>(c)]);
    else if (options_.unknown && !after_unknown)  // one token for neighboring unknown characters
      ids.push_back(*options_.unknown);
    after_unknown = unknown;
  }

  const Vocabulary& vocabulary_;
  std::vector<float> scores_;
  ScoreBpeOptions options_;
  std::optional<std::array<TokenId, 256>> bytes_;
};

}  // namespace

std::unique_ptr<TokenModel> make_bpe(const Vocabulary& vocabulary, std::vector<Merge> merges,
                                     const BpeOptions& options) {
  return std::make_unique<MergeBpe>(vocabulary, std::move(merges), options);
}

std::unique_ptr<TokenModel> make_score_bpe(const Vocabulary& vocabulary, std::vector<float> scores,
                                           ScoreBpeOptions options) {
  return std::make_unique<ScoreBpe>(vocabulary, std::move(scores), std::move(options));
}

}  // namespace paddle::tokenizers
