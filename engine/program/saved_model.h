#pragma once
// The folder `model/` at the end of a run: the traced function, the weights, and what inputs and
// outputs mean (preprocessing with the statistics of the training rows, vocabularies, class names),
// all that prediction needs. A checkpoint holds the same files.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/document.h"
#include "data/dataset.h"
#include "data/vocabulary.h"
#include "ir/module.h"
#include "lang/syntax/program.h"
#include "program/field_use.h"
#include "program/parameter_store.h"
#include "quant_common/fake_quant.h"

namespace paddle::program {

/// Metadata of a saved model: its data besides the types.
struct ModelMetadata {
  std::vector<std::string> classes;  ///< names, if it is a classifier with names
  int64_t class_count = 0;           ///< 0 if it is not a classifier of one class each
  bool is_multi_label = false;       ///< any of the classes may hold at once
  /// The field with the true answer, which the loss compares; "" if there is none or several.
  std::string label_field;
  std::optional<int64_t> ignore_index;  ///< marks samples without a label
  std::string scored_output;            ///< the output that the loss uses as class scores
  Scores scores = Scores::kUnknown;
  std::vector<TargetUse> targets;    ///< fields that the loss compares with outputs
  std::vector<OutputUnit> units;     ///< of the outputs, as far as they are known
  std::vector<data::Fitted> fitted;  ///< from the run's training rows
  std::optional<data::Vocabulary> vocabulary;
  std::optional<config::Node> config;  ///< the run's resolved config
};

/// The folder with the function and the weights: for a run its model, for a folder of checkpoints
/// the newest one. kUsage if there is none.
std::string find_model_folder(const std::string& path);
/// kModel if the files are damaged.
ModelMetadata read_metadata(const std::string& folder);
/// Writes config, vocabularies and names. `config` is the run's resolved document, `fields` are
/// those of a batch, `dataset` is the training data, `use` names the field of class numbers.
void write_metadata(const std::string& folder, const std::string& name, const config::Node& config,
                    const std::vector<data::Field>& fields, const data::Dataset& dataset,
                    const FieldUse& use);
/// Writes the function of prediction and the weights; those kept in 16 bits as their masters.
/// `quantization`: of a run that trains with it, else null. `weights`: a file that has the weights
/// and is copied, for a store without values; "": those of the store.
void write_model(const std::string& folder, const std::string& name, const lang::Program& program,
                 bool use_float64, const ParameterStore& store,
                 const quant::FakeQuantization* quantization, const std::string& weights = "");
/// Writes a function as a model folder, with the metadata of the folder that it was made of, a
/// saved model or a checkpoint. `weight` gives parameters and states by name.
void write_folder(const std::string& folder, const std::string& source_folder,
                  const std::string& name, const std::shared_ptr<ir::Function>& function,
                  const std::function<Array(const std::string&)>& weight);

}  // namespace paddle::program
