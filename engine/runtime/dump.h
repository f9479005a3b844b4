#pragma once
// Functions as files, as passes change them.

#include <string>

#include "compiler/passes/passes.h"

namespace paddle::runtime {

/// Writes each function it is told of into `folder` (made if absent) as a module's text:
/// `predict.03.rewrite.txt`. The text says of constants of over 1024 elements only that they were
/// left out; without those it reads back. kDevice where that cannot be written.
passes::Observer dump_stages(const std::string& folder, const std::string& module_name);

}  // namespace paddle::runtime
