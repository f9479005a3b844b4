#pragma once
// The checks of a compiler of a plug-in that is loaded. Each returns "" or one line: what failed; a
// line that begins with kSkip says why there was nothing to check.

#include <string>
#include <vector>

#include "conformance/calls.h"

namespace paddle::conformance {

/// "modules", "gradients", "unusual", "operations", "sizes", "threads", "repeat": what a compiler
/// is tried on.
const std::vector<std::string>& compiler_checks();
/// Compiles functions with the compiler and without it: results have the same bits if it states
/// so, and are close otherwise, and the memory around them stays as it is. "operations": single
/// operations that it supports. "sizes": functions whose sizes are known only in a call.
/// "threads": one function in several threads. "repeat": the same bits again.
std::string check_compiler(const std::string& compiler, const std::string& check,
                           const Extent& extent);

}  // namespace paddle::conformance
