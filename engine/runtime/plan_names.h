#pragma once
// The names of a plan's instructions in profiles and messages.

#include <string>
#include <vector>

#include "ir/module.h"

namespace paddle::runtime {

/// The reductions of a fusion group that are results of an instruction.
std::vector<const ir::Operation*> reductions_of(const ir::Operation& group,
                                                const std::vector<int>& results);
/// Name of an operation in a profile: all members of a group that starts with a convolution or
/// matrix product, only the reductions of an elementwise group.
std::string described(const ir::Operation& operation, const std::vector<int>& results);
/// The origin of an operation; of a group, that of the convolution or matrix product it starts
/// with.
std::string origin_of(const ir::Operation& operation);

}  // namespace paddle::runtime
