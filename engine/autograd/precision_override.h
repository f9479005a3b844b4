#pragma once
// How mixed precision treats operations, where plug-ins change what their schema says. Lists of a
// config have priority (AutocastOptions).

#include <optional>
#include <utility>
#include <vector>

#include "ops/core/op.h"

namespace paddle::autograd {

using PrecisionOverrides = std::vector<std::pair<const Op*, PrecisionClass>>;

/// Changes the classes of operations, all or, by kConfig, none: an operation whose class was
/// changed to another one before is an error.
void override_precision(const PrecisionOverrides& changes);
/// The class that an operation was changed to. Takes no lock.
std::optional<PrecisionClass> overridden_precision(const Op& op);

}  // namespace paddle::autograd
