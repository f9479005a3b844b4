#pragma once
// Compares the results of functions that a plug-in has changed with those of the engine.

#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::conformance {

/// "" if the results agree: within 2e-5 and, for float16 and bfloat16, within `half_tolerance`;
/// bit by bit too if `bits`, which `who` ("the pass") states. Otherwise what differs.
std::string compare_results(const std::vector<Array>& found, const std::vector<Array>& expected,
                            bool bits, std::string_view who, double half_tolerance = 2e-5);

/// A message up to its first line break.
std::string first_line(const std::string& text);

}  // namespace paddle::conformance
