#pragma once
// Numbers within bounds, as JSON writes them.

#include <optional>

#include "text/grammar/grammar.h"

namespace paddle::grammar {

struct NumberBounds {
  std::optional<double> low, high;
  bool low_open = false, high_open = false;  ///< whether the bound itself is left out
};

/// Integers, or decimals with as many digits as the bounds have, but at least four; without bounds
/// also with exponents. Nullopt if none is within the bounds.
std::optional<Part> number_part(Builder& builder, const NumberBounds& bounds, bool integer);

}  // namespace paddle::grammar
