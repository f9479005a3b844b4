#pragma once
// A vocabulary: strings and their numbers, for text (characters or bytes) and for categorical
// columns. Number i is the i-th token.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace paddle::data {

class Vocabulary {
 public:
  Vocabulary() = default;
  /// Tokens must differ and be UTF-8; kData otherwise.
  explicit Vocabulary(std::vector<std::string> tokens);
  /// The distinct characters (UTF-8 code points) of a text, in code point order. kData, with the
  /// line and column, where the text is not UTF-8; `name` is the file.
  static Vocabulary characters_of(std::string_view text, const std::string& name);
  /// The 256 bytes, in order.
  static Vocabulary bytes();
  /// A JSON list of strings, or one token a line.
  static Vocabulary read(const std::string& path);
  /// A JSON list; the tokens of `bytes()` are written as the code points of the same value.
  std::string json() const;

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::string& token(int64_t id) const { return tokens_[static_cast<size_t>(id)]; }
  std::optional<int64_t> find(std::string_view token) const;
  bool is_bytes() const { return is_bytes_; }

  /// Character by character (byte by byte for a byte vocabulary). A character that is not in the
  /// vocabulary is kData, with its position.
  std::vector<int64_t> encode(std::string_view text) const;
  std::string decode(const std::vector<int64_t>& ids) const;

 private:
  Vocabulary(std::vector<std::string> tokens, bool is_bytes);
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> index_;
  bool is_bytes_ = false;
};

/// Where text stops being well-formed UTF-8, or nullopt.
std::optional<size_t> invalid_utf8(std::string_view text);
/// Text for a message: bytes that are not UTF-8 as "\xE9".
std::string printable(std::string_view text);
/// Bytes of the UTF-8 character that starts at `at`; 1 where there is no valid one.
size_t character_length(std::string_view text, size_t at);

}  // namespace paddle::data
