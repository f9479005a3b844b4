#pragma once
// The checks of passes and rewrite rules of a plug-in that is loaded. Each returns "" or one line:
// what failed; a line that begins with kSkip says why there was nothing to check.

#include <string>
#include <vector>

#include "conformance/calls.h"

namespace paddle::conformance {

inline constexpr char kSkip = '\x1e';

/// "modules", "gradients", "unusual" and "repeat": what a pass is tried on.
const std::vector<std::string>& pass_checks();
/// Compiles functions with this added pass and without any: results have the same bits if the pass
/// states so, and are close otherwise. "repeat": it gives the same module for the same one again.
std::string check_pass(const std::string& pass, const std::string& check, const Extent& extent);

/// Makes calls of the rule's pattern with values, and compares them with its replacement, in
/// float32 and float64.
std::string check_rule(const std::string& rule);

}  // namespace paddle::conformance
