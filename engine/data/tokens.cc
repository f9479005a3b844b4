#include "data/tokens.h"

#include <cctype>

#include "base/utf8.h"

namespace paddle::data {
namespace {

/// The character at `at`; a byte that is part of none stands for itself.
Utf8Character character(std::string_view text, size_t at) {
  const Utf8Character found = utf8_character(text, at);
  return found.length > 0 ? found : Utf8Character{1, static_cast<unsigned char>(text[at])};
}

uint32_t lower(uint32_t c) {
  const auto in = [&](uint32_t first, uint32_t last) { return c >= first && c <= last; };
  if (in('A', 'Z') || (in(0xc0, 0xde) && c != 0xd7) || (in(0x391, 0x3a9) && c != 0x3a2) ||
      in(0x410, 0x42f))
    return c + 0x20;
  if (in(0x400, 0x40f)) return c + 0x50;
  // Latin Extended-A and Cyrillic supplements alternate capital and small letters.
  if (in(0x100, 0x12f) || in(0x132, 0x137) || in(0x14a, 0x177) || in(0x460, 0x481) ||
      in(0x48a, 0x4bf) || in(0x4d0, 0x52f))
    return c | 1;
  if (in(0x139, 0x148) || in(0x179, 0x17e)) return c % 2 == 1 ? c + 1 : c;
  if (c == 0x178) return 0xff;
  return c;
}

bool is_space(uint32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

/// Letters and digits of ASCII, and what is not punctuation or a symbol of the other blocks.
bool is_word_part(uint32_t c) {
  if (c < 0x80) return std::isalnum(static_cast<int>(c)) != 0 || c == '_';
  if (is_space(c)) return false;
  const bool sign = (c < 0xc0 && c != 0xaa && c != 0xb5 && c != 0xba) || c == 0xd7 || c == 0xf7 ||
                    (c >= 0x2010 && c <= 0x206f) || (c >= 0x20a0 && c <= 0x20cf) ||
                    (c >= 0x2190 && c <= 0x2bff) || (c >= 0x3001 && c <= 0x303f) ||
                    (c >= 0xff01 && c <= 0xff0f) || (c >= 0xff1a && c <= 0xff20) ||
                    (c >= 0x1f000 && c <= 0x1faff);
  return !sign;
}

bool is_apostrophe(uint32_t c) { return c == '\'' || c == 0x2019; }

/// Scripts that are written without spaces: each character is a word.
bool stands_alone(uint32_t c) {
  return (c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x3ffff);
}

/// Whether it makes words of several characters.
bool is_letter(uint32_t c) { return is_word_part(c) && !stands_alone(c); }

/// A bracket expression of the characters for which `f` does not hold. Strings of C cannot hold
/// character 0, so it counts as one of these.
template <class F>
std::string all_but(F&& f) {
  constexpr uint32_t kLast = 0x10ffff, kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;
  std::string out = "[^";
  for (uint32_t first = 1; first <= kLast; ++first) {
    if (!f(first)) continue;
    uint32_t last = first;
    while (last < kLast && f(last + 1) && last + 1 != kFirstSurrogate) ++last;
    if (first >= kFirstSurrogate && last <= kLastSurrogate) continue;
    append_utf8(out, first);
    if (last > first) append_utf8(out += '-', last);
    first = last;
  }
  return out + ']';
}

}  // namespace

std::string name_of(TokenKind kind) {
  return kind == TokenKind::kWords        ? "words"
         : kind == TokenKind::kCharacters ? "characters"
                                          : "spaces";
}

std::optional<TokenKind> parse_token_kind(std::string_view name) {
  for (const TokenKind kind : {TokenKind::kWords, TokenKind::kCharacters, TokenKind::kSpaces})
    if (name_of(kind) == name) return kind;
  return std::nullopt;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character c = character(text, at);
    append_utf8(out, lower(c.code));
    at += c.length;
  }
  return out;
}

std::vector<std::string_view> split_tokens(std::string_view text, TokenKind kind, int64_t limit) {
  std::vector<std::string_view> out;
  size_t begin = 0;  // of the word that is open
  const auto close = [&](size_t end) {
    if (end > begin) out.push_back(text.substr(begin, end - begin));
  };
  size_t at = 0;
  for (; at < text.size() && static_cast<int64_t>(out.size()) < limit;) {
    const auto [length, c] = character(text, at);
    const size_t next = at + length;
    if (kind == TokenKind::kCharacters) {
      out.push_back(text.substr(at, length));
      begin = next;
    } else if (kind == TokenKind::kSpaces) {
      if (is_space(c)) close(at), begin = next;
    } else if (is_apostrophe(c) && at > begin && next < text.size() &&
               is_letter(character(text, next).code)) {
      // inside of a word: "don't"
    } else if (!is_word_part(c) || stands_alone(c)) {
      close(at);
      if (!is_space(c) && static_cast<int64_t>(out.size()) < limit)
        out.push_back(text.substr(at, length));
      begin = next;
    }
    at = next;
  }
  if (static_cast<int64_t>(out.size()) < limit) close(at);
  return out;
}

std::string token_pattern(TokenKind kind) {
  if (kind == TokenKind::kCharacters) return ".";
  const std::string sign = all_but(is_space);
  if (kind == TokenKind::kSpaces) return sign + '+';
  const std::string letter = all_but([](uint32_t c) { return !is_letter(c); });
  return letter + "+(?:['\u2019]" + letter + "+)*|" + sign;
}

}  // namespace paddle::data
