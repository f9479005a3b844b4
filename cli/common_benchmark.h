#pragma once
// `paddle-infer --benchmark`: times a model and prints one JSON line.

#include <vector>

#include "onnx/graph/value_io.h"
#include "program/model.h"

namespace paddle::cli {

/// `steps` runs after three that are not counted.
void run_benchmark(program::Model& model, Device device, int64_t steps,
                   const std::vector<Array>& inputs);
/// The same for a model of ONNX on values of any kind.
void run_benchmark(program::Model& model, Device device, int64_t steps, const onnx::Values& inputs);

}  // namespace paddle::cli
