#pragma once
// Where jobs take their data from and where they write models.

#include <filesystem>
#include <memory>
#include <string>

#include "infer/batches.h"
#include "ir/module.h"
#include "program/model.h"
#include "quant/function_runner.h"

namespace paddle::quant {

/// The data that was given, or the part ("train", "valid") of the model's own run, if it has one.
infer::InputOptions data_of(const infer::InputOptions& given, const program::Model& model,
                            const char* part);
bool is_given(const infer::InputOptions& options);

/// A function as a model folder, with the metadata of its source.
void write_folder(const std::string& folder, const std::string& source_folder,
                  const std::string& name, const std::shared_ptr<ir::Function>& function,
                  const WeightSource& weight);

/// Where a job writes. Files are made in `partial`, and moved when it is known where they belong.
struct Paths {
  bool only_file;
  std::filesystem::path base;     ///< the output folder, or the folder of the output file
  std::filesystem::path partial;  ///< holds `file` and `model/` until then
  std::string file;               ///< name of the ONNX file

  explicit Paths(const std::string& output);
  std::filesystem::path report(const char* kind) const;
  /// Makes `partial`, empty.
  void begin() const;
  /// Moves what is in `partial` to its place. What was in that place is replaced.
  void publish(bool accepted) const;
};

/// kUsage if the output exists and must not be replaced.
void check_output(const std::string& output, bool overwrite);

}  // namespace paddle::quant
