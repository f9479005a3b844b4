#pragma once
// L-BFGS: a quasi-Newton method that knows the curvature from the last gradients and steps, with a
// line search for the strong Wolfe conditions (Nocedal and Wright, "Numerical Optimization",
// chapters 3 and 7). One step evaluates the objective many times, so it is a loop of the host
// around a compiled function, and no update operation.

#include <functional>
#include <vector>

#include "optim/optimizer.h"
#include "tensor/tensor.h"

namespace paddle::optim {

/// One vector in pieces: contiguous arrays of the host, float32 or float64, one for each parameter.
using Pieces = std::vector<Array>;

/// The memory of the method. Rows of `changes` (of gradients) and `steps` are a ring.
struct LbfgsMemory {
  Pieces direction;          ///< of the last step
  Pieces previous_gradient;  ///< where that step began
  Pieces changes, steps;     ///< [history, shape of the parameter...]
  Array numbers;             ///< float64[kLbfgsNumbers]: what is kept besides vectors
};
inline constexpr int64_t kLbfgsNumbers = 5;

/// Computes the loss at the values that the parameters have, and their gradients.
using Objective = std::function<double()>;

/// Up to `options.iterations` steps from where `parameters` are, which are changed in place, as are
/// `gradients` by `objective`. Values are those of PyTorch's LBFGS. A trial point with a loss that
/// is not finite counts as too far. Gives the loss at the start.
double lbfgs_step(const LbfgsOptions& options, double rate, const Pieces& parameters,
                  const Pieces& gradients, LbfgsMemory& memory, const Objective& objective);

}  // namespace paddle::optim
