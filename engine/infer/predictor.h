#pragma once
// A loaded model: a function of named inputs to named outputs with its weights, planned and run
// batch by batch. Loads a run's `model/` folder, a checkpoint of a run, a model file, or an ONNX
// file.

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/document.h"
#include "data/vocabulary.h"
#include "ir/module.h"
#include "lang/syntax/program.h"
#include "onnx/graph/session.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "train/checkpoint.h"
#include "train/field_use.h"
#include "train/predict.h"

namespace paddle::infer {

struct LoadOptions {
  std::vector<std::string> overrides;  ///< params.x=value, for model files
  std::string weights;                 ///< safetensors, for model files; "" for random ones
  std::string function = "model";      ///< entry of a model file
  std::vector<std::string> allow_missing, allow_unused;
  uint64_t seed = 0;
  /// Times the plan's instructions when set.
  std::shared_ptr<runtime::Profile> profile;
  passes::Observer observe;  ///< told of functions after each pass when set
  runtime::CompileOptions compile;
  /// Arrays that will be given: an ONNX graph's inputs take them even where they have a value.
  std::set<std::string> given;
};

/// What a model's folder says of its data beside the types.
struct ModelMetadata {
  std::vector<std::string> classes;  ///< names, if it is a classifier with names
  int64_t class_count = 0;           ///< 0 if it is no classifier
  std::string label_field;
  std::optional<int64_t> ignore_index;  ///< marks samples without a label
  std::string scored_output;            ///< the output that the loss takes as class scores
  train::Scores scores = train::Scores::kUnknown;
  std::vector<train::TargetUse> targets;  ///< fields that the loss compares with outputs
  std::vector<data::Fitted> fitted;       ///< from the run's training rows
  std::optional<data::Vocabulary> vocabulary;
  std::optional<config::Node> config;  ///< the run's resolved config
};

/// The folder with the module and the weights: a run folder stands for its model, a folder of
/// checkpoints for the newest one. kUsage if there is none.
std::string find_model_folder(const std::string& path);

class Predictor {
 public:
  Predictor() = default;
  static std::unique_ptr<Predictor> load(const std::string& path, const LoadOptions& options);

  const std::string& name() const { return name_; }
  const std::vector<std::pair<std::string, TensorType>>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  const ModelMetadata& metadata() const { return meaning_; }
  int64_t parameter_count() const;
  const std::optional<train::LoadReport>& load_report() const { return report_; }

  /// One array per input, in order; they must fit the declared types. Results are valid until the
  /// next call.
  const std::vector<Array>& run(const std::vector<Array>& inputs);
  /// The ONNX model behind this one, or null if it is of another kind.
  onnx::Session* onnx() const { return onnx_.get(); }
  /// What the class scores of output `i` are.
  train::Scores scores(size_t i) const;
  /// Whether output `i` is a sigmoid, whose values are probabilities one by one.
  bool is_sigmoid(size_t i) const;
  /// Floating-point operations for inputs of these shapes.
  double flops(const std::vector<Array>& inputs);
  /// States that live for one sequence go back to their beginning.
  void reset();

 private:
  /// A traced function, ready to run. A model that asks for `static(dim)` has one for each value.
  struct Trace {
    std::map<std::string, int64_t> fixed;  ///< dims that it is good for
    std::shared_ptr<ir::Function> function;
    std::unique_ptr<runtime::Executable> executable;
    std::vector<Array> arrays;    ///< one per function input
    std::vector<int> user_input;  ///< per function input: number of the user's input, or -1
    std::vector<size_t> user_output;
    /// Puts the user's inputs into `arrays`.
    void take(const std::vector<Array>& inputs);
  };
  void open_folder(const std::string& path);
  void open_program(const std::string& path, const LoadOptions& options);
  void open_onnx(const std::string& path, const LoadOptions& options);
  std::vector<Array> run_onnx(const std::vector<Array>& inputs);
  void load_weights(const LoadOptions& options);
  /// Traces the program with these values for `static(dim)`; false if it asks for more.
  bool trace(const std::map<std::string, int64_t>& known);
  void add(std::shared_ptr<ir::Function> function, std::map<std::string, int64_t> fixed);
  Trace& trace_for(const std::vector<Array>& inputs);

  std::string name_;
  std::vector<std::pair<std::string, TensorType>> inputs_;
  std::vector<std::string> outputs_;
  std::vector<train::OutputScale> scales_;  ///< per output, of the last trace
  ModelMetadata meaning_;
  train::ParameterStore store_;
  std::map<std::string, Array> live_states_;  ///< of the running sequence
  std::list<Trace> traces_;                   ///< most recently used first
  std::vector<Array> results_;                ///< of the last call
  std::shared_ptr<const lang::Program> program_;
  const lang::EntryPoint* entry_ = nullptr;
  bool use_float64_ = false;
  std::function<void(const ir::Function&)> fill_store_;  ///< with the weights of a function
  std::optional<train::LoadReport> report_;
  std::shared_ptr<runtime::Profile> profile_;
  passes::Observer observe_;
  runtime::CompileOptions compile_;
  std::unique_ptr<onnx::Session> onnx_;
};

}  // namespace paddle::infer
