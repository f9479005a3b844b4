#include "quant/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/files.h"
#include "base/hash.h"
#include "formats/safetensors.h"
#include "ir/replay.h"
#include "quant/interruption.h"
#include "runtime/execute.h"
#include "tensor/region_depth.h"

namespace paddle::quant {
namespace {

constexpr const char* kFingerprint = "paddle.statistics.model";

/// Layers of integers whose inputs have ranges from calibration.
bool needs_range(const Layer& layer) {
  return layer.quantized && layer.format.activations == ActivationMode::kStatic;
}

std::string tensor_name(const Layer& layer, size_t input) {
  return "input." + layer.name + (input == 0 ? "" : str(".", input + 1));
}

/// Adds what layers in control flow read while their function runs.
class NestedObserver final : public RegionDepth {
 public:
  NestedObserver(const Quantizable& model, std::vector<std::vector<Observer>>& observers)
      : observers_(observers) {
    for (size_t i = model.top_level_layers(); i < model.layers().size(); ++i)
      if (needs_range(model.layers()[i]) && !observers[i].empty())
        layers_[model.weight(i).raw()] = i;
  }
  bool watches() const { return !layers_.empty(); }

  Tensors apply(const OpCall& call) override {
    const size_t at = weight_operand(call.op);
    if (depth() > 0 && (is_layer_op(call.op) || at == 0) && call.operands.size() > 1 &&
        call.operands[at].defined() && call.operands[at].is_concrete())
      if (const auto found = layers_.find(call.operands[at].array().raw()); found != layers_.end())
        observers_[found->second][0].add(call.operands[1 - at].array());
    return next().apply(call);
  }

