#pragma once
// Recomputation: values of the forward pass that only the backward pass still needs are not kept
// but computed again where it first reads them, from the values at the borders of their layer.

#include <string>
#include <vector>

#include "ir/module.h"

namespace paddle::passes {

struct RecomputeOptions {
  /// Patterns of paths of layers; the shortest path that matches is what is computed again as one.
  /// Empty: the numbered layers ("encoder.3"), or, in a function without, sqrt(n) parts of its
  /// operations.
  std::vector<std::string> layers = {};
  int most = -1;  ///< the largest number of these, in the order of the program; -1: all
};

struct Recomputed {
  int layers = 0;      ///< that have been found
  int operations = 0;  ///< that are computed twice
};

/// Rewrites a training step, whose first result is the loss. Operations with side effects are never
/// computed again, so ranks communicate once. Results keep their bits.
Recomputed recompute(ir::Function& function, const RecomputeOptions& options);

}  // namespace paddle::passes
