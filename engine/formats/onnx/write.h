#pragma once
// Writes ONNX models: the file is streamed, so memory does not grow with the weights, and its bytes
// depend on the model alone.

#include <cstdint>
#include <string>

#include "formats/onnx/model.h"

namespace paddle::formats::onnx {

struct WriteOptions {
  enum class External { kAuto, kAlways, kNever };
  /// Whether weights go into `FILE.data` beside the file; kAuto: only when the model would exceed
  /// the 2 GiB that a protobuf message may have.
  External external = External::kAuto;
};

/// Statistics of the written file.
struct WrittenModel {
  uint64_t model_bytes = 0;
  uint64_t data_bytes = 0;  ///< of FILE.data; 0 if there is none
  std::string data_file;    ///< "" if there is none
};

/// Bytes of the model in one file, weights included, without writing it.
uint64_t encoded_bytes(const Model& model);

/// Writes beside the path and renames, so that a previous file stays whole until the new one is.
/// kUsage if the model needs external data and may not have it; kDevice with path and cause if the
/// disk refuses.
WrittenModel write_model(const Model& model, const std::string& path, const WriteOptions& options);

}  // namespace paddle::formats::onnx
