#pragma once
// `minimize_bfgs(model, x)` and `minimize_lbfgs(model, x)` of a step's body.

#include "lang/eval/evaluator.h"

namespace paddle::train {

/// The function of a step's body; `limited_memory`: that of L-BFGS. Its first argument is a model
/// of the config that gives one number, of which it finds the input. kConfig for calls that do not
/// fit.
lang::HostFunction minimize_function(bool limited_memory);

}  // namespace paddle::train
