#pragma once
// Groups of elementwise operations as machine code: values stay in registers from the operands to
// the results. The numbers are those of the group run block by block
// (kernels/fusion/block_interpreter.h), bit for bit but for the payload of NaN.

#include "ops/fused.h"

namespace paddle::codegen {

class Compiler;

/// Registered as a backend for groups. Declines requests that don't ask for machine code, groups
/// that it has no code for, and those that are too small to gain.
std::unique_ptr<Kernel> prepare_compiled_group(const FusedRequest& request);
/// The same with a compiler that is not the process's, for groups of any size.
std::unique_ptr<Kernel> prepare_compiled_group(const FusedRequest& request, Compiler& compiler);

/// Why nothing can be compiled in this process, the first time that it is asked for after
/// something should have been; else "".
std::string take_problem();

}  // namespace paddle::codegen
