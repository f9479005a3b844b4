#pragma once
// The dims of a program that has been read, and the names that its code may not assign. Not for use
// outside the room.

#include "lang/syntax/program.h"

namespace paddle::lang {

/// Fills `program.dims` with the names in the inputs' shapes; notes those that no call can bind.
void collect_dims(Program& program, Diagnostics& diagnostics);
/// Notes assignments to params and dims.
void check_assignments(const Program& program, Diagnostics& diagnostics);

}  // namespace paddle::lang
