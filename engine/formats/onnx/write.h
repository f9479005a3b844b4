#pragma once
// Writes ONNX models: the file is streamed, so memory does not grow with the weights, and its bytes
// depend only on the model.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/onnx/model.h"

namespace paddle::formats::onnx {

struct WriteOptions {
  enum class External { kAuto, kAlways, kNever };
  /// Whether weights go into `FILE.data` next to the file; kAuto: only when the model would exceed
  /// the 2 GiB that a protobuf message may have.
  External external = External::kAuto;
  /// The value of a weight, for initializers whose arrays only have a type and a shape (ModelFile);
  /// asked for when it is written, one at a time.
  std::function<Array(const std::string& weight)> weight = {};
};

/// Statistics of the written file.
struct WrittenModel {
  uint64_t model_bytes = 0;
  uint64_t data_bytes = 0;  ///< of FILE.data; 0 if there is none
  std::string data_file;    ///< "" if there is none
};

/// Bytes of the model in one file, weights included, without writing it.
uint64_t encoded_bytes(const Model& model);

/// Whether it is too large for one file.
bool needs_external_data(const Model& model);

/// Writes next to the path and renames, so that a previous file stays whole until the new one is.
/// kUsage if the model needs external data and may not have it; kDevice with path and cause if the
/// disk rejects.
WrittenModel write_model(const Model& model, const std::string& path, const WriteOptions& options);

/// A model that is written next to others with the same weights.
struct ModelFile {
  const Model* model = nullptr;
  std::string path;
  /// The weights that initializers are, by the initializers' names. Files share those that are
  /// external.
  std::map<std::string, std::string> weights = {};
};

/// Writes models to their paths and their external data to one file, in the same folder. kAuto
/// gives them external data if one of them needs it.
std::vector<WrittenModel> write_models(std::span<const ModelFile> files,
                                       const std::string& data_path, const WriteOptions& options);
/// Writes models with external data again, as they are next to a data file of another name, which
/// is not written.
void write_without_data(std::span<const ModelFile> files, const std::string& data_path,
                        const WriteOptions& options);

}  // namespace paddle::formats::onnx
