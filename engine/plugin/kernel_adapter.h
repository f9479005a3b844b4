#pragma once
// A kernel of a plug-in (paddle/plugin/kernel.h) as one of the engine.

#include <string>

#include "ops/core/kernel.h"
#include "ops/core/operand_types.h"
#include "paddle/plugin/kernel.h"

namespace paddle::plugin {

/// The target of AddedKernel::context.
struct KernelContext {
  std::string plugin;     ///< "acme 1.0.0"
  std::string operation;  ///< "acme.twice"
  std::string backend;
  DTypeSet dtypes = 0;  ///< of the first operand
  const paddle_kernel* kernel = nullptr;
};

std::unique_ptr<Kernel> prepare_plugin_kernel(const KernelRequest& request, const void* context);

}  // namespace paddle::plugin
