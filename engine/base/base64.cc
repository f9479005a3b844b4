#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace paddle {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 64;

/// The value of each character, or kNoDigit.
constexpr auto kValues = [] {
  std::array<uint8_t, 256> out{};
  out.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i)
    out[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  return out;
}();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t there = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < there ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += k <= there ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int count = 0;
  bool padded = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      padded = true;
      continue;
    }
    const uint8_t value = kValues[static_cast<unsigned char>(c)];
    if (value == kNoDigit || padded) return std::nullopt;
    bits = bits << 6 | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  if (count == 6) return std::nullopt;
  return out;
}

}  // namespace paddle
