#pragma once
// A loaded model: a function of named inputs to named outputs with its weights. load_model opens a
// run's `model/` folder, a checkpoint of a run, a model file, or an ONNX file.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/pipeline.h"
#include "onnx/graph/session.h"
#include "program/checkpoint.h"
#include "program/saved_model.h"
#include "runtime/profile.h"

namespace paddle::program {

struct LoadOptions {
  std::vector<std::string> overrides;  ///< params.x=value, for model files
  std::string weights;                 ///< safetensors, for model files; "" for random ones
  std::string function = "model";      ///< entry of a model file or a trained model
  std::vector<std::string> allow_missing, allow_unused;
  /// Values of a model file's parameters, in place of `weights`.
  std::function<std::optional<Array>(const std::string& name, const Dims& shape, DType dtype)>
      preset;
  uint64_t seed = 0;
  /// Times the plan's instructions when set.
  std::shared_ptr<runtime::Profile> profile;
  compiler::Observer observe;  ///< called with functions after each pass when set
  compiler::CompileOptions compile;
  /// kBF16 or kF16: products, convolutions and attention compute in it. Not for ONNX files and for
  /// models that are quantized or in float64.
  DType precision = DType::kF32;
  /// Arrays that the caller will provide: inputs of an ONNX graph take them even where the graph
  /// has an initializer of that name.
  std::set<std::string> provided;
  /// For trace_model: tables of more bytes are inputs of the function (`rows:TABLE:FIELD`), others
  /// are searched by it; nullopt: as the model is stored.
  std::optional<uint64_t> inline_tables;
};

class Model {
 public:
  virtual ~Model() = default;

  const std::string& name() const { return name_; }
  const std::vector<std::pair<std::string, TensorType>>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// Types of the outputs as known before a run; unranked if only the name is known.
  const std::vector<std::pair<std::string, TensorType>>& declared_outputs() const {
    return declared_outputs_;
  }
  const ModelMetadata& metadata() const { return metadata_; }
  /// The dtype of most of the computation.
  DType precision() const { return precision_; }
  virtual int64_t parameter_count() const = 0;

  /// One array per input, in order; they must fit the declared types. Results are valid until the
  /// next call.
  virtual const std::vector<Array>& run(const std::vector<Array>& inputs) = 0;
  /// The same with inputs anywhere and outputs on the model's device, each in memory of its own.
  /// Inputs on that device are read in place; the run may be only queued there.
  virtual std::vector<Array> run_on_device(const std::vector<Array>& inputs);
  /// Floating-point operations for inputs of these shapes.
  virtual double flops(const std::vector<Array>& inputs) = 0;
  /// The model once more: with the same weights in memory, but plans, results and states of its
  /// own, so that another thread can run it at the same time. kUsage for models that cannot, such
  /// as those that hand states on from run to run.
  virtual std::unique_ptr<Model> clone() const;
  /// Another function of the model, over the same weights; null if it has none of this name.
  virtual std::unique_ptr<Model> other_function(const std::string& name) const;
  /// Tokens whose keys and values the model's caches hold; 0 for a model without caches.
  virtual int64_t cache_slots() const { return 0; }
  /// Makes the next run the one of this number, from 0: random operators of ONNX draw by it.
  virtual void set_run(int64_t) {}
  /// Restores the initial values of states that live for one sequence.
  virtual void reset() {}
  /// The kind of class scores in output `i`.
  virtual Scores scores(size_t) const { return Scores::kUnknown; }
  /// Whether output `i` is a sigmoid, so that each of its values is a probability.
  virtual bool is_sigmoid(size_t) const { return false; }
  /// Which of the model's weights the file of LoadOptions::weights provided.
  virtual const LoadReport* load_report() const { return nullptr; }
  /// The session of an ONNX model, for values that are not plain arrays; null for other models.
  virtual onnx::Session* onnx() const { return nullptr; }

 protected:
  std::string name_;
  std::vector<std::pair<std::string, TensorType>> inputs_;
  std::vector<std::string> outputs_;
  std::vector<std::pair<std::string, TensorType>> declared_outputs_;
  ModelMetadata metadata_;
  DType precision_ = DType::kF32;
};

/// kUsage for a path or options that do not fit, kModel for damaged files, kConfig for a model file
/// with errors.
std::unique_ptr<Model> load_model(const std::string& path, const LoadOptions& options);

}  // namespace paddle::program
