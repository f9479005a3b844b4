#pragma once
// Gains of activations, for standard deviations of weights.

#include <optional>
#include <string>
#include <string_view>

namespace paddle::lang {

/// The factor of standard deviations that keeps values before an activation as large as before the
/// previous one. `slope` is that of leaky_relu for negative numbers, 0.01 if it is not given.
/// kConfig, as `callee`, for other activations.
double activation_gain(std::string_view callee, const std::string& activation,
                       std::optional<double> slope);

}  // namespace paddle::lang
