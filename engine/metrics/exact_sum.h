#pragma once
// Sums of float64 numbers without rounding, so that a sum does not depend on the order of its terms
// or on how they are divided among batches and processes. Only `value` rounds, once.
//
// The sum is a fixed-point number that covers all of float64, in digits of 32 bits that are added
// as integers (Kulisch, "Computer Arithmetic and Validity", 2013).

#include <array>
#include <cstdint>
#include <span>

namespace paddle::metrics {

class ExactSum {
 public:
  ExactSum& operator+=(double term);
  ExactSum& operator+=(const ExactSum& other);
  /// Adds a * b without rounding. Products below 2^-1022 may lose digits.
  void add_product(double a, double b);

  /// The nearest float64, ties to even. Terms that are NaN or infinite give what adding them up
  /// gives.
  double value() const;
  /// The sum as `first` + `second`, of which `first` is `value()`: 106 bits of it.
  std::array<double, 2> parts() const;

  /// The sum as integers. Those of several sums can be added up one by one, at most 2^30 of them.
  static constexpr size_t kWords = 72;
  std::array<int64_t, kWords> words() const;
  static ExactSum from_words(std::span<const int64_t, kWords> words);

 private:
  static constexpr size_t kDigits = kWords - 3;
  using Digits = std::array<int64_t, kDigits>;
  /// With digits from 0 to 2^32 - 1, but for the last one, which has the sign.
  static Digits carried(Digits digits);

  Digits digits_ = {};  ///< of 2^(32 i - 1074)
  int64_t nan_ = 0, positive_infinities_ = 0, negative_infinities_ = 0;
  int64_t pending_ = 0;  ///< terms since digits were carried
};

}  // namespace paddle::metrics
