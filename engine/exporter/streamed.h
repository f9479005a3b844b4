#pragma once
// Models whose weights pass through memory one at a time, for checks of files that are larger than
// the memory they may take. Operations run one by one, so they are slower than compiled models.

#include <memory>
#include <string>

#include "ir/module.h"
#include "onnx/export/export.h"
#include "program/model.h"

namespace paddle::exporter {

/// A traced function; `weight` is asked for a weight each time that an operation reads it. Random
/// states are zero, other states have their first values.
std::unique_ptr<program::Model> stream_function(const ir::Function& function,
                                                onnx::WeightLookup weight);
/// An exported file. Its weights should be in an external data file, whose pages are released after
/// each node.
std::unique_ptr<program::Model> stream_file(const std::string& path);

}  // namespace paddle::exporter
