#pragma once
// Epilogues: operations that a convolution or matmul applies to each element of its result before
// storing it, namely adding a residual and applying an activation.

#include <array>
#include <limits>
#include <optional>

#include "kernels/elementwise/elementwise_step.h"
#include "ops/core/fused.h"

namespace paddle::cpu {

/// Indices of the input, weight and bias among a kernel's operands.
using OperandIndices = std::array<size_t, 3>;

/// An epilogue in terms of operands and operations: result = activation(result + residual).
struct Epilogue {
  int residual = -1;                      ///< index of the operand that is added, or -1
  const FusedStep* activation = nullptr;  ///< null for none
};

/// A float32 activation as our own kernels apply it: ReLU as a clamp, any other as a vector loop.
struct ActivationLoop {
  float clamp_min = -std::numeric_limits<float>::infinity();
  ElementwiseStep step;
};
/// None if there is no loop for the activation, which may be null.
std::optional<ActivationLoop> activation_loop(const FusedStep* activation, int64_t channels);

/// An epilogue with the addresses of one run: y = activation(max(y + bias + residual, clamp_min)).
struct BoundEpilogue {
  const float* bias = nullptr;      ///< per channel; may be null
  const float* residual = nullptr;  ///< laid out like the output; may be null
  float clamp_min = -std::numeric_limits<float>::infinity();
  Loop activation = nullptr;  ///< may be null
  const double* activation_params = nullptr;
};

}  // namespace paddle::cpu
