#pragma once
// The content of a request to /v1/predict as batches of a model's inputs, read in the way
// paddle-infer reads files.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/scratch_folder.h"
#include "infer/results.h"
#include "onnx/graph/value_io.h"
#include "program/model.h"
#include "serve/predict_request.h"

namespace paddle::serve {

/// The inputs of one request. Errors of reading are ApiErrors that name rows and files as the
/// request does.
class PredictInputs {
 public:
  /// `options`: as the model's results are wanted, with its run.
  PredictInputs(const program::Model& model, const PredictRequest& request,
                infer::InputOptions options);

  /// The values of an ONNX graph that has strings, sequences or maps; nullopt for other models,
  /// which have batches.
  const std::optional<onnx::Values>& values() const { return values_; }
  std::optional<infer::InputBatch> next();
  infer::ShownColumns shown() const { return {batches_->has_labels(), batches_->may_skip()}; }

 private:
  void open(const program::Model& model, const PredictRequest& request,
            infer::InputOptions& options);
  void add_lists(const program::Model& model, const PredictRequest& request);
  onnx::Values values_of(const onnx::Session& session, const PredictRequest& request) const;
  std::string write(const std::string& name, std::string_view content);
  std::string with_files(const std::vector<std::string>& columns, const std::string& rows);
  /// A message with the names of the request in place of those of the files here.
  std::string named(const std::string& message) const;
  [[noreturn]] void reject_error(const Error& error) const;

  std::optional<ScratchFolder> folder_;
  PredictRequest::Kind kind_;
  std::vector<std::string> file_names_;  ///< as the request names them, by number
  formats::NamedArrays arrays_;
  std::unique_ptr<infer::Batches> batches_;
  std::optional<onnx::Values> values_;
};

/// Columns of a run's table that its model takes; empty for other models.
std::vector<std::string> table_columns(const program::Model& model, const infer::RunInputs& run);

}  // namespace paddle::serve
