#pragma once
// Prediction of paddle-infer: rows of the input to results, or one run on values of any kind.

#include <functional>
#include <string>
#include <vector>

#include "infer/batches.h"
#include "onnx/graph/value_io.h"
#include "program/model.h"

namespace paddle::cli {

struct PredictOptions {
  infer::InputOptions input;
  std::string output;                  ///< a file, a folder of pictures, or "" for lines
  std::vector<std::string> overrides;  ///< "predict.beams=4": of the run's section `predict:`
  bool raw = false;                    ///< the model's outputs as they are
  bool overwrite = false;              ///< replace a file that no prediction wrote
  bool quiet = false;
  bool json = false;     ///< print the counts as a JSON object on the last line
  bool dry_run = false;  ///< open the input and read its first batch, predict nothing
  int64_t streams = 1;   ///< batches at a time, which share the threads
};

/// Predicts all rows and prints what --output says. `ran` is called after runs of the model itself,
/// of which the first is one.
/// The status of an interrupt, or 0.
int predict_rows(program::Model& model, const PredictOptions& options,
                 const std::function<void()>& ran);

/// Runs a model of ONNX on values of any kind; outputs go to an NPZ file or are listed.
void run_values(onnx::Session& model, const onnx::Values& inputs, const PredictOptions& options);
/// Prints the inputs, outputs and parameters of a model, as lines or as a JSON object.
void print_model(const program::Model& model, bool json);
/// Whether the inputs are read as values of any kind: from a folder of them, or from an NPZ file
/// for a model that has strings, sequences or maps.
bool takes_values(const onnx::Session& model, const std::string& input);

}  // namespace paddle::cli
