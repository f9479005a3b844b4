#include "text/jinja/lexer.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace paddle::jinja {

void fail_at(const std::string& name, int line, const std::string& message) {
  throw Error(ErrorCode::kModel, message, {name, line, 0});
}

namespace {

constexpr size_t kMaxSource = size_t{1} << 20;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : name_(name) {
    if (source.size() > kMaxSource)
      fail_at(name, 0, str("a template of ", source.size(), " bytes; at most ", kMaxSource));
    const std::string valid = unicode::to_valid_utf8(source);
    for (size_t i = 0; i < valid.size(); ++i) {  // \r\n and \r are line ends
      if (valid[i] == '\r' && i + 1 < valid.size() && valid[i + 1] == '\n') continue;
      text_ += valid[i] == '\r' ? '\n' : valid[i];
    }
    if (text_.ends_with('\n')) text_.pop_back();
  }

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const size_t open = next_tag();
      if (open == text_.npos) {
        add_data(text_.substr(at_));
        break;
      }
      const char kind = text_[open + 1];
      const char sign = open + 2 < text_.size() ? text_[open + 2] : '\0';
      std::string data = text_.substr(at_, open - at_);
      const int data_lines = lines_in(data);
      if (sign == '-') {
        while (!data.empty() && is_space(data.back())) data.pop_back();
      } else if (kind != '{' && sign != '+') {
        strip_line_start(data);
      }
      add_data(data);
      line_ += data_lines - lines_in(data);
      at_ = open + 2 + (sign == '-' || sign == '+' ? 1 : 0);
      if (kind == '#')
        skip_comment();
      else if (kind == '%' && skip_word("raw", false))
        read_raw();
      else
        read_tag(kind == '{');
    }
    tokens_.push_back({Token::Kind::kEnd, "", line_});
    return std::move(tokens_);
  }

 private:
  static int lines_in(std::string_view text) {
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  size_t next_tag() const {
    for (size_t i = text_.find('{', at_); i != text_.npos && i + 1 < text_.size();
         i = text_.find('{', i + 1))
      if (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#') return i;
    return text_.npos;
  }
  void add_data(const std::string& data) {
    if (!data.empty()) tokens_.push_back({Token::Kind::kData, data, line_});
    line_ += lines_in(data);
  }
  /// lstrip_blocks: removes the blanks between the beginning of the line and the tag.
  void strip_line_start(std::string& data) const {
    const size_t newline = data.rfind('\n');
    const size_t begin = newline == data.npos ? 0 : newline + 1;
    if (begin == 0 && !line_starting_) return;
    if (std::all_of(data.begin() + static_cast<ptrdiff_t>(begin), data.end(), is_space))
      data.resize(begin);
  }
  /// After the end of a tag: `-` removes all whitespace, trim_blocks one newline.
  void after_tag(char sign, bool trim) {
    const size_t begin = at_;
    if (sign == '-')
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    else if (trim && sign != '+' && at_ < text_.size() && text_[at_] == '\n')
      ++at_;
    line_ += lines_in(std::string_view(text_).substr(begin, at_ - begin));
    line_starting_ = at_ > begin && text_[at_ - 1] == '\n';
  }

  void skip_comment() {
    const size_t end = text_.find("#}", at_);
    if (end == text_.npos) fail_at(name_, line_, "a comment without '#}'");
    line_ += lines_in(std::string_view(text_).substr(at_, end - at_));
    const char sign = end > at_ ? text_[end - 1] : '\0';
    at_ = end + 2;
    after_tag(sign, true);
  }

  /// Skips blanks, this word and the end of the block, if they follow.
  bool skip_word(std::string_view word, bool trim) {
    size_t i = at_;
    while (i < text_.size() && is_space(text_[i])) ++i;
    if (text_.compare(i, word.size(), word) != 0) return false;
    i += word.size();
    while (i < text_.size() && is_space(text_[i])) ++i;
    char sign = '\0';
    if (i < text_.size() && (text_[i] == '-' || text_[i] == '+')) sign = text_[i++];
    if (text_.compare(i, 2, "%}") != 0) return false;
    line_ += lines_in(std::string_view(text_).substr(at_, i - at_));
    at_ = i + 2;
    after_tag(sign, trim);
    return true;
  }

  void read_raw() {
    const size_t begin = at_;
    const int line = line_;
    for (size_t open = text_.find("{%", at_); open != text_.npos;
         open = text_.find("{%", open + 2)) {
      const char sign = open + 2 < text_.size() ? text_[open + 2] : '\0';
      std::string data = text_.substr(begin, open - begin);
      at_ = open + 2 + (sign == '-' || sign == '+' ? 1 : 0);
      const int lines = lines_in(data);
      line_ = line + lines;
      if (!skip_word("endraw", true)) continue;
      const int end_line = line_;
      line_ = line;
      if (sign == '-')
        while (!data.empty() && is_space(data.back())) data.pop_back();
      else if (sign != '+')
        strip_line_start(data);
      add_data(data);
      line_ = end_line;
      return;
    }
    fail_at(name_, line, "'raw' without 'endraw'");
  }

  void add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }

  void read_tag(bool variable) {
    using Kind = Token::Kind;
    const int begin = line_;
    add(variable ? Kind::kVariableBegin : Kind::kBlockBegin, "");
    std::string closing;  // of open brackets
    while (true) {
      while (at_ < text_.size() && is_space(text_[at_])) line_ += text_[at_++] == '\n';
      if (at_ >= text_.size())
        fail_at(name_, begin, variable ? "'{{' without '}}'" : "'{%' without '%}'");
      if (closing.empty()) {
        const char c = text_[at_];
        const size_t sign = c == '-' || (c == '+' && !variable) ? 1 : 0;
        if (text_.compare(at_ + sign, 2, variable ? "}}" : "%}") == 0) {
          at_ += sign + 2;
          add(variable ? Kind::kVariableEnd : Kind::kBlockEnd, "");
          after_tag(sign ? c : '\0', !variable);
          return;
        }
      }
      read_word(closing);
    }
  }

  void read_word(std::string& closing) {
    using Kind = Token::Kind;
    const char c = text_[at_];
    const size_t begin = at_;
    if (is_name_start(c)) {
      while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
      return add(Kind::kName, text_.substr(begin, at_ - begin));
    }
    if (is_digit(c)) return read_number();
    if (c == '"' || c == '\'') return read_string(c);
    for (const std::string_view two : {"==", "!=", "<=", ">=", "//", "**"})
      if (text_.compare(at_, 2, two) == 0) {
        at_ += 2;
        return add(Kind::kOperator, std::string(two));
      }
    constexpr std::string_view kOperators = "+-*/%~()[]{}<>=,.:|;", kOpen = "([{", kClose = ")]}";
    if (kOperators.find(c) == kOperators.npos)
      fail_at(name_, line_,
              "unexpected character '" +
                  std::string(unicode::beginning(std::string_view(text_).substr(at_), 4)) + "'");
    if (const size_t open = kOpen.find(c); open != kOpen.npos) closing += kClose[open];
    if (kClose.find(c) != kClose.npos) {
      if (closing.empty() || closing.back() != c)
        fail_at(name_, line_, std::string("unexpected '") + c + "'");
      closing.pop_back();
    }
    ++at_;
    add(Kind::kOperator, std::string(1, c));
  }

  void read_number() {
    const size_t begin = at_;
    const auto digits = [&] {
      while (at_ < text_.size() && (is_digit(text_[at_]) || (text_[at_] == '_' && at_ > begin)))
        ++at_;
    };
    digits();
    bool real = false;
    if (at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1])) {
      real = true;
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      size_t i = at_ + 1;
      if (i < text_.size() && (text_[i] == '+' || text_[i] == '-')) ++i;
      if (i < text_.size() && is_digit(text_[i])) {
        real = true;
        at_ = i;
        digits();
      }
    }
    std::string number = text_.substr(begin, at_ - begin);
    std::erase(number, '_');
    add(real ? Token::Kind::kFloat : Token::Kind::kInteger, number);
  }

  void read_string(char quote) {
    const int line = line_;
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      line_ += text_[at_] == '\n';
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        line_ += text_[at_] == '\n';
        append_escape(out);
      } else {
        out += text_[at_];
      }
    }
    if (at_ >= text_.size()) fail_at(name_, line, "a string without its closing quote");
    ++at_;
    tokens_.push_back({Token::Kind::kString, unicode::to_valid_utf8(out), line});
  }

  void append_escape(std::string& out) {
    const char c = text_[at_];
    constexpr std::string_view kLetters = "ntrfbav0\\'\"";
    constexpr std::string_view kValues("\n\t\r\f\b\a\v\0\\'\"", 11);
    if (const size_t i = kLetters.find(c); i != kLetters.npos) {
      out += kValues[i];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      for (size_t i = 1; i <= count; ++i) {
        constexpr std::string_view kHex = "0123456789abcdefABCDEF";
        const size_t digit = at_ + i < text_.size() ? kHex.find(text_[at_ + i]) : kHex.npos;
        if (digit == kHex.npos) fail_at(name_, line_, "a malformed escape in a string");
        code = code << 4 | static_cast<uint32_t>(digit < 16 ? digit : digit - 6);
      }
      at_ += count;
      append_utf8(out, code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0xfffd : code);
    } else if (c != '\n') {  // an escaped line end is none
      (out += '\\') += c;
    }
  }

  const std::string& name_;
  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& name) {
  return Lexer(source, name).run();
}

}  // namespace paddle::jinja
