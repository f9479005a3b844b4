#include "lang/syntax/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace paddle::lang {
namespace {

constexpr std::array<std::string_view, 20> kKeywords = {
    "and",   "or",       "not",    "in",   "is",   "if",    "elif", "else", "for",   "while",
    "break", "continue", "return", "pass", "true", "false", "none", "True", "False", "None"};
constexpr std::array<std::string_view, 17> kForeign = {
    "def",   "class",  "lambda", "import", "from",     "with",  "try",   "except", "finally",
    "raise", "assert", "del",    "global", "nonlocal", "yield", "async", "await"};

/// Longest first, so that `**=` is not read as `**` and `=`.
constexpr std::array<std::string_view, 37> kOperators = {
    "**=", "//=", "...", "**", "//", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=",
    "%=",  "@=",  "+",   "-",  "*",  "/",  "%",  "@",  "<",  ">",  "=",  "(",  ")",
    "[",   "]",   ",",   ":",  ".",  "{",  "}",  ";",  "->", ":=", "&&"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

class Lexer {
 public:
  Lexer(const Node& scalar, bool single_line)
      : text_(scalar.text), places_(scalar), single_line_(single_line) {}

  std::vector<Token> run() {
    bool line_start = !single_line_;
    while (true) {
      if (line_start && brackets_.empty()) {
        if (!indentation()) break;
        line_start = false;
      }
      skip_blanks();
      if (i_ >= text_.size()) break;
      if (text_[i_] == '\n') {
        if (!single_line_ && brackets_.empty()) {
          push(TokenKind::kNewline, i_, "");
          line_start = true;
        }
        ++i_;
        continue;
      }
      token();
    }
    finish();
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void reject(size_t offset, std::string message) const {
    throw Error(ErrorCode::kConfig, std::move(message), places_.at(offset).location());
  }

  Token& push(TokenKind kind, size_t offset, std::string_view text) {
    Token token;
    token.kind = kind;
    token.text = text;
    token.where = places_.at(offset);
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  char peek(size_t ahead = 0) const { return i_ + ahead < text_.size() ? text_[i_ + ahead] : '\0'; }

  void skip_blanks() {
    while (i_ < text_.size()) {
      if (text_[i_] == ' ' || text_[i_] == '\r' || text_[i_] == '\t') {
        ++i_;
      } else if (text_[i_] == '\n' && (single_line_ || !brackets_.empty())) {
        ++i_;
      } else if (text_[i_] == '#') {
        i_ = std::min(text_.find('\n', i_), text_.size());
      } else if (text_[i_] == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        i_ += peek(1) == '\r' ? 3 : 2;
      } else {
        return;
      }
    }
  }

  /// Reads the indentation of the next line that is not blank; false at the end of the text.
  bool indentation() {
    size_t start = i_;
    while (true) {
      start = i_;
      while (peek() == ' ') ++i_;
      if (peek() == '\t') reject(i_, "a tab in the indentation (use spaces)");
      const size_t content = i_;
      skip_line_rest();
      if (i_ >= text_.size()) return false;
      if (text_[i_] == '\n') {
        ++i_;
        continue;
      }
      i_ = content;
      break;
    }
    const size_t width = i_ - start;
    if (indents_.empty()) {
      indents_.push_back(width);
    } else if (width > indents_.back()) {
      if (indents_.size() > static_cast<size_t>(kMaxNesting)) {
        reject(i_, "more than 200 levels of nesting");
      }
      indents_.push_back(width);
      push(TokenKind::kIndent, i_, "");
    } else {
      while (indents_.size() > 1 && width < indents_.back()) {
        indents_.pop_back();
        push(TokenKind::kDedent, i_, "");
      }
      if (width != indents_.back()) {
        reject(i_, "this line's indentation matches no line above it");
      }
    }
    return true;
  }

  /// Blanks and a comment, so that `i_` stands at a line end if nothing else is on the line.
  void skip_line_rest() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++i_;
    if (peek() == '#') i_ = std::min(text_.find('\n', i_), text_.size());
  }

  void token() {
    const char c = text_[i_];
    if (is_letter(c)) return word();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') return string();
    for (const std::string_view op : kOperators) {
      if (!text_.substr(i_).starts_with(op)) continue;
      operator_token(op);
      return;
    }
    unknown_character();
  }

  void word() {
    const size_t start = i_;
    while (is_word(peek())) ++i_;
    const std::string_view word = text_.substr(start, i_ - start);
    push(is_keyword(word) ? TokenKind::kKeyword : TokenKind::kName, start, word);
  }

  void number() {
    const size_t start = i_;
    const bool hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    std::string digits;
    bool real = false;
    if (hex) i_ += 2;
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (c == '_') {
        if (digits.empty() || !is_word(peek(1)) || text_[i_ - 1] == '_') bad_number(start);
      } else if (is_digit(c) || (hex && is_word(c))) {
        digits += c;
      } else if (!hex && c == '.' && !real) {
        real = true;
        digits += c;
      } else if (!hex && (c == 'e' || c == 'E')) {
        real = true;
        digits += c;
        if (peek(1) == '-' || peek(1) == '+') digits += text_[++i_];
        if (!is_digit(peek(1))) bad_number(start);
        while (is_digit(peek(1)) || (peek(1) == '_' && is_digit(peek(2)))) {
          if (text_[++i_] != '_') digits += text_[i_];
        }
        ++i_;
        break;
      } else {
        break;
      }
      ++i_;
    }
    const bool imaginary = !hex && peek() == 'j' && !digits.empty();
    if (imaginary) {
      ++i_;
      real = true;
    }
    if (is_word(peek()) || (real && peek() == '.' && is_digit(peek(1)))) bad_number(start);
    const TokenKind kind = imaginary ? TokenKind::kImaginary
                           : real    ? TokenKind::kReal
                                     : TokenKind::kInteger;
    Token& token = push(kind, start, text_.substr(start, i_ - start));
    const char* first = digits.data();
    const char* last = first + digits.size();
    if (!real) {
      if (!hex && digits.size() > 1 && digits[0] == '0') bad_number(start);
      const auto result = std::from_chars(first, last, token.integer, hex ? 16 : 10);
      if (result.ec == std::errc::result_out_of_range) {
        reject(start, str("the number ", token.text, " does not fit in 64 bits"));
      }
      if (result.ec != std::errc() || result.ptr != last) bad_number(start);
      return;
    }
    const auto result = std::from_chars(first, last, token.real);
    if (result.ec == std::errc::result_out_of_range) {
      reject(start, str("the number ", token.text, " is out of the range of float64"));
    }
    if (result.ec != std::errc() || result.ptr != last) bad_number(start);
  }

  [[noreturn]] void bad_number(size_t start) {
    size_t end = start;
    while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) ++end;
    reject(start, str("'", text_.substr(start, end - start), "' is not a number"));
  }

  void string() {
    const size_t start = i_;
    const char quote = text_[i_++];
    std::string value;
    while (true) {
      if (i_ >= text_.size() || text_[i_] == '\n') {
        reject(start, "a string without its closing quote");
      }
      const char c = text_[i_++];
      if (c == quote) break;
      if (c != '\\') {
        value += c;
        continue;
      }
      switch (peek()) {
        case 'n':
          value += '\n';
          break;
        case 't':
          value += '\t';
          break;
        case '\\':
        case '\'':
        case '"':
          value += peek();
          break;
        default:
          reject(i_ - 1, "an unknown escape in a string (\\n \\t \\\\ \\' \\\" exist)");
      }
      ++i_;
    }
    push(TokenKind::kString, start, value);
  }

  void operator_token(std::string_view op) {
    if (op == "{" || op == "}") reject(i_, str("'", op, "' is not supported"));
    if (op == ";") reject(i_, "';' is not supported: write one statement per line");
    if (op == "->" || op == ":=") reject(i_, str("'", op, "' is not supported"));
    if (op == "&&") reject(i_, "'&&' is not supported (write 'and')");
    if (op == "(" || op == "[") {
      if (brackets_.size() >= static_cast<size_t>(kMaxNesting)) {
        reject(i_, "more than 200 levels of nesting");
      }
      brackets_.push_back({op[0], i_});
    } else if (op == ")" || op == "]") {
      const char opening = op == ")" ? '(' : '[';
      if (brackets_.empty()) reject(i_, str("'", op, "' without its '", opening, "'"));
      if (brackets_.back().first != opening) {
        const SourcePosition open = places_.at(brackets_.back().second);
        reject(i_, str("'", op, "' does not close the '", brackets_.back().first, "' of line ",
                       open.line, ", column ", open.column));
      }
      brackets_.pop_back();
    }
    push(TokenKind::kOperator, i_, op);
    i_ += op.size();
  }

  [[noreturn]] void unknown_character() {
    const char c = text_[i_];
    const char* hint = c == '!'                     ? " (write 'not')"
                       : c == '|' && peek(1) == '|' ? " (write 'or')"
                       : c == '&' || c == '|' || c == '^' || c == '~'
                           ? " (bitwise_and, bitwise_or, bitwise_xor, bitwise_not exist)"
                           : "";
    size_t length = 1;
    while (i_ + length < text_.size() &&
           (static_cast<unsigned char>(text_[i_ + length]) & 0xC0) == 0x80) {
      ++length;
    }
    reject(i_, str("the character '", text_.substr(i_, length), "' is not supported", hint));
  }

  void finish() {
    if (!brackets_.empty()) {
      reject(brackets_.back().second, str("'", brackets_.back().first, "' is never closed"));
    }
    if (!single_line_ && !tokens_.empty() && tokens_.back().kind != TokenKind::kNewline &&
        tokens_.back().kind != TokenKind::kDedent) {
      push(TokenKind::kNewline, text_.size(), "");
    }
    for (size_t k = 1; k < indents_.size(); ++k) push(TokenKind::kDedent, text_.size(), "");
    push(TokenKind::kEnd, text_.size(), "");
  }

  std::string_view text_;
  config::ScalarLocations places_;
  bool single_line_;
  size_t i_ = 0;
  std::vector<size_t> indents_;
  std::vector<std::pair<char, size_t>> brackets_;  ///< open ones with their offsets
  std::vector<Token> tokens_;
};

template <size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::string Token::describe() const {
  switch (kind) {
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kIndent:
      return "an indented line";
    case TokenKind::kDedent:
      return "the end of the indented lines";
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kString:
      return "the string '" + text + "'";
    default:
      return "'" + text + "'";
  }
}

bool is_keyword(std::string_view word) { return contains(kKeywords, word); }

bool is_reserved_word(std::string_view word) {
  return is_keyword(word) || contains(kForeign, word) || word == "training";
}

bool is_identifier(std::string_view word) {
  return !word.empty() && is_letter(word[0]) && std::all_of(word.begin(), word.end(), is_word) &&
         !is_reserved_word(word);
}

std::vector<Token> tokenize(const Node& scalar, bool single_line) {
  return Lexer(scalar, single_line).run();
}

}  // namespace paddle::lang
