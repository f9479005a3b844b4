#pragma once
// Values that follow from constants, however large: weights that a model rearranges or rounds.

#include <optional>

#include "compiler/passes/passes.h"

namespace paddle::passes {

/// The value of a result of a few operations on constants; nullopt if it depends on anything else.
std::optional<Array> constant_value(const ir::Value* value, const Evaluate& evaluate);

}  // namespace paddle::passes
