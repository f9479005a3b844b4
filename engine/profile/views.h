#pragma once
// Views of an analysis as tables on the terminal: time by module, memory by kind and at the peak,
// and devices.

#include <string>

#include "profile/analysis.h"

namespace paddle::profile {

/// Time of a step by layer path, where a module includes the layers within it. Paths of up to
/// `depth` parts; each module is followed by its own parts, the slowest first. At most `count`
/// rows. "" if no operation has a layer or `depth` is 0.
std::string module_table(const Analysis& analysis, int64_t depth, size_t count);

/// The values that are live when most memory is in use, the largest first, at most `count` rows;
/// "" without a plan.
std::string memory_table(const Analysis& analysis, size_t count);

/// Memory of the most costly plan by kind: parameters, states, and values by the passes that make
/// and read them, at the peak and at most; "" without a plan.
std::string memory_kind_table(const Analysis& analysis);

/// Time, copies and memory of each device; "" if no operation was measured.
std::string device_table(const Analysis& analysis);

}  // namespace paddle::profile
