#pragma once
// How a loss grows with the samples of its batch: a mean stays, a sum grows. Gradient accumulation
// asks, since the parts of a batch count by their share in a mean, and fully in a sum.

#include "ir/module.h"

namespace paddle::train {

enum class LossScale {
  kMean,
  kSum,
  kNeither,  ///< such as a sum plus a mean, or the root of a sum
};

/// The scale of a value of a traced function. The samples of a batch lie along the first axes of
/// the function's inputs.
LossScale loss_scale(const ir::Function& function, const ir::Value& loss);

}  // namespace paddle::train
