#pragma once
// Running one operation on given tensors, as `paddle op run` does.

#include "formats/npz.h"
#include "inspect/both_modes.h"
#include "inspect/op_call.h"

namespace paddle::inspect {

/// The results by name (`out`; `outs.0`, `outs.1` of a list) and, with `gradients`,
/// `grad_<argument>` of every floating input: the gradients of the sum of all results.
formats::NamedArrays run_named(const NamedCall& call, Mode mode, bool gradients,
                               Device device = {});

}  // namespace paddle::inspect
