#include "tensor/random.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/hash.h"

namespace paddle {
namespace {

#include "tensor/box_muller-inl.h"

/// Doubles one by one.
struct ScalarLanes {
  using Number = double;
  using Bits = uint64_t;

  static Number number(double value) { return value; }
  static Bits bits(uint64_t value) { return value; }
  static Number add(Number a, Number b) { return a + b; }
  static Number sub(Number a, Number b) { return a - b; }
  static Number mul(Number a, Number b) { return a * b; }
  static Number div(Number a, Number b) { return a / b; }
  static Number root(Number a) { return std::sqrt(a); }
  static Bits as_bits(Number a) { return std::bit_cast<Bits>(a); }
  static Number as_number(Bits a) { return std::bit_cast<Number>(a); }
  static Bits add(Bits a, Bits b) { return a + b; }
  static Bits both(Bits a, Bits b) { return a & b; }
  static Bits either(Bits a, Bits b) { return a | b; }
  static Bits flip(Bits a, Bits b) { return a ^ b; }
  template <int kCount>
  static Bits left(Bits a) {
    return a << kCount;
  }
  template <int kCount>
  static Bits right(Bits a) {
    return a >> kCount;
  }
  /// a where the lowest bit of `which` is set, else b.
  static Number choose(Bits which, Number a, Number b) { return (which & 1) != 0 ? a : b; }
};

std::array<double, 2> normals_of(const PhiloxCounter& words) {
  const auto [first, second] =
      BoxMuller<ScalarLanes>::normals(Random::to_double(words[0] | uint64_t{words[1]} << 32),
                                      Random::to_double(words[2] | uint64_t{words[3]} << 32));
  return {first, second};
}

template <class T, class Pair>
void fill_pairs(std::span<T> out, uint64_t first, Pair&& pair) {
  size_t at = 0;
  if ((first & 1) && !out.empty()) out[at++] = static_cast<T>(pair(first >> 1)[1]);
  for (; at + 2 <= out.size(); at += 2) {
    const auto two = pair((first + at) >> 1);
    out[at] = static_cast<T>(two[0]);
    out[at + 1] = static_cast<T>(two[1]);
  }
  if (at < out.size()) out[at] = static_cast<T>(pair((first + at) >> 1)[0]);
}

}  // namespace

uint64_t stream_of(std::string_view name) { return mix64(fnv1a(name)); }

Random::Random(uint64_t seed, uint64_t stream, uint64_t step) : step_(step) {
  const uint64_t key = mix64(mix64(seed) + stream);
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

double Random::normal(uint64_t index) const { return normals_of(block(index >> 1))[index & 1]; }

void Random::fill_uniform(std::span<float> out, uint64_t first) const {
  size_t at = 0;
  while (at < out.size() && ((first + at) & 3)) {
    out[at] = uniform_float(first + at);
    ++at;
  }
  for (; at + 4 <= out.size(); at += 4) {
    const PhiloxCounter words = block((first + at) >> 2);
    for (size_t i = 0; i < 4; ++i) out[at + i] = to_float(words[i]);
  }
  for (; at < out.size(); ++at) out[at] = uniform_float(first + at);
}

void Random::fill_uniform(std::span<double> out, uint64_t first) const {
  fill_pairs(out, first, [&](uint64_t index) {
    const PhiloxCounter words = block(index);
    return std::array<double, 2>{to_double(words[0] | uint64_t{words[1]} << 32),
                                 to_double(words[2] | uint64_t{words[3]} << 32)};
  });
}

void Random::fill_normal(std::span<float> out, uint64_t first) const {
  fill_pairs(out, first, [&](uint64_t index) { return normals_of(block(index)); });
}

void Random::fill_normal(std::span<double> out, uint64_t first) const {
  fill_pairs(out, first, [&](uint64_t index) { return normals_of(block(index)); });
}

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t stream, uint64_t step) : n_(n) {
  rows_ = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (rows_ * rows_ < n) ++rows_;
  if (rows_ == 0) rows_ = 1;
  columns_ = (n + rows_ - 1) / rows_;
  // A single column or row could only be rotated.
  if (columns_ < 2) columns_ = 2;
  if (rows_ < 2) rows_ = 2;
  const Random random(seed, mix64(stream ^ 0x7065726d75746521u), step);
  for (size_t round = 0; round < kRounds; ++round) keys_[round] = random.bits64(round);
}

uint64_t Permutation::operator()(uint64_t index) const {
  uint64_t at = index;
  do {
    uint64_t row = at / columns_, column = at % columns_;
    for (size_t round = 0; round < kRounds; round += 2) {
      row += Random::scale(mix64(keys_[round] ^ column), rows_);
      if (row >= rows_) row -= rows_;
      column += Random::scale(mix64(keys_[round + 1] ^ row), columns_);
      if (column >= columns_) column -= columns_;
    }
    at = row * columns_ + column;
  } while (at >= n_);
  return at;
}

std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t stream, uint64_t step) {
  const Permutation order(static_cast<uint64_t>(n), seed, stream, step);
  std::vector<int64_t> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(order(i));
  return out;
}

}  // namespace paddle
