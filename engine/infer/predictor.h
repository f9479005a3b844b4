#pragma once
// A loaded model: a function of named inputs to named outputs with its weights, planned and run
// batch by batch. Loads a run's `model/` folder, a checkpoint of a run, or a model file.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/vocabulary.h"
#include "ir/module.h"
#include "model/document.h"
#include "runtime/executable.h"
#include "train/checkpoint.h"

namespace paddle::infer {

struct LoadOptions {
  std::vector<std::string> overrides;  ///< params.x=value, for model files
  std::string weights;                 ///< safetensors, for model files; "" for random ones
  std::string function = "model";      ///< entry of a model file
  std::vector<std::string> allow_missing, allow_unused;
  uint64_t seed = 0;
};

/// What a model's folder says of its data beside the types.
struct Meaning {
  std::vector<std::string> classes;  ///< names, if it is a classifier with names
  int64_t class_count = 0;           ///< 0 if it is no classifier
  std::string label_field;
  std::optional<data::Vocabulary> vocabulary;
  std::optional<model::Node> config;  ///< the run's resolved config
};

class Predictor {
 public:
  Predictor() = default;
  static std::unique_ptr<Predictor> load(const std::string& path, const LoadOptions& options);

  const std::string& name() const { return name_; }
  const std::vector<std::pair<std::string, TensorType>>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  const Meaning& meaning() const { return meaning_; }
  const ir::Function& function() const { return *function_; }
  int64_t parameter_count() const;
  const std::optional<train::LoadReport>& load_report() const { return report_; }

  /// One array per input, in order; they must fit the declared types. Results are valid until the
  /// next call.
  std::vector<Array> run(const std::vector<Array>& inputs);
  /// Floating-point operations for inputs of these shapes.
  double flops(const std::vector<Array>& inputs);
  /// States that live for one sequence go back to their beginning.
  void reset();

 private:
  void open_folder(const std::string& path);
  void open_program(const std::string& path, const LoadOptions& options);
  void prepare();

  std::string name_;
  std::vector<std::pair<std::string, TensorType>> inputs_;
  std::vector<std::string> outputs_;
  Meaning meaning_;
  train::Store store_;
  std::shared_ptr<ir::Function> function_;
  std::unique_ptr<runtime::Executable> executable_;
  std::vector<Array> arrays_;
  std::vector<int> user_input_;  ///< per function input: number of the user's input, or -1
  std::vector<size_t> user_output_;
  std::optional<train::LoadReport> report_;
};

}  // namespace paddle::infer
