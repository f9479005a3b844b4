#include "exporter/streamed.h"

#include <unordered_map>

#include "base/files.h"
#include "ir/replay.h"
#include "onnx/graph/network.h"
#include "runtime/execute.h"

namespace paddle::exporter {
namespace {

void forget(const Array& array) { forget_mapped(array.storage->source(), array.storage->bytes()); }

class Streamed : public program::Model {
 public:
  int64_t parameter_count() const override { return 0; }
  double flops(const std::vector<Array>&) override { return 0; }

 protected:
  std::vector<Array> results_;
};

class StreamedFunction final : public Streamed {
 public:
  StreamedFunction(const ir::Function& function, onnx::WeightLookup weight)
      : function_(function), weight_(std::move(weight)) {
    name_ = function.name;
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const ir::Port& port = function.inputs[i];
      const ir::Value* value = function.body.arguments[i];
      if (port.kind == ir::PortKind::kValue)
        inputs_.emplace_back(port.name, value->type);
      else if (port.kind != ir::PortKind::kRandom)
        weights_[value] = port.name;
    }
    for (const ir::Port& port : function.outputs)
      if (port.kind == ir::PortKind::kValue) outputs_.push_back(port.name);
    for (const auto& operation : function.body.operations) {
      for (const ir::Value* value : reads_of(*operation)) last_reader_[value] = operation.get();
    }
    for (const ir::Value* value : function.body.results) last_reader_[value] = nullptr;
  }

  const std::vector<Array>& run(const std::vector<Array>& inputs) override {
    runtime::EagerExecutor eager;
    const InterpreterScope scope(eager);
    ir::ValueMap values;
    size_t next = 0;
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      const ir::Value* value = function_.body.arguments[i];
      if (function_.inputs[i].kind == ir::PortKind::kValue)
        values[value] = Tensor(inputs.at(next++));
      else if (function_.inputs[i].kind == ir::PortKind::kRandom)
        values[value] = Tensor(Array::zeros(DType::kU64, {2}));
    }
    for (const auto& operation : function_.body.operations) step(*operation, values);
    results_.clear();
    for (size_t i = 0; i < function_.outputs.size(); ++i) {
      if (function_.outputs[i].kind != ir::PortKind::kValue) continue;
      const ir::Value* value = function_.body.results[i];
      if (const auto weight = weights_.find(value); weight != weights_.end())
        results_.push_back(runtime::copied(weight_(weight->second)));
      else
        results_.push_back(value->constant ? *value->constant : values.at(value).array());
    }
    return results_;
  }

 private:
  static std::vector<const ir::Value*> reads_of(const ir::Operation& operation) {
    std::vector<const ir::Value*> out;
    for (const ir::Value* value : operation.operands)
      if (value) out.push_back(value);
    for (const auto& region : operation.regions)
      for (const ir::Value* value : ir::captures(*region)) out.push_back(value);
    return out;
  }

  /// Runs an operation; what nothing reads afterwards, and every weight, is released.
  void step(const ir::Operation& operation, ir::ValueMap& values) const {
    const std::vector<const ir::Value*> reads = reads_of(operation);
    std::vector<Array> loaded;
    for (const ir::Value* value : reads)
      if (const auto weight = weights_.find(value);
          weight != weights_.end() && !values.contains(value))
        values[value] = Tensor(loaded.emplace_back(weight_(weight->second)));
    ir::replay(operation, values);
    for (const ir::Value* value : reads)
      if (weights_.contains(value) || last_reader_.at(value) == &operation) values.erase(value);
    for (const Array& array : loaded) forget(array);
  }

  const ir::Function& function_;
  onnx::WeightLookup weight_;
  std::unordered_map<const ir::Value*, std::string> weights_;
  /// The last operation that reads a value; null for results of the function.
  std::unordered_map<const ir::Value*, const ir::Operation*> last_reader_;
};

class StreamedFile final : public Streamed {
 public:
  explicit StreamedFile(const std::string& path) : network_(path) {
    const auto types = network_.opened().input_types();
    for (size_t i = 0; i < types.size(); ++i)
      inputs_.emplace_back(network_.opened().inputs[i].name, types[i]);
    for (const auto& output : network_.opened().model->graph.outputs)
      outputs_.push_back(output.name);
  }

  const std::vector<Array>& run(const std::vector<Array>& inputs) override {
    runtime::EagerExecutor eager;
    const InterpreterScope scope(eager);
    const Tensors given(inputs.begin(), inputs.end());
    const auto value = [](const onnx::Weight& weight) { return Tensor(weight.data->array); };
    const auto release = [](const formats::onnx::Node&,
                            const std::vector<const onnx::Weight*>& weights, const onnx::Values&,
                            const onnx::Values&) {
      for (const onnx::Weight* weight : weights) forget(weight->data->array);
    };
    results_.clear();
    for (const Tensor& result : network_.run(given, value, {}, release))
      results_.push_back(runtime::copied(result.array()));
    return results_;
  }

 private:
  onnx::Network network_;
};

}  // namespace

std::unique_ptr<program::Model> stream_function(const ir::Function& function,
                                                onnx::WeightLookup weight) {
  return std::make_unique<StreamedFunction>(function, std::move(weight));
}

std::unique_ptr<program::Model> stream_file(const std::string& path) {
  return std::make_unique<StreamedFile>(path);
}

}  // namespace paddle::exporter
