#pragma once
// Arithmetic on sizes: operations of programs on shapes are evaluated on dims while sizes are
// symbolic, so that a reshape to a computed shape can be traced.

#include <optional>

#include "paddle_program/program_call.h"

namespace paddle::paddle_program {

/// The result of the call if it is a shape or follows from sizes; nullopt otherwise.
std::optional<Value> known_sizes(const ProgramCall& call);

}  // namespace paddle::paddle_program
