#pragma once
// The runtime's side of the passes: how they evaluate constants, and which operations its kernels
// can compute as a group. From a traced function to one that runs.

#include <memory>

#include "compiler/passes/passes.h"
#include "runtime/executable.h"

namespace paddle::runtime {

/// Which optimisations run; each can be left out, to compare.
struct CompileOptions {
  bool fusion = true;    ///< elementwise operations in one pass over memory
  bool layout = true;    ///< images with channels last, norms in parts that fuse, epilogues, int8
  bool rewrites = true;  ///< rules
  bool codegen = true;   ///< groups as machine code (PlanOptions::codegen)
  bool batch_tiling = true;  ///< large activations are computed for a few samples at a time
  ExecutionPolicy policy = {.allow_winograd = true};
  /// Only what gives the bits of the operations one by one: no layouts, no rewrites, no batch
  /// tiling, no transformed convolutions, and no groups that keep values between 16-bit operations
  /// in float32.
  bool exact = false;
  std::vector<passes::Rule> rules = {};  ///< beside the standard ones
};

/// Options for `passes::standard_passes` with this runtime's answers.
passes::PassOptions pass_options(const CompileOptions& options = {});

/// The function, brought into another form by the standard passes, ready to run. What `compile`
/// says of plans goes before `options.plan`.
std::unique_ptr<Executable> optimized(std::shared_ptr<ir::Function> function,
                                      const CompileOptions& compile, ExecutableOptions options = {},
                                      const passes::Observer& observe = {});

}  // namespace paddle::runtime
