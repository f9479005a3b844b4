#pragma once
// What a convolution of our own does to its sums before it writes them.

#include <limits>

#include "kernels/elementwise/loops.h"

namespace paddle::cpu {

/// `bias` (per channel) and `residual` (as the output) are added where they are not null, what is
/// below `least` becomes it, and then a loop runs if there is one.
struct ConvFinish {
  const float* bias = nullptr;
  const float* residual = nullptr;
  float least = -std::numeric_limits<float>::infinity();
  Loop loop = nullptr;
  const double* params = nullptr;
};

}  // namespace paddle::cpu
