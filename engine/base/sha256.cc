#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/files.h"
#include "base/hex.h"

namespace paddle {
namespace {

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::add_block(const unsigned char* block) {
  uint32_t words[64];
  for (int i = 0; i < 16; ++i)
    words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
               uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kConstants[i] + words[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += sums[i];
}

void Sha256::add(std::string_view bytes) {
  const size_t filled = bytes_ % block_.size();
  bytes_ += bytes.size();
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  if (filled > 0) {
    const size_t count = std::min(left, block_.size() - filled);
    std::memcpy(block_.data() + filled, from, count);
    from += count;
    left -= count;
    if (filled + count < block_.size()) return;
    add_block(block_.data());
  }
  for (; left >= block_.size(); from += block_.size(), left -= block_.size()) add_block(from);
  if (left > 0) std::memcpy(block_.data(), from, left);
}

Sha256::Digest Sha256::finish() {
  const uint64_t bits = 8 * bytes_;
  // A one bit, zeros, and the number of bits at the end of a block.
  constexpr size_t kLengthBytes = 8;
  const size_t filled = bytes_ % block_.size();
  std::string padding(
      (filled < block_.size() - kLengthBytes ? block_.size() : 2 * block_.size()) - filled, '\0');
  padding[0] = '\x80';
  for (size_t i = 0; i < kLengthBytes; ++i)
    padding[padding.size() - 1 - i] = static_cast<char>(bits >> (8 * i) & 0xff);
  add(padding);
  Digest out{};
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  return out;
}

std::string Sha256::finish_digits() { return hex_digits(finish()); }

std::string hmac_sha256(std::string_view key, std::string_view message) {
  constexpr size_t kBlock = 64;
  std::string padded(kBlock, '\0');
  const auto text_of = [](const Sha256::Digest& digest) {
    return std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size());
  };
  if (key.size() > kBlock) {
    Sha256 hash;
    hash.add(key);
    const Sha256::Digest digest = hash.finish();
    std::memcpy(padded.data(), digest.data(), digest.size());
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  const auto with = [&](char mask) {
    std::string out = padded;
    for (char& c : out) c = static_cast<char>(c ^ mask);
    return out;
  };
  Sha256 inner, outer;
  inner.add(with(0x36));
  inner.add(message);
  outer.add(with(0x5c));
  outer.add(text_of(inner.finish()));
  return outer.finish_digits();
}

void Sha256::add_file(const std::string& path) {
  constexpr size_t kStep = size_t{1} << 24;
  const auto file = MappedFile::open_stored(path);
  for (size_t at = 0; at < file->size(); at += kStep) {
    add(file->view().substr(at, kStep));
    forget_mapped(file->data() + at, std::min(kStep, file->size() - at));
  }
}

std::string sha256_of_file(const std::string& path) {
  Sha256 hash;
  hash.add_file(path);
  return hash.finish_digits();
}

bool is_sha256_prefix(std::string_view text) {
  return text.size() >= 8 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace paddle
