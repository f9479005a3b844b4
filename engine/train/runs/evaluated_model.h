#pragma once
// Trained models with the config of their run: what a Trainer needs to compute the loss and the
// metrics of the run again, without training.

#include <string>
#include <vector>

#include "train/config/run_config.h"
#include "train/job/trainer.h"

namespace paddle::train {

/// The model, the config of its run, and where its weights and fitted values are.
struct EvaluatedModel {
  std::string model;
  RunConfig config;
  TrainOptions options;
};

/// The file with the config of a run folder, a model folder or a checkpoint; "" if it has none.
std::string config_of_model(const std::string& folder);

/// A run folder, a model folder or a checkpoint. kModel if it has no config, kUsage for one of
/// several models without the others.
EvaluatedModel open_evaluated_folder(const std::string& folder,
                                     const std::vector<std::string>& overrides);

/// Weights (.safetensors) of the config's model, or a model that replaces it: an ONNX file, or a
/// model file[:variant] with `weights` (.safetensors; "" where the config has `init`). Fitted
/// values come from the folder of the config. kUsage for other files.
EvaluatedModel open_evaluated_file(const std::string& file, const std::string& config_file,
                                   std::vector<std::string> overrides,
                                   const std::string& weights = "");

/// The config's own model with the weights that its section `init` names.
EvaluatedModel open_evaluated_config(const std::string& config_file,
                                     const std::vector<std::string>& overrides);

/// Puts "train", "valid", "test", "CONFIG.yaml[:part]" or a file or folder of data, which is read
/// as the run's own, in the place of the validation data, and returns the name of the part. kUsage,
/// naming `option`, for an unknown part.
std::string choose_evaluation_data(RunConfig& config, const std::string& words,
                                   const std::string& option);

/// Takes out what has no effect on an evaluation: early stops, checks of the data and, unless the
/// evaluation has several ranks, their layout.
void settle_for_evaluation(RunConfig& config, bool has_ranks = false);

}  // namespace paddle::train
