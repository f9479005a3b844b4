#pragma once
// The functions of a step's body that differentiate: `grad(y, x)`, `vjp(y, x, v)`, `jvp(y, x, v)`,
// `jacobian(y, x)` and `hessian(y, x)`.

#include "lang/eval/evaluator.h"

namespace paddle::train {

/// Adds them by name. Their arguments are tensors of the step; kConfig for calls that do not fit.
void add_derivatives(std::map<std::string, lang::HostFunction>& functions);

/// Whether the code calls one of the functions of a step that differentiate, those that minimize
/// included.
bool differentiates(const lang::Code& code);

}  // namespace paddle::train
