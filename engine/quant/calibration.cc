#include "quant/calibration.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "formats/safetensors.h"

namespace paddle::quant {
namespace {

constexpr const char* kFingerprint = "paddle.statistics.model";

/// Layers of integers whose input has a range from calibration.
bool needs_range(const Layer& layer) {
  return layer.quantized && layer.op != "embedding" &&
         layer.format.activations == ActivationMode::kStatic;
}

std::string tensor_name(const Layer& layer) { return "input." + layer.name; }

}  // namespace

CalibrationData::CalibrationData(const program::Model& model, infer::InputOptions options,
                                 int64_t samples, Deadline deadline)
    : model_(model), options_(std::move(options)), samples_(samples), deadline_(deadline) {
  options_.batch = std::min(options_.batch, samples_);
}

int64_t CalibrationData::for_each(const std::function<void(const std::vector<Array>&)>& use) {
  const auto batches = infer::open_inputs(model_, options_);
  int64_t samples = 0;
  while (samples < samples_) {
    const auto batch = batches->next();
    if (!batch) break;
    if (batch->rows == 0) continue;
    use(batch->inputs);
    samples += batch->rows;
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
                              const WeightSource& weight) {
  FunctionRunner runner(model.with_layer_inputs(), weight);
  Statistics out;
  out.inputs.resize(model.layers().size());
  out.samples = data.for_each([&](const std::vector<Array>& inputs) {
    const auto results = runner.run(inputs);
    size_t at = model.outputs();
    for (size_t i = 0; i < out.inputs.size(); ++i) {
      if (!model.layers()[i].quantized) continue;
      const Array& input = results.at(at++);
      if (needs_range(model.layers()[i])) out.inputs[i].add(input);
    }
  });
  for (size_t i = 0; i < out.inputs.size(); ++i)
    if (out.inputs[i].not_finite() > 0)
      fail(ErrorCode::kData, "calibration: the input of '", model.layers()[i].name, "' has ",
           out.inputs[i].not_finite(), " values that are NaN or infinite");
  return out;
}

std::vector<std::vector<float>> largest_features(const Quantizable& model,
                                                 const std::vector<size_t>& layers,
                                                 CalibrationData& data,
                                                 const WeightSource& weight) {
  FunctionRunner runner(model.with_layer_inputs(), weight);
  std::vector<std::vector<float>> out(model.layers().size());
  data.for_each([&](const std::vector<Array>& inputs) {
    const auto results = runner.run(inputs);
    size_t at = model.outputs();
    for (size_t i = 0; i < out.size(); ++i) {
      if (!model.layers()[i].quantized) continue;
      const Array& result = results.at(at++);
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
    const Array weight = model.weight(i).contiguous();
    add(model.layers()[i].name);
    add(std::string_view(static_cast<const char*>(weight.raw()),
                         static_cast<size_t>(weight.size() * item_size(weight.dtype))));
  }
  return str(hash);
}

void write_statistics(const std::string& path, const Quantizable& model,
                      const Statistics& statistics) {
  std::vector<std::pair<std::string, Array>> tensors;
  for (size_t i = 0; i < model.layers().size(); ++i) {
    if (statistics.inputs[i].empty()) continue;
    const std::vector<double> state = statistics.inputs[i].state();
    tensors.emplace_back(tensor_name(model.layers()[i]),
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
  out.samples = file.read("samples").integer();
  for (size_t i = 0; i < model.layers().size(); ++i) {
    const Layer& layer = model.layers()[i];
    if (!needs_range(layer)) continue;
    if (!file.find(tensor_name(layer))) {
      reason = path + ": has no statistics of '" + layer.name + "'";
      return std::nullopt;
    }
    const Array numbers = file.read(tensor_name(layer)).cast(DType::kF64).contiguous();
    const double* const first = numbers.data<double>();
    auto observer = Observer::from_state({first, first + numbers.size()});
    if (!observer) fail(ErrorCode::kModel, path, ": '", layer.name, "' is not a histogram");
    out.inputs[i] = std::move(*observer);
  }
  return out;
}

}  // namespace paddle::quant
