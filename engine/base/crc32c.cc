#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace paddle {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < out.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? kPolynomial : 0);
    out[i] = value;
  }
  return out;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

uint32_t by_table(const std::byte* at, size_t count, uint32_t crc) {
  for (; count > 0; --count, ++at)
    crc = (crc >> 8) ^ kTable[(crc ^ std::to_integer<uint32_t>(*at)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] uint32_t by_instruction(const std::byte* at, size_t count, uint32_t crc) {
  uint64_t state = crc;
  for (; count >= sizeof state; count -= sizeof state, at += sizeof state) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    state = __builtin_ia32_crc32di(state, word);
  }
  return by_table(at, count, static_cast<uint32_t>(state));
}
#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~by_instruction(bytes.data(), bytes.size(), ~previous);
#endif
  return ~by_table(bytes.data(), bytes.size(), ~previous);
}

}  // namespace paddle
