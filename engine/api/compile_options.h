#pragma once
// The options of models and runs that say how they are compiled.

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/pipeline.h"

namespace paddle::v0 {

/// The device of this name as a target, and the bytes that its plans may need; 0: what the device
/// has. kUsage for an unknown device, kDevice for one that is not there.
TargetInfo target_of(const std::string& device, uint64_t memory);
/// Switches optimizations off: "fusion", "layout", "rewrites", "batch_tiling", "codegen" and
/// "winograd". kUsage for another name.
void leave_out(compiler::CompileOptions& compile, const std::vector<std::string>& optimizations);

}  // namespace paddle::v0
