#pragma once
// Samples on which an operation's gradient is checked: arguments in the form of `parse_call`. An
// operation whose tensors may be any float64 [2, 3] and whose attributes have defaults needs no
// entry; others have one in the table of samples.cc.

#include <string>
#include <vector>

#include "ops/op.h"

namespace paddle::inspect {

/// The operation's entries, or one made from its signature; none for an operation that only the
/// gradient of another one calls and that is checked there.
std::vector<std::string> samples_of(const Op& op);

}  // namespace paddle::inspect
