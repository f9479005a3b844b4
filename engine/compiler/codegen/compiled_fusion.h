#pragma once
// Kernels of fusion groups compiled to machine code: values stay in registers from operands to
// results. Results equal those of the block interpreter (kernels/cpu/fused.h) bit for bit, except
// for the payload of NaN.

#include "ops/core/fused.h"

namespace paddle::codegen {

class Compiler;

/// A backend for fusion groups. Declines requests that do not allow compilation, groups that the
/// generator does not support, and those too small to gain.
std::unique_ptr<Kernel> prepare_compiled_group(const FusedRequest& request);
/// The same with the given compiler and without a lower bound on the size.
std::unique_ptr<Kernel> prepare_compiled_group(const FusedRequest& request, Compiler& compiler);

/// Why groups could not be compiled in this process, once; afterwards, and if they could, "".
std::string take_problem();

}  // namespace paddle::codegen
