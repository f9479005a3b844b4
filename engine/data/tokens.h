#pragma once
// Text of a column as tokens: words or characters, which a vocabulary numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paddle::data {

/// The name of the token in a vocabulary that stands for all others.
inline constexpr std::string_view kUnknownToken = "<unknown>";

enum class TokenKind {
  kWords,       ///< runs of letters, digits and apostrophes inside of them; other signs one by one
  kCharacters,  ///< Unicode code points
  kSpaces,      ///< what white space separates, such as the tags of words
};
/// "words", "characters" or "spaces".
std::string name_of(TokenKind kind);
std::optional<TokenKind> parse_token_kind(std::string_view name);

/// The lower case of Latin, Greek and Cyrillic letters; all other text stays.
std::string lowercase(std::string_view text);
/// At most `limit` tokens; the text must be UTF-8. White space separates words and is dropped.
std::vector<std::string_view> split_tokens(std::string_view text, TokenKind kind, int64_t limit);

/// A regular expression in RE2's syntax whose matches in a text, one after the other, are its
/// tokens.
std::string token_pattern(TokenKind kind);

}  // namespace paddle::data
