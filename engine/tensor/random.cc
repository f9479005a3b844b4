#include "tensor/random.h"

#include <numbers>

#include "base/hash.h"

namespace paddle {
namespace {

/// Two normals from two 64-bit words; the first uniform is moved into (0, 1].
std::array<double, 2> box_muller(uint64_t first, uint64_t second) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Random::to_double(first)));
  const double angle = 2.0 * std::numbers::pi * Random::to_double(second);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::array<double, 2> normals_of(const PhiloxCounter& words) {
  return box_muller(words[0] | uint64_t{words[1]} << 32, words[2] | uint64_t{words[3]} << 32);
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
