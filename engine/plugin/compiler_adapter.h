#pragma once
// A compiler of a plug-in (paddle/plugin/graph.h) as one of the engine.

#include <string>

#include "compiler/region_compilers.h"
#include "paddle/plugin/graph.h"

namespace paddle::plugin {

struct CompilerContext {
  std::string plugin;         ///< "acme 1.0.0"
  std::string name;           ///< "acme.loops"
  paddle_compiler functions;  ///< what the engine knows of the plug-in's struct
  std::string sha256 = {};    ///< of the file, once it is known
};

/// The compiler for the registry; its device must be registered. The context must outlive it.
compiler::RegionCompiler region_compiler_of(const CompilerContext& context);

}  // namespace paddle::plugin
