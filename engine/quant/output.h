#pragma once
// Where jobs take their data from and where they write models.

#include <filesystem>
#include <functional>
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

/// Where a job writes. Files are made in `partial`, and moved when it is known where they belong. A
/// job that is killed leaves `partial` with what a resumed one reads: statistics, a part of them,
/// and what was decided about layers.
struct Paths {
  bool only_file;
  std::filesystem::path base;     ///< the output folder, or the folder of the output file
  std::filesystem::path partial;  ///< holds `file` and `model/` until then
  std::string file;               ///< name of the ONNX file

  explicit Paths(const std::string& output);
  std::filesystem::path report(const char* kind) const;
  /// Whether a job has begun here and has not ended.
  bool is_interrupted() const;
  /// Makes `partial`, empty unless a job resumes.
  void begin(bool resume) const;
  /// Removes what a failed job has made.
  void abandon() const;
  /// Moves the model to its place or to `best/`, reports and statistics to the output, and removes
  /// `partial`. Files that were there are replaced one by one, the ONNX file last. kDevice.
  void publish(bool accepted) const;
  /// The model in `partial` becomes the one in `best/`, which is whole at any moment. kDevice.
  void keep_best() const;
  /// The model in `best/` becomes the one in `partial`. kDevice.
  void take_best() const;

  std::filesystem::path statistics() const { return partial / "statistics.safetensors"; }
  std::filesystem::path begun_statistics() const { return partial / "calibration.safetensors"; }
  std::filesystem::path decisions() const { return partial / "decisions.json"; }

 private:
  bool is_model(const std::filesystem::path& path) const;
};

/// Runs `code`; an error of the file system is kDevice.
void with_disk_errors(const std::function<void()>& code);

/// kUsage if the output exists and must not be replaced.
void check_output(const std::string& output, bool overwrite);

}  // namespace paddle::quant