 private:
  std::vector<std::vector<Observer>>& observers_;
  std::map<const void*, size_t> layers_;
};

}  // namespace

CalibrationData::CalibrationData(const program::Model& model, infer::InputOptions options,
                                 int64_t samples, Deadline deadline)
    : model_(model), options_(std::move(options)), samples_(samples), deadline_(deadline) {
  options_.batch = std::min(options_.batch, samples_);
}

int64_t CalibrationData::for_each(const std::function<void(const std::vector<Array>&)>& use) {
  return for_each([&](const std::vector<Array>& inputs, int64_t) { use(inputs); });
}

int64_t CalibrationData::for_each(
    const std::function<void(const std::vector<Array>&, int64_t)>& use, int64_t begin) {
  const auto batches = infer::open_inputs(model_, options_);
  int64_t samples = 0;
  while (samples < samples_) {
    const auto batch = batches->next();
    if (!batch) break;
    if (batch->rows == 0) continue;
    samples += batch->rows;
    if (samples <= begin) continue;
    stop_if_interrupted();
    use(batch->inputs, samples);
    if (is_past(deadline_)) break;
  }
  warnings_ = batches->warnings();
  if (samples == 0) fail(ErrorCode::kData, "calibration: the data has no samples");
  return samples;
}

bool is_past(const CalibrationData::Deadline& deadline) {
  return deadline && std::chrono::steady_clock::now() > *deadline;
}

Statistics collect_statistics(const Quantizable& model, CalibrationData& data,
                              const WeightSource& weight, const Progress& progress,
                              const std::string& begun) {
  FunctionRunner runner(model.with_layer_inputs(/*results=*/true), weight);
  const std::vector<LayerInput> inputs_of_layers = model.layer_inputs();
  const std::vector<size_t> rounded = model.rounded_results();
  Statistics out;
  std::string ignored;
  if (!begun.empty() && file_exists(begun))
    if (auto found = read_statistics(begun, model, ignored)) out = std::move(*found);
  out.inputs.resize(model.layers().size());
  out.results.resize(model.layers().size());
  for (size_t i = 0; i < out.inputs.size(); ++i)
    if (needs_range(model.layers()[i])) out.inputs[i].resize(model.layers()[i].inputs().size());
  NestedObserver nested(model, out.inputs);
  const auto add = [&](const std::vector<Array>& inputs) {
    const auto results = runner.run(inputs);
    for (size_t at = 0; at < inputs_of_layers.size(); ++at) {
      const auto [layer, operand] = inputs_of_layers[at];
      std::vector<Observer>& observers = out.inputs[layer];
      const std::vector<size_t> operands = model.layers()[layer].inputs();
      for (size_t k = 0; k < observers.size(); ++k)
        if (operands[k] == operand) observers[k].add(results.at(model.outputs() + at));
    }
    const size_t first_result = model.outputs() + inputs_of_layers.size();
    for (size_t k = 0; k < rounded.size(); ++k)
      out.results[rounded[k]].add(results.at(first_result + k));
    if (!nested.watches()) return;
    runtime::EagerExecutor eager;
    const InterpreterScope below(eager), above(nested);
    Tensors arguments;
    for (const Array& each : arguments_of(model.function(), inputs, weight))
      arguments.emplace_back(each);
    ir::replay(model.function(), arguments);
  };
  const auto report = [&](int64_t samples) {
    progress({"calibrating", samples, data.most_samples()});
  };
  report(out.samples);
  using Clock = std::chrono::steady_clock;
  auto written = Clock::now();
  try {
    out.samples = data.for_each(
        [&](const std::vector<Array>& inputs, int64_t samples) {
          add(inputs);
          out.samples = samples;
          report(samples);
          constexpr auto kEach = std::chrono::seconds(10);
          if (begun.empty() || Clock::now() - written < kEach) return;
          write_statistics(begun, model, out);
          written = Clock::now();
        },
        out.samples);
  } catch (const Interrupted&) {
    if (!begun.empty() && out.samples > 0) write_statistics(begun, model, out);
    throw;
  }
  for (size_t i = 0; i < out.inputs.size(); ++i)
    for (const Observer& observer : out.inputs[i])
      if (observer.not_finite() > 0)
        fail(ErrorCode::kData, "calibration: the input of '", model.layers()[i].name, "' has ",
             observer.not_finite(), " values that are NaN or infinite");
  return out;
}

std::vector<std::vector<float>> largest_features(const Quantizable& model,
                                                 const std::vector<size_t>& layers,
                                                 CalibrationData& data,
                                                 const WeightSource& weight) {
  FunctionRunner runner(model.with_layer_inputs(), weight);
  const std::vector<LayerInput> inputs_of_layers = model.layer_inputs();
  std::vector<std::vector<float>> out(model.layers().size());
  data.for_each([&](const std::vector<Array>& inputs) {
    const auto results = runner.run(inputs);
    for (size_t at = 0; at < inputs_of_layers.size(); ++at) {
      const size_t i = inputs_of_layers[at].layer;
      const Array& result = results.at(model.outputs() + at);
      if (!std::binary_search(layers.begin(), layers.end(), i) || result.ndim() == 0) continue;
      const Array x = result.contiguous();
      const auto features = static_cast<size_t>(x.shape.back());
      out[i].resize(features);
      for (size_t k = 0; k < static_cast<size_t>(x.size()); ++k) {
        float& largest = out[i][k % features];
        largest = std::max(largest, std::abs(x.data<float>()[k]));
      }
    }
  });
  return out;
}

std::string fingerprint(const Quantizable& model) {
  uint64_t hash = fnv1a(str(model.layers().size(), " layers"));
  const auto add = [&](std::string_view text) { hash = hash * 31 + fnv1a(text); };
  for (size_t i = 0; i < model.layers().size(); ++i) {
    add(model.layers()[i].name);
    if (!model.layers()[i].has_weight) continue;
    const Array weight = model.weight(i).contiguous();
    add(std::string_view(static_cast<const char*>(weight.raw()),
                         static_cast<size_t>(weight.size() * item_size(weight.dtype))));
  }
  return str(hash);
}

void write_statistics(const std::string& path, const Quantizable& model,
                      const Statistics& statistics) {
  std::vector<std::pair<std::string, Array>> tensors;
  for (size_t i = 0; i < model.layers().size(); ++i) {
    for (size_t k = 0; k < statistics.inputs[i].size(); ++k) {
      // A layer in a branch may never have run.
      if (statistics.inputs[i][k].empty()) continue;
      const std::vector<double> state = statistics.inputs[i][k].state();
      tensors.emplace_back(tensor_name(model.layers()[i], k),
                           Array::from<double>(state, {static_cast<int64_t>(state.size())}));
    }
  }
  for (size_t i = 0; i < statistics.results.size(); ++i) {
    if (statistics.results[i].empty()) continue;
    const std::vector<double> state = statistics.results[i].state();
    tensors.emplace_back("result." + model.layers()[i].name,
                         Array::from<double>(state, {static_cast<int64_t>(state.size())}));
  }
  tensors.emplace_back("samples", Array::scalar<int64_t>(statistics.samples));
  formats::write_safetensors(path, tensors, {{kFingerprint, fingerprint(model)}});
}

std::optional<Statistics> read_statistics(const std::string& path, const Quantizable& model,
                                          std::string& reason) {
  const formats::SafetensorsReader file(path);
  const auto found = file.metadata().find(kFingerprint);
  if (found == file.metadata().end())
    fail(ErrorCode::kModel, path, ": is not a file of statistics of paddle-quant");
  if (found->second != fingerprint(model)) {
    reason = path + ": has the statistics of another model";
    return std::nullopt;
  }
  Statistics out;
  out.inputs.resize(model.layers().size());
  out.results.resize(model.layers().size());
  out.samples = file.read("samples").integer();
  const auto observer_of = [&](const std::string& name) {
    const Array numbers = file.read(name).cast(DType::kF64).contiguous();
    const double* const first = numbers.data<double>();
    auto observer = Observer::from_state({first, first + numbers.size()});
    if (!observer) fail(ErrorCode::kModel, path, ": '", name, "' is not a histogram");
    return *observer;
  };
  for (size_t i = 0; i < model.layers().size(); ++i) {
    const Layer& layer = model.layers()[i];
    if (!needs_range(layer)) continue;
    out.inputs[i].resize(layer.inputs().size());
    for (size_t k = 0; k < out.inputs[i].size(); ++k) {
      const std::string name = tensor_name(layer, k);
      if (!file.find(name)) {
        if (layer.nested) continue;
        reason = path + ": has no statistics of '" + layer.name + "'";
        return std::nullopt;
      }
      out.inputs[i][k] = observer_of(name);
    }
  }
  for (const size_t i : model.rounded_results()) {
    const std::string name = "result." + model.layers()[i].name;
    if (!file.find(name)) {
      reason = path + ": has no statistics of the result of '" + model.layers()[i].name + "'";
      return std::nullopt;
    }
    out.results[i] = observer_of(name);
  }
  return out;
}

}  // namespace paddle::quant
