#pragma once
// The tables of kinds, by file, and what their functions share. For the folder's own files.

#include <numbers>

#include "ops/core/compose.h"
#include "ops/distribution/distribution.h"

namespace paddle::distribution {

const std::vector<Kind>& continuous_kinds();
const std::vector<Kind>& discrete_kinds();
const std::vector<Kind>& vector_kinds();

using rules::number;

inline constexpr double kLogTwoPi = 1.8378770664093454836;
inline constexpr double kEuler = std::numbers::egamma;

/// The first two parameters, such as loc and scale.
inline const Tensor& first(const Distribution& d) { return d.parameter(0); }
inline const Tensor& second(const Distribution& d) { return d.parameter(1); }
/// Uniform numbers in [0, 1) of a distribution's type.
Tensor uniform_of(const Distribution& d, const Shape& shape);
Tensor gaussian_of(const Distribution& d, const Shape& shape);
/// x * log(y), and 0 where x is 0.
Tensor x_log_y(const Tensor& x, const Tensor& y);
/// `x` where the condition holds, else a number.
Tensor where_or(const Tensor& condition, const Tensor& x, double otherwise);
Tensor square_of(const Tensor& x);

}  // namespace paddle::distribution
