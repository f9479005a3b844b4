#pragma once
// Accesses of operations outside of their operands and results: files, processes, the network, the
// terminal, other ranks. An operation declares it in its traits (`accesses_files`, …). Models may
// come from anybody, so the model language, the text form of modules and rewrite rules reject such
// operations unless their caller allows them.

#include <string>

#include "ops/core/op.h"

namespace paddle {

inline constexpr uint32_t kAllAccesses =
    kAccessesFiles | kAccessesProcesses | kAccessesNetwork | kAccessesTerminal | kAccessesRanks;

/// Why a model may not call `op`, one line without a location; "" if it may. `allowed` are traits
/// of kAllAccesses.
std::string access_error(const Op& op, uint32_t allowed = 0);

}  // namespace paddle
