#include "text/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace paddle::tokenizers {

namespace {

bool is_printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int, 512> bytes;  ///< by code point, -1 for none
  Alphabet() {
    bytes.fill(-1);
    uint32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      const uint32_t code = is_printable(b) ? static_cast<uint32_t>(b) : next++;
      append_utf8(characters[static_cast<size_t>(b)], code);
      bytes[code] = b;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet value;
  return value;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

const std::string& byte_character(unsigned char byte) { return alphabet().characters[byte]; }

std::string to_byte_characters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) out += byte_character(static_cast<unsigned char>(c));
  return out;
}

std::optional<std::string> from_byte_characters(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const Utf8Character c = utf8_character(text, i);
    if (c.length == 0 || c.code >= alphabet().bytes.size() || alphabet().bytes[c.code] < 0)
      return std::nullopt;
    out += static_cast<char>(alphabet().bytes[c.code]);
    i += c.length;
  }
  return out;
}

std::string byte_token(unsigned char byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

}  // namespace paddle::tokenizers
