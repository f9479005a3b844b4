#include "metrics/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace paddle::metrics {
namespace {

constexpr int64_t kBase = int64_t{1} << 32;
constexpr uint64_t kDigitMask = 0xffffffff;
constexpr int kLowestBit = -1074;                  ///< the exponent of the smallest float64
constexpr int64_t kMaxPending = int64_t{1} << 29;  ///< terms add at most 2^32 to a digit

}  // namespace

ExactSum& ExactSum::operator+=(double term) {
  const auto bits = std::bit_cast<uint64_t>(term);
  const auto exponent = static_cast<size_t>(bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  const bool is_negative = (bits >> 63) != 0;
  if (exponent == 0x7ff) {
    ++(mantissa != 0 ? nan_ : is_negative ? negative_infinities_ : positive_infinities_);
    return *this;
  }
  if (exponent != 0) mantissa |= uint64_t{1} << 52;
  // The distance of the mantissa's lowest bit from that of the smallest number.
  const size_t shift = exponent == 0 ? 0 : exponent - 1;
  const size_t at = shift / 32, within = shift % 32;
  const uint64_t low = mantissa << within;  // 53 + 31 bits in three digits
  const uint64_t high = within == 0 ? 0 : mantissa >> (64 - within);
  const int64_t sign = is_negative ? -1 : 1;
  digits_[at] += sign * static_cast<int64_t>(low & kDigitMask);
  digits_[at + 1] += sign * static_cast<int64_t>(low >> 32);
  digits_[at + 2] += sign * static_cast<int64_t>(high);
  if (++pending_ == kMaxPending) {
    digits_ = carried(digits_);
    pending_ = 0;
  }
  return *this;
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  *this += product;
  if (std::isfinite(product)) *this += std::fma(a, b, -product);
}

ExactSum& ExactSum::operator+=(const ExactSum& other) {
  const auto mine = words(), theirs = other.words();
  std::array<int64_t, kWords> sum = {};
  for (size_t i = 0; i < kWords; ++i) sum[i] = mine[i] + theirs[i];
  return *this = from_words(sum);
}

ExactSum::Digits ExactSum::carried(Digits digits) {
  for (size_t i = 0; i + 1 < kDigits; ++i) {
    const int64_t carry = digits[i] >> 32;  // rounds down
    digits[i] -= carry * kBase;
    digits[i + 1] += carry;
  }
  return digits;
}

double ExactSum::value() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (nan_ > 0 || (positive_infinities_ > 0 && negative_infinities_ > 0))
    return std::numeric_limits<double>::quiet_NaN();
  if (positive_infinities_ > 0) return kInfinity;
  if (negative_infinities_ > 0) return -kInfinity;
  Digits digits = carried(digits_);
  const bool is_negative = digits.back() < 0;
  if (is_negative) {
    for (int64_t& digit : digits) digit = -digit;
    digits = carried(digits);
  }
  size_t top = kDigits;
  while (top > 0 && digits[top - 1] == 0) --top;
  if (top == 0) return 0;
  const auto digit = [&](size_t below) {
    return top > below ? static_cast<uint64_t>(digits[top - 1 - below]) : 0;
  };
  // The 64 highest bits; what is below them only tells a half from more than a half.
  const int zeros = std::countl_zero(digit(0)) - 32;
  uint64_t bits = digit(0) << 32 | digit(1);
  bool more = false;
  if (zeros > 0) {
    bits = bits << zeros | digit(2) >> (32 - zeros);
    more = (digit(2) << (32 + zeros)) != 0;
  } else {
    more = digit(2) != 0;
  }
  for (size_t i = 3; i < top && !more; ++i) more = digit(i) != 0;
  const double magnitude = std::ldexp(static_cast<double>(bits | (more ? 1 : 0)),
                                      32 * (static_cast<int>(top) - 2) - zeros + kLowestBit);
  return is_negative ? -magnitude : magnitude;
}

std::array<double, 2> ExactSum::parts() const {
  const double first = value();
  if (!std::isfinite(first)) return {first, 0};
  ExactSum rest = *this;
  rest += -first;
  return {first, rest.value()};
}

std::array<int64_t, ExactSum::kWords> ExactSum::words() const {
  std::array<int64_t, kWords> out = {};
  const Digits digits = carried(digits_);
  std::copy(digits.begin(), digits.end(), out.begin());
  out[kDigits] = nan_;
  out[kDigits + 1] = positive_infinities_;
  out[kDigits + 2] = negative_infinities_;
  return out;
}

ExactSum ExactSum::from_words(std::span<const int64_t, kWords> words) {
  ExactSum out;
  std::copy_n(words.begin(), kDigits, out.digits_.begin());
  out.digits_ = carried(out.digits_);
  out.nan_ = words[kDigits];
  out.positive_infinities_ = words[kDigits + 1];
  out.negative_infinities_ = words[kDigits + 2];
  return out;
}

}  // namespace paddle::metrics
