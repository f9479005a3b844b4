#pragma once
// `paddle-infer --benchmark`: times a model and prints one JSON line.

#include <vector>

#include "onnx/graph/value_io.h"
#include "program/model.h"

namespace paddle::cli {

struct BenchmarkOptions {
  Device device;
  int64_t steps = 1;    ///< of each stream, after three that are not counted
  int64_t streams = 1;  ///< runs in parallel, which share the threads
};

void run_benchmark(program::Model& model, const BenchmarkOptions& options,
                   const std::vector<Array>& inputs);
/// The same for a model of ONNX on values of any kind, in one stream.
void run_benchmark(program::Model& model, const BenchmarkOptions& options,
                   const onnx::Values& inputs);

}  // namespace paddle::cli
