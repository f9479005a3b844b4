#pragma once
// Minimizers of a function of one tensor, as loops on tensors, so that they run eagerly and inside
// of a compiled function. BFGS keeps an approximation of the inverse Hessian, L-BFGS the steps that
// one is made of (Nocedal and Wright, "Numerical Optimization", algorithms 6.1 and 7.5); both
// search along lines for the strong Wolfe conditions (algorithms 3.5 and 3.6).

#include "autograd/autograd.h"

namespace paddle::autograd {

struct MinimizeOptions {
  bool limited_memory = true;  ///< L-BFGS
  int64_t history = 100;       ///< steps that L-BFGS remembers
  int64_t iterations = 50;
  double tolerance_grad = 1e-7;    ///< largest element of the gradient at a minimum
  double tolerance_change = 1e-9;  ///< largest element of a direction that leads nowhere
  int64_t search_iterations = 50;  ///< of each of the two parts of a line search
  double step_length = 1;          ///< the first one that a line search tries
  Tensor inverse_hessian = {};     ///< first approximation, [n, n]; undefined: the identity
};

/// The result of a minimizer; no gradient flows into it.
struct Minimum {
  Tensor converged;        ///< 0-D bool
  Tensor evaluations;      ///< 0-D int64: of the function
  Tensor position;         ///< of the shape of the start
  Tensor value, gradient;  ///< there
  Tensor inverse_hessian;  ///< of BFGS: [n, n]; else undefined
};

/// Minimizes `fn`, a 0-D tensor of one float32 or float64 tensor of static shape, from `start`.
/// kConfig if shapes or dtypes do not fit.
Minimum minimize(const TensorFn& fn, const Tensor& start, const MinimizeOptions& options);

}  // namespace paddle::autograd
