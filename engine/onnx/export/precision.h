#pragma once
// A function whose computation is in 16 bits where operations allow it, as mixed precision at level
// O2 does it. Inputs, outputs and parameters keep their types; casts of parameters are stored.

#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"
#include "onnx/export/export.h"

namespace paddle::onnx {

/// Operations whose name, or the name of a parameter that they read, matches a pattern of
/// `keep_float` stay in float32. kUsage for a pattern that matches neither. Constants that are
/// finite stay finite; `limited` are those that change by it.
std::unique_ptr<ir::Function> in_low_precision(const ir::Function& function, DType low,
                                               const std::vector<std::string>& keep_float,
                                               std::vector<LimitedConstant>& limited);

}  // namespace paddle::onnx
