#pragma once
// L-BFGS: a quasi-Newton method that knows the curvature from the last gradients and steps, with a
// line search for the strong Wolfe conditions (Nocedal and Wright, "Numerical Optimization",
// chapters 3 and 7). One step evaluates the objective many times, so it is a loop of the host
// around a compiled function, and no update operation.

#include "optim/update_rule.h"

namespace paddle::optim {

struct LbfgsOptions {
  int64_t iterations = 20;         ///< of an update, at most
  int64_t evaluations = 25;        ///< of the loss in an update, at most
  int64_t history = 20;            ///< steps that it remembers
  double tolerance_grad = 1e-7;    ///< largest element of a gradient at a minimum
  double tolerance_change = 1e-9;  ///< smallest change of the loss, or of an element
  bool line_search = true;         ///< else steps have the length of the rate
};

/// The memory of the method. Rows of `changes` (of gradients) and `steps` are a ring.
struct LbfgsMemory {
  Pieces direction;          ///< of the last step
  Pieces previous_gradient;  ///< where that step began
  Pieces changes, steps;     ///< [history, shape of the parameter...]
  Array numbers;             ///< float64[kLbfgsNumbers]: what is kept besides vectors
};
inline constexpr int64_t kLbfgsNumbers = 5;

/// Up to `options.iterations` steps from where `parameters` are, which are changed in place, as are
/// `gradients` by `objective`. Values are those of PyTorch's LBFGS. A trial point with a loss that
/// is not finite counts as too far. Gives the loss at the start.
double lbfgs_step(const LbfgsOptions& options, double rate, const Pieces& parameters,
                  const Pieces& gradients, LbfgsMemory& memory, const Objective& objective);

}  // namespace paddle::optim
