#pragma once
// Window functions by name, as in SciPy's scipy.signal.windows.

#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/core/attrs.h"

namespace paddle::rules {

/// `window` is a name, or a list of a name and its parameters. Throws kUsage with the operation's
/// name for unknown windows and missing parameters.
std::vector<double> window_of(std::string_view op, const AttrValue& window, int64_t length,
                              bool periodic);

}  // namespace paddle::rules
