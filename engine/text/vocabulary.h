#pragma once
// The tokens of a tokenizer by id and by text, and prefix search over a set of texts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace paddle::tokenizers {

using TokenId = int32_t;

/// Largest accepted id: a hostile file must not make a table of billions of entries.
inline constexpr int64_t kMaxTokenId = (int64_t{1} << 22) - 1;

/// Two ids as one key.
inline uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class Vocabulary {
 public:
  /// The first id of a text wins, the last text of an id. kModel if the id is out of range.
  void add(std::string_view text, int64_t id);
  std::optional<TokenId> find(std::string_view text) const;
  /// nullptr if there is no such id.
  const std::string* token(int64_t id) const;
  /// Largest id + 1.
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }

 private:
  std::vector<std::string> tokens_;
  std::vector<bool> used_;
  std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>> ids_;
};

/// Finds which texts of a set are prefixes of a text.
class PrefixIndex {
 public:
  PrefixIndex() = default;
  /// Texts with a value each; empty texts are ignored.
  explicit PrefixIndex(std::vector<std::pair<std::string, int32_t>> texts);

  /// Calls `callback(length, value)` for each prefix of `text`, the shortest first.
  template <class Callback>
  void for_each_prefix(std::string_view text, Callback&& callback) const {
    if (text.empty() || texts_.empty()) return;
    const auto first = static_cast<unsigned char>(text[0]);
    size_t low = first_byte_[first], high = first_byte_[first + 1U];
    for (size_t depth = 1; low < high; ++depth) {
      for (; low < high && texts_[low].first.size() == depth; ++low)
        callback(depth, texts_[low].second);
      if (depth == text.size()) return;
      narrow(low, high, depth, static_cast<unsigned char>(text[depth]));
    }
  }
  /// The longest prefix of `text`: its length and value.
  std::optional<std::pair<size_t, int32_t>> longest_prefix(std::string_view text) const;
  bool empty() const { return texts_.empty(); }

 private:
  /// Narrows [low, high), texts with a common prefix of `depth` bytes, to those whose next byte is
  /// `byte`.
  void narrow(size_t& low, size_t& high, size_t depth, unsigned char byte) const;
  std::vector<std::pair<std::string, int32_t>> texts_;  ///< sorted bytewise
  std::vector<size_t> first_byte_;                      ///< range of texts by their first byte
};

}  // namespace paddle::tokenizers
