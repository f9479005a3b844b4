#pragma once
// Compares the results of functions that a plug-in has changed with those of the engine.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/compare.h"
#include "tensor/tensor.h"

namespace paddle::conformance {

/// "" if the results agree: within 2e-5 and, for float16 and bfloat16, within `half_tolerance`;
/// bit by bit too if `bits`, which `who` ("the pass") states. Otherwise what differs.
std::string compare_results(const std::vector<Array>& found, const std::vector<Array>& expected,
                            bool bits, std::string_view who, double half_tolerance = 2e-5);

/// How far results of a dtype may be from those in float64.
inspect::Tolerance tolerance_of(DType dtype);

/// Results of a call; absent where optional ones are not there.
using Results = std::vector<std::optional<Array>>;
/// "" if the results agree with those of another device, within `scale` times 2e-5 for float32;
/// otherwise what differs.
std::string compare_each(const Results& found, const Results& expected, double scale = 1);

/// A message with the values of the comparison that failed, to be sent by a child process.
std::string with_values(const std::string& message);
/// The values of such a message, of which the text remains; nullopt if it has none.
std::optional<inspect::Mismatch> take_values(std::string& message);

/// A message up to its first line break.
std::string first_line(const std::string& text);

}  // namespace paddle::conformance
