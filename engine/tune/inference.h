#pragma once
// Predictions of a model as the subject of tuning: threads, samples and batches at a time, and what
// the compiler and the kernels do. Its settings are options of paddle-infer.

#include "program/model.h"
#include "tune/target.h"

namespace paddle::tune {

struct InferenceOptions {
  std::string model;
  program::LoadOptions load;
  int64_t batch = 1;
  std::vector<std::string> dims = {};  ///< name=value
  double tolerance = 0.02;             ///< of outputs in another precision, relative to their norm
};

std::unique_ptr<TuningTarget> inference_target(InferenceOptions options);

}  // namespace paddle::tune
