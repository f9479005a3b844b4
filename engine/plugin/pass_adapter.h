#pragma once
// Passes of plug-ins: the engine prints the function, the plug-in gives another text, and what it
// gives is parsed and checked before it takes the function's place.

#include <deque>
#include <string>
#include <vector>

#include "compiler/pipeline.h"
#include "paddle/plugin/pass.h"

namespace paddle::plugin {

/// A pass of a plug-in. It must outlive the registry.
struct PassContext {
  std::string plugin;  ///< name and version
  std::string name;    ///< "acme.fold_scales"
  const paddle_pass* pass;
};

/// Runs the pass. compiler::PassError: with the place in its text if that is not a module or
/// has another signature or other effects; with the status that it gives if it fails.
void run_plugin_pass(const PassContext& context, ir::Function& function);

/// The pass for the registry.
compiler::AddedPass added_pass(const PassContext& context);

}  // namespace paddle::plugin
