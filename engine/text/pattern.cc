#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/free_with.h"
#include "base/utf8.h"
#include "text/unicode.h"

namespace paddle::tokenizers {

namespace {

constexpr size_t kMaxExpression = size_t{1} << 16;
constexpr uint32_t kMatchLimit = 20'000'000;

/// Oniguruma's classes in PCRE2's words: PCRE2's own \s and \w differ for a few code points.
std::string_view class_of(char letter) {
  switch (letter) {
    case 's':
      return R"(\p{White_Space})";
    case 'S':
      return R"(\P{White_Space})";
    case 'd':
      return R"(\p{Nd})";
    case 'D':
      return R"(\P{Nd})";
    default:
      return {};
  }
}

[[noreturn]] void reject(std::string_view expression, size_t at, const std::string& why) {
  fail(ErrorCode::kModel, "pattern '", unicode::beginning(expression), "', byte ", at + 1, ": ",
       why);
}

std::string translate(std::string_view e) {
  constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
  std::string out;
  int depth = 0;  // of brackets
  for (size_t i = 0; i < e.size(); ++i) {
    if (e[i] == '\\' && i + 1 < e.size()) {
      const char letter = e[++i];
      if (const std::string_view known = class_of(letter); !known.empty()) {
        out += known;
      } else if (letter == 'w' || letter == 'W') {
        if (letter == 'W' && depth > 0) reject(e, i, "\\W inside of brackets is not supported");
        if (depth > 0)
          out += kWord;
        else
          out += std::string(letter == 'W' ? "[^" : "[") + std::string(kWord) + "]";
      } else if (letter == 'h' || letter == 'H') {
        reject(e, i, "\\h (a hexadecimal digit in Oniguruma) is not supported");
      } else {
        out += '\\';
        out += letter;
      }
      continue;
    }
    if (depth > 0 && e[i] == '&' && i + 1 < e.size() && e[i + 1] == '&')
      reject(e, i, "intersection of character classes (&&) is not supported");
    if (depth > 0 && e[i] == '[' && i + 1 < e.size() && e[i + 1] != ':')
      reject(e, i, "a bracket inside of brackets must be escaped");
    if (e[i] == '[' && depth == 0) {
      depth = 1;
      out += e[i];
      if (i + 1 < e.size() && e[i + 1] == '^') out += e[++i];
      if (i + 1 < e.size() && e[i + 1] == ']') out += e[++i];
      continue;
    }
    if (depth > 0 && e[i] == '[') {  // [:alpha:]
      const size_t end = e.find(":]", i);
      if (end == e.npos) reject(e, i, "expected ':]'");
      out += e.substr(i, end + 2 - i);
      i = end + 1;
      continue;
    }
    if (e[i] == ']') depth = 0;
    out += e[i];
  }
  return out;
}

}  // namespace

struct Pattern::Compiled {
  std::string expression;
  std::unique_ptr<pcre2_code, FreeWith<pcre2_code_free>> code;
};

Pattern::Pattern(std::string_view expression) {
  if (expression.size() > kMaxExpression)
    fail(ErrorCode::kModel, "a pattern of ", expression.size(), " bytes; at most ", kMaxExpression);
  auto compiled = std::make_shared<Compiled>();
  compiled->expression = expression;
  const std::string translated = translate(expression);
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled->code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr));
  if (!compiled->code) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(error, message, sizeof message);
    reject(expression, at, reinterpret_cast<const char*>(message));
  }
  pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);  // without it, matching interprets
  compiled_ = std::move(compiled);
}

Pattern Pattern::literal(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c & 0x80) != 0 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                       (c >= 'a' && c <= 'z') || c == '_' || c == ' ' || c == '\n';
    if (!plain) escaped += '\\';
    escaped += c;
  }
  return Pattern(escaped);
}

void Pattern::for_each_match(std::string_view text,
                             const std::function<void(size_t, size_t)>& callback) const {
  const std::unique_ptr<pcre2_match_data, FreeWith<pcre2_match_data_free>> data(
      pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, FreeWith<pcre2_match_context_free>> context(
      pcre2_match_context_create(nullptr));
  if (!data || !context) fail(ErrorCode::kDevice, "out of memory for a pattern");
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), 64 << 10);  // KiB
  uint32_t no_jit = 0;
  for (size_t from = 0; from <= text.size();) {
    const int found =
        pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    from, PCRE2_NO_UTF_CHECK | no_jit, data.get(), context.get());
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && !no_jit) {  // the interpreter has a larger stack
      no_jit = PCRE2_NO_JIT;
      continue;
    }
    if (found < 0)
      fail(ErrorCode::kData, "pattern '", unicode::beginning(compiled_->expression),
           "' takes too many steps on this text");
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    callback(range[0], range[1]);
    from = range[1];
    if (range[0] == range[1]) {  // an empty match: continue after the next character
      if (from >= text.size()) return;
      const size_t length = utf8_character(text, from).length;
      from += length ? length : 1;
    }
  }
}

}  // namespace paddle::tokenizers
