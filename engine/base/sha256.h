#pragma once
// SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104).

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paddle {

/// The hash of bytes that are added one after the other.
class Sha256 {
 public:
  using Digest = std::array<std::byte, 32>;

  void add(std::string_view bytes);
  /// All bytes of a file, as they are on the disk. kData if it cannot be read.
  void add_file(const std::string& path);
  /// The hash; no more bytes may be added.
  Digest finish();
  /// The same as 64 hexadecimal digits.
  std::string finish_digits();

 private:
  void add_block(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  uint64_t bytes_ = 0;
};

/// HMAC of a message, as 64 hexadecimal digits.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// SHA-256 of a file, as 64 hexadecimal digits. kData if it cannot be read.
std::string sha256_of_file(const std::string& path);

/// Whether a text can be the first digits of a hash: 8 to 64 hexadecimal ones, of either case.
bool is_sha256_prefix(std::string_view text);

/// Whether two texts are equal. For texts of the same length, the time does not depend on where
/// they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace paddle
