#pragma once
// Tokens of the body language: a body's text becomes names, numbers, strings, operators and the
// line structure (NEWLINE, INDENT, DEDENT), each with its place in the file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lang/config_types.h"

namespace paddle::lang {

enum class TokenKind : uint8_t {
  kName,
  kKeyword,
  kInteger,
  kReal,
  kImaginary,  ///< `2j`, with the number in `real`
  kString,
  kOperator,
  kNewline,
  kIndent,
  kDedent,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  ///< the word, the operator, the string's value, the number as written
  int64_t integer = 0;
  double real = 0;
  SourcePosition where;

  bool is(std::string_view word) const {
    return (kind == TokenKind::kOperator || kind == TokenKind::kKeyword) && text == word;
  }
  /// "'x'", "the end of the line", …: for messages.
  std::string describe() const;
};

/// Whether a word belongs to the grammar (`if`, `and`, `none`, `True`, …).
bool is_keyword(std::string_view word);
/// Words that no name may take: keywords, `training`, and Python's statements that the language
/// does not have.
bool is_reserved_word(std::string_view word);
/// A letter or underscore, then letters, digits and underscores; not reserved.
bool is_identifier(std::string_view word);

/// Splits a scalar's text. `single_line` texts (expressions) have no line structure: line ends
/// count as spaces. Throws kConfig at the offending character.
std::vector<Token> tokenize(const Node& scalar, bool single_line);

}  // namespace paddle::lang
