#pragma once
// Gradients against central finite differences, in float64 on generated samples.

#include <string>
#include <vector>

#include "inspect/both_modes.h"
#include "ops/core/op.h"

namespace paddle::inspect {

/// Checks an operation's gradient on each of its samples, of all orders to `order`; "" if
/// all agree, else what failed. An operation without a sample that it accepts fails.
std::string check_gradient(const Op& op, int order, const std::vector<Mode>& modes,
                           Device device = {});

/// The operation's samples as words of a command line; without any, float64 [2, 3] for every
/// operand that must be there.
std::vector<std::string> samples_of(const Op& op);

}  // namespace paddle::inspect
