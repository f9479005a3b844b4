#pragma once
// From a traced function to one that runs: the pass pipeline with this runtime's kernels, then an
// executable that plans it for the shapes of each call.

#include <memory>

#include "compiler/pipeline.h"
#include "runtime/executable.h"

namespace paddle::runtime {

/// The passes for these options. Registers the kernels that they query.
std::vector<compiler::Pass> pass_pipeline(const compiler::CompileOptions& options = {});

/// Runs the pass pipeline on the function.
void optimize(ir::Function& function, const compiler::CompileOptions& options = {},
              const compiler::Observer& observe = {});

/// Runs the passes for functions that are saved.
void optimize_for_saving(ir::Function& function);

/// Optimizes the function and wraps it in an executable. `compile` overrides those plan options
/// that it has as well.
std::unique_ptr<Executable> compile(std::shared_ptr<ir::Function> function,
                                    const compiler::CompileOptions& compile,
                                    ExecutableOptions options = {},
                                    const compiler::Observer& observe = {});

}  // namespace paddle::runtime
