#pragma once
// Random numbers without state: each is a function of (seed, stream, step, element index), by the
// Philox4x32-10 generator (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
// Thread count, order of evaluation, recomputation and sharding therefore change nothing. Initial
// weights use `stream_of(parameter name)` as their stream.

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace paddle {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// The Philox4x32-10 bijection: four random words of a 128-bit counter and a 64-bit key.
inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Mixes all bits of a word (the finaliser of SplitMix64); a bijection.
inline uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// A stream number from a name (a parameter's path, a transform's place).
uint64_t stream_of(std::string_view name);

/// The numbers of one (seed, stream, step). Element `i` of each kind of number can be asked for
/// on their own and in any order; the `fill` forms write elements first, first + 1, …
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0, uint64_t step = 0);

  const PhiloxKey& key() const { return key_; }
  uint64_t step() const { return step_; }
  /// Four words of block `index`.
  PhiloxCounter block(uint64_t index) const {
    return philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                   static_cast<uint32_t>(step_), static_cast<uint32_t>(step_ >> 32)},
                  key_);
  }
  uint32_t bits32(uint64_t index) const { return block(index >> 2)[index & 3]; }
  uint64_t bits64(uint64_t index) const {
    const PhiloxCounter words = block(index >> 1);
    const size_t at = (index & 1) * 2;
    return words[at] | uint64_t{words[at + 1]} << 32;
  }
  /// In [0, 1), a multiple of 2^-24.
  float uniform_float(uint64_t index) const { return to_float(bits32(index)); }
  /// In [0, 1), a multiple of 2^-53.
  double uniform(uint64_t index) const { return to_double(bits64(index)); }
  /// Standard normal by Box and Muller, computed in double (tensor/box_muller-inl.h).
  double normal(uint64_t index) const;
  /// In [0, n) for n >= 1; the bias is below n / 2^64.
  uint64_t below(uint64_t index, uint64_t n) const { return scale(bits64(index), n); }

  void fill_uniform(std::span<float> out, uint64_t first = 0) const;
  void fill_uniform(std::span<double> out, uint64_t first = 0) const;
  void fill_normal(std::span<float> out, uint64_t first = 0) const;
  void fill_normal(std::span<double> out, uint64_t first = 0) const;

  static float to_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
  static double to_double(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
  static uint64_t scale(uint64_t bits, uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
  }

 private:
  PhiloxKey key_;
  uint64_t step_;
};

/// Numbers one after the other, for code that draws a varying number of them for one item.
class RandomSequence {
 public:
  explicit RandomSequence(const Random& random, uint64_t first = 0)
      : random_(random), next_(first) {}
  double uniform() { return random_.uniform(next_++); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() { return random_.normal(next_++); }
  uint64_t below(uint64_t n) { return random_.below(next_++, n); }
  bool chance(double probability) { return uniform() < probability; }

 private:
  Random random_;
  uint64_t next_;
};

/// A permutation of 0 … n-1 that is a function of (n, seed, stream, step) and whose elements are
/// computed one by one in constant time and memory: a Feistel network on a grid of about sqrt(n)
/// by sqrt(n), cells past n skipped (Black and Rogaway, "Ciphers with Arbitrary Finite Domains",
/// 2002).
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed, uint64_t stream = 0, uint64_t step = 0);
  uint64_t size() const { return n_; }
  uint64_t operator()(uint64_t index) const;  ///< index < n
  static constexpr size_t kRounds = 12;
  uint64_t rows() const { return rows_; }        ///< at most 2^32
  uint64_t columns() const { return columns_; }  ///< the same
  const std::array<uint64_t, kRounds>& keys() const { return keys_; }

 private:
  uint64_t n_, rows_, columns_;
  std::array<uint64_t, kRounds> keys_;
};

/// The permutation as a list.
std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t stream = 0, uint64_t step = 0);

}  // namespace paddle
