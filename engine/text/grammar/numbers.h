#pragma once
// Numbers within bounds, as JSON writes them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/grammar/grammar.h"

namespace paddle::grammar {

/// A number in decimal digits, exactly.
struct Decimal {
  bool negative = false;
  std::string digits = "0";  ///< without zeros in front
  int64_t decimals = 0;      ///< how many of the digits stand after the point
};
/// Of a number of JSON.
Decimal parse_decimal(std::string_view text);
/// The shortest decimal that is read as this value, which is finite.
Decimal decimal_of(double value);
/// -1, 0 or 1.
int compare(const Decimal& a, const Decimal& b);

struct NumberBounds {
  std::optional<Decimal> low, high;
  bool low_open = false, high_open = false;  ///< whether the bound itself is left out
};

/// Integers, or decimals with as many digits as the bounds have, but at least four; without bounds
/// also with exponents. On a side without a bound they have as many digits as the other bound, but
/// at least 15. Nullopt if none is within the bounds.
std::optional<Part> number_part(Builder& builder, const NumberBounds& bounds, bool integer);

}  // namespace paddle::grammar
