#include "quant/loss_sensitivity.h"

#include <algorithm>
#include <map>
#include <memory>

#include "autograd/autograd.h"
#include "base/files.h"
#include "ir/replay.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "quant/interruption.h"
#include "quant/layer_watcher.h"
#include "quant/quantize.h"
#include "train/runs/evaluated_model.h"

namespace paddle::quant {
namespace {

constexpr const char* kWhat = "sensitivity by gradients";
constexpr const char* kGradient = "gradient.";

/// The config with the model's loss; "" if there is none.
std::string config_with_loss(const QuantJob& job) {
  if (is_directory(job.model)) return train::config_of_model(job.model);
  return job.model.ends_with(".onnx") ? job.config.run_config : "";
}

/// A trainer whose validation data is the calibration data.
std::unique_ptr<train::Trainer> open_trainer(const QuantJob& job, train::TrainObserver& observer) {
  train::EvaluatedModel model =
      is_directory(job.model) ? train::open_evaluated_folder(job.model, {})
                              : train::open_evaluated_file(job.model, config_with_loss(job), {});
  train::choose_evaluation_data(model.config, job.calibration.data, "--data");
  train::settle_for_evaluation(model.config);
  model.config.metrics.clear();
  model.config.distillation.reset();
  model.config.data.valid_loader.batch_size = std::min(job.config.batch, job.config.samples);
  auto out = std::make_unique<train::Trainer>(std::move(model.config), model.options, observer);
  out->prepare().require_fit();
  return out;
}

/// The sum of gradient * change over all axes but that of samples, in magnitude, added up. Signs
/// within a sample cancel as they do in its loss, where elements by themselves would make large
/// results look sensitive.
Tensor change_of_loss(const Tensor& gradient, const Tensor& change, const Dim& samples) {
  const Tensor terms = gradient * change;
  const bool has_samples = terms.ndim() > 1 && terms.shape()[0].same(samples);
  std::vector<int64_t> axes;
  for (int64_t axis = has_samples ? 1 : 0; axis < terms.ndim(); ++axis) axes.push_back(axis);
  return ops::sum(ops::abs(ops::sum(terms, axes)));
}

/// The model's function with the gradients of the loss for these of its outputs as further inputs,
/// whose own outputs are, for each of `layers`, the sum that loss_changes is made of.
std::shared_ptr<ir::Function> with_changes(const Quantizable& model,
                                           const std::vector<size_t>& layers,
                                           const std::map<std::string, Array>& given,
                                           std::map<std::string, Array>& weights) {
  auto out = std::make_shared<ir::Function>(model.function().name, model.function().target);
  ir::Tracer tracer(*out);
  const InterpreterScope below(tracer);
  const ir::Function& f = model.function();
  Tensors inputs, exact, changes;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    inputs.push_back(tracer.input(f.inputs[i], f.body.arguments[i]->type));
  LayerWatcher watcher(
      model, layers, [&](size_t layer, const OpCall& call, const Tensors& results) {
        const ScopedInterpreter scope(tracer);
        exact.push_back(results.at(0));
        changes.push_back(quantized_result(model, layer, call, weights) - results[0]);
      });
  Tensors results;
  {
    const InterpreterScope above(watcher);
    results = ir::replay(f, inputs);
  }
  Tensors outputs, cotangents;
  for (size_t i = 0; i < results.size(); ++i) {
    if (f.outputs[i].kind != ir::PortKind::kValue || !given.contains(f.outputs[i].name)) continue;
    outputs.push_back(results[i]);
    cotangents.push_back(
        tracer.input({ir::PortKind::kValue, kGradient + f.outputs[i].name}, results[i].type()));
  }
  const Tensors gradients = autograd::grad(outputs, exact, cotangents);
  const auto batch = std::find_if(f.inputs.begin(), f.inputs.end(), [](const ir::Port& port) {
    return port.kind == ir::PortKind::kValue;
  });
  const Shape& shape =
      f.body.arguments.at(static_cast<size_t>(batch - f.inputs.begin()))->type.shape;
  const Dim samples = shape.empty() ? Dim(1) : shape[0];
  for (size_t i = 0; i < layers.size(); ++i) {
    const Tensor sum = gradients[i].defined() ? change_of_loss(gradients[i], changes[i], samples)
                                              : Tensor(Array::scalar(0.0f));
    tracer.output({ir::PortKind::kValue, str("layer.", layers[i])}, sum);
  }
  return out;
}

/// The values that the function takes of a batch, in its order.
std::vector<Array> values_of(const ir::Function& function, const train::BatchGradients& batch) {
  std::vector<Array> out;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    if (port.kind != ir::PortKind::kValue) continue;
    const bool is_gradient = port.name.starts_with(kGradient);
    const auto& from = is_gradient ? batch.outputs : batch.fields;
    const std::string name =
        is_gradient ? port.name.substr(std::string_view(kGradient).size()) : port.name;
    const auto found = from.find(name);
    if (found == from.end())
      fail(ErrorCode::kConfig, kWhat, ": the data has no field '", name,
           "', which the model takes");
    out.push_back(found->second.cast(function.body.arguments[i]->type.dtype));
  }
  return out;
}

}  // namespace

void check_has_loss(const QuantJob& job) {
  if (job.load.function != "model")
    fail(ErrorCode::kConfig, kWhat, ": the loss of a config is that of the function 'model'");
  if (config_with_loss(job).empty())
    fail(ErrorCode::kConfig, job.model, ": has no config with a loss, which ", kWhat,
         " needs; expected a trained run, or an ONNX file with -c that extends its config");
  if (job.calibration.data.empty() && !job.calibration.paths.empty())
    fail(ErrorCode::kConfig, kWhat,
         " needs labels, which files do not have; expected --data train, valid or "
         "CONFIG.yaml[:part]");
}

std::vector<std::optional<double>> loss_changes(const QuantJob& job, const Quantizable& model,
                                                const WeightSource& weight,
                                                const Progress& progress) {
  check_has_loss(job);
  std::vector<size_t> layers;
  for (size_t i = 0; i < model.top_level_layers(); ++i)
    if (model.layers()[i].quantized) layers.push_back(i);
  const auto report = [&](int64_t samples) {
    progress({"gradients of the loss", samples, job.config.samples});
  };
  report(0);
  train::TrainObserver silent;  // warnings of the run were shown while it was trained
  const std::unique_ptr<train::Trainer> trainer = open_trainer(job, silent);
  std::map<std::string, Array> weights;
  std::shared_ptr<ir::Function> function;
  std::unique_ptr<FunctionRunner> runner;
  std::vector<double> sums(layers.size());
  int64_t samples = 0;
  trainer->for_each_gradient([&](const train::BatchGradients& batch) {
    stop_if_interrupted();
    if (!runner) {
      function = with_changes(model, layers, batch.outputs, weights);
      runner = std::make_unique<FunctionRunner>(function, [&](const std::string& name) {
        const auto found = weights.find(name);
        return found == weights.end() ? weight(name) : found->second;
      });
    }
    const std::vector<Array> found = runner->run(values_of(*function, batch));
    for (size_t i = 0; i < layers.size(); ++i)
      sums[i] += found.at(i).number() * static_cast<double>(batch.samples);
    samples += batch.samples;
    report(samples);
    return samples < job.config.samples;
  });
  if (samples == 0) fail(ErrorCode::kData, kWhat, ": the data has no samples");
  std::vector<std::optional<double>> out(model.layers().size());
  for (size_t i = 0; i < layers.size(); ++i)
    out[layers[i]] = sums[i] / static_cast<double>(samples);
  return out;
}

}  // namespace paddle::quant
