#pragma once
// Sums of gradients over ranks that are left to the update. A function that adds the gradients of a
// micro-batch to states would sum each gradient over ranks; instead each rank adds up its own
// parts, and the update sums the states, once.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace paddle::partition {

/// For each state that has a rank's part of a sum: the groups of ranks to sum it over, one after
/// the other.
using DelayedSums = std::map<std::string, std::vector<std::vector<int64_t>>>;

/// Takes the sums over ranks out of a local function whose states `accumulates` names are old value
/// plus gradient, where nothing else reads them and each product with a sum is by a number.
/// `settled`: the result of an earlier function for the same states, of which this one keeps to
/// the groups: where it has a whole gradient instead, the first rank adds it.
DelayedSums delay_sums(ir::Function& function,
                       const std::function<bool(const std::string&)>& accumulates, int64_t rank,
                       const DelayedSums* settled);

/// Sums the states over ranks where the function begins. Those with the same groups and dtype share
/// an all-reduce up to this many bytes.
void sum_states(ir::Function& function, const DelayedSums& sums, int64_t bucket_bytes);

}  // namespace paddle::partition
