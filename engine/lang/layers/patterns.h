#pragma once
// Initializers that are patterns over the axes of a weight.

#include "lang/eval/host.h"

namespace paddle::lang {

/// Throws kConfig, naming the parameter `path`, if the initializer does not fit the shape: dirac
/// needs a weight [out, in, window...] of 1 to 3 window axes whose out is a multiple of its groups,
/// bilinear one [out, in, n, n], orthogonal two axes or more.
void check_pattern(const Initializer& init, const std::string& path, const Dims& shape);
/// The elements of dirac and of bilinear, row-major. `shape` fits.
std::vector<double> pattern_values(const Initializer& init, const Dims& shape);

}  // namespace paddle::lang
