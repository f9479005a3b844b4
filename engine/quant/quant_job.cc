#include "quant/quant_job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/onnx/write.h"
#include "onnx/export/export.h"
#include "program/checkpoint.h"
#include "program/prediction.h"
#include "program/traced_model.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Runs a function of the model's inputs; states start with their initial values in every call.
class FunctionRunner {
 public:
  FunctionRunner(std::shared_ptr<ir::Function> function,
                 std::function<Array(const std::string&)> weight)
      : function_(std::move(function)), weight_(std::move(weight)) {
    for (size_t i = 0; i < function_->outputs.size(); ++i)
      if (function_->outputs[i].kind == ir::PortKind::kValue) values_.push_back(i);
    executable_ = runtime::compile(function_, {});
  }

  /// All results that are values, in order; valid until the next call.
  std::vector<Array> run(const std::vector<Array>& inputs) {
    std::vector<Array> arrays;
    size_t next = 0;
    for (const ir::Port& port : function_->inputs) {
      if (port.kind == ir::PortKind::kValue)
        arrays.push_back(inputs.at(next++).contiguous());
      else if (port.kind == ir::PortKind::kRandom)
        arrays.push_back(Array::zeros(DType::kU64, {2}));
      else
        arrays.push_back(runtime::copied(weight_(port.name)));
    }
    const std::vector<Array>& results = executable_->run(arrays);
    std::vector<Array> out;
    for (const size_t i : values_) out.push_back(results[i]);
    return out;
  }

 private:
  std::shared_ptr<ir::Function> function_;
  std::function<Array(const std::string&)> weight_;
  std::vector<size_t> values_;
  std::unique_ptr<runtime::Executable> executable_;
};

/// Signal-to-quantization-noise ratio, summed over arrays.
class Sqnr {
 public:
  void add(const Array& reference, const Array& found) {
    if (reference.shape != found.shape || !is_float(reference.dtype)) return;
    const Array a = reference.cast(DType::kF32).contiguous(),
                b = found.cast(DType::kF32).contiguous();
    for (int64_t i = 0; i < a.size(); ++i) {
      const double x = a.data<float>()[i], difference = x - b.data<float>()[i];
      if (!std::isfinite(x) || !std::isfinite(difference)) continue;
      signal_ += x * x;
      noise_ += difference * difference;
    }
  }
  double decibels() const {
    if (noise_ == 0) return signal_ == 0 ? 0 : 200;
    return 10 * std::log10(std::max(signal_, 1e-300) / noise_);
  }

 private:
  double signal_ = 0, noise_ = 0;
};

infer::InputOptions data_of(const infer::InputOptions& given, const program::Model& model,
                            const char* part) {
  if (!given.paths.empty() || !given.data.empty()) return given;
  const auto run = infer::run_data(model);
  infer::InputOptions out = given;
  if (run && (std::string_view(part) == "train" || run->valid)) out.data = part;
  return out;
}

bool is_given(const infer::InputOptions& options) {
  return !options.paths.empty() || !options.data.empty();
}

void keep_layers(std::vector<Layer>& layers, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (const Layer& layer : layers) names.push_back(layer.name);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (Layer& layer : layers)
      if (matches_pattern(pattern, layer.name)) {
        any = true;
        if (layer.quantized) layer.why = "--keep-float " + pattern;
        layer.quantized = false;
      }
    if (!any)
      fail(ErrorCode::kConfig, "--keep-float: no layer matches '", pattern, "'",
           did_you_mean(pattern, names), names.empty() ? "" : "; layers are ", join(names, ", "));
  }
}

/// Collects the ranges of layer inputs. Returns the number of samples.
int64_t calibrate(const QuantJob& job, Quantizable& model, const program::Model& source,
                  const program::TracedModel& traced, std::vector<std::string>& warnings) {
  FunctionRunner runner(model.with_layer_inputs(), traced.weight);
  std::vector<Observer> observers(model.layers().size());
  infer::InputOptions options = job.calibration;
  options.batch = std::min(options.batch, job.samples);
  const auto batches = infer::open_inputs(source, options);
  int64_t samples = 0;
  while (samples < job.samples) {
    const auto batch = batches->next();
    if (!batch) break;
    if (batch->rows == 0) continue;
    const auto results = runner.run(batch->inputs);
    size_t at = model.outputs();
    for (size_t i = 0; i < observers.size(); ++i)
      if (model.layers()[i].quantized) observers[i].add(results.at(at++));
    samples += batch->rows;
  }
  for (const std::string& line : batches->warnings()) warnings.push_back(line);
  if (samples == 0) fail(ErrorCode::kData, "calibration: the data has no samples");
  if (samples < 32)
    warnings.push_back(str("calibration used ", samples,
                           " samples; ranges of so few may not hold for other inputs"));
  for (size_t i = 0; i < observers.size(); ++i) {
    Layer& layer = model.layers()[i];
    if (!layer.quantized) continue;
    if (observers[i].not_finite() > 0)
      fail(ErrorCode::kData, "calibration: the input of '", layer.name, "' has ",
           observers[i].not_finite(), " values that are NaN or infinite");
    layer.input = observers[i].range(job.method, 256, job.percentile);
  }
  return samples;
}

double milliseconds(program::Model& model, const std::vector<Array>& inputs) {
  const auto begun = std::chrono::steady_clock::now();
  model.run(inputs);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// One row of a batch, for latencies.
std::vector<Array> first_row(const std::vector<Array>& inputs, int64_t rows) {
  std::vector<Array> out;
  for (const Array& each : inputs) {
    if (each.ndim() == 0 || each.shape[0] != rows) return inputs;
    Array row = each;
    row.shape[0] = 1;
    out.push_back(row.contiguous());
  }
  return out;
}

void compare(const QuantJob& job, program::Model& model, program::Model& quantized,
             QuantReport& report) {
  const auto batches = infer::open_inputs(model, job.evaluation);
  Sqnr outputs;
  int64_t correct_float = 0, correct_quantized = 0, agree = 0, judged = 0;
  double difference_squares = 0;
  std::vector<Array> timed;
  while (const auto batch = batches->next()) {
    if (batch->rows == 0) continue;
    if (timed.empty()) timed = first_row(batch->inputs, batch->rows);
    const Array expected = model.run(batch->inputs).at(0).cast(DType::kF32).contiguous();
    const Array found = quantized.run(batch->inputs).at(0).cast(DType::kF32).contiguous();
    outputs.add(expected, found);
    report.evaluation_samples += batch->rows;
    const bool classifies = expected.ndim() == 2 && expected.shape == found.shape &&
                            expected.shape[0] == batch->rows && expected.shape[1] > 1;
    if (!classifies) continue;
    const int64_t classes = expected.shape[1];
    for (int64_t row = 0; row < batch->rows; ++row) {
      const auto top = [&](const Array& scores) {
        const float* const first = scores.data<float>() + row * classes;
        return std::max_element(first, first + classes) - first;
      };
      const auto a = top(expected), b = top(found);
      agree += a == b;
      ++judged;
      if (!batches->has_labels() || !batch->labels[static_cast<size_t>(row)]) continue;
      const auto label = static_cast<int64_t>(*batch->labels[static_cast<size_t>(row)]);
      const int right_float = a == label, right_quantized = b == label;
      correct_float += right_float;
      correct_quantized += right_quantized;
      difference_squares += (right_float - right_quantized) * (right_float - right_quantized);
    }
  }
  if (report.evaluation_samples == 0) fail(ErrorCode::kData, "the data has no samples");
  report.metrics.push_back({"output_sqnr_db", 0, outputs.decibels(), std::nullopt});
  const auto n = static_cast<double>(judged);
  if (judged > 0)
    report.metrics.push_back({"agreement", 1, static_cast<double>(agree) / n, std::nullopt});
  if (judged > 0 && batches->has_labels()) {
    const double a = static_cast<double>(correct_float) / n,
                 b = static_cast<double>(correct_quantized) / n;
    const double variance = difference_squares / n - (a - b) * (a - b);
    report.metrics.push_back({"accuracy", a, b, 1.96 * std::sqrt(std::max(0.0, variance) / n)});
  }
  // Alternately, so that both meet the same machine.
  std::vector<double> slow, fast;
  for (int i = 0; i < 3; ++i) {
    milliseconds(model, timed);
    milliseconds(quantized, timed);
  }
  const auto begun = std::chrono::steady_clock::now();
  while (slow.size() < 15 || (slow.size() < 200 &&
                              std::chrono::steady_clock::now() - begun < std::chrono::seconds(1))) {
    slow.push_back(milliseconds(model, timed));
    fast.push_back(milliseconds(quantized, timed));
  }
  report.float_ms = median(slow);
  report.quantized_ms = median(fast);
}

/// The signal-to-noise ratios of the results of layers, on one batch.
void measure_layers(const QuantJob& job, Quantizable& model, const program::Model& source,
                    const program::TracedModel& traced) {
  const QuantizedFunction observed = quantize(model, /*layer_results=*/true);
  FunctionRunner reference(model.with_layer_results(), traced.weight);
  FunctionRunner quantized(observed.function, [&](const std::string& name) {
    const auto found = observed.weights.find(name);
    return found == observed.weights.end() ? traced.weight(name) : found->second;
  });
  infer::InputOptions options = job.calibration;
  options.batch = std::min<int64_t>(options.batch, 8);
  const auto batches = infer::open_inputs(source, options);
  auto batch = batches->next();
  while (batch && batch->rows == 0) batch = batches->next();
  if (!batch) return;
  const auto expected = reference.run(batch->inputs), found = quantized.run(batch->inputs);
  for (size_t i = 0; i < model.layers().size(); ++i) {
    Sqnr sqnr;
    sqnr.add(expected.at(model.outputs() + i), found.at(model.outputs() + i));
    model.layers()[i].sqnr_db = sqnr.decibels();
  }
}

/// The quantized function as a model folder beside the ONNX file, with the metadata of its source.
void write_folder(const std::string& folder, const std::string& source_folder,
                  const std::string& name, const QuantizedFunction& quantized) {
  ensure_directory(folder);
  program::ParameterStore store;
  for (const auto& [parameter, value] : quantized.weights)
    store.parameters[parameter] = {value, ""};
  program::write_weights(folder + "/model.safetensors", store);
  write_file_atomically(folder + "/module.txt",
                        ir::print(program::prediction_module(quantized.function, name, store)));
  const fs::path inference = fs::path(source_folder) / "inference";
  const fs::path from = fs::exists(inference) ? inference : fs::path(source_folder);
  for (const auto& each : fs::directory_iterator(from)) {
    const std::string file = each.path().filename().string();
    const bool metadata = file == "config.yaml" || file.ends_with(".json");
    if (metadata && each.is_regular_file())
      write_file_atomically(folder + "/" + file,
                            read_file(each.path().string(), uint64_t{1} << 30, ErrorCode::kModel));
  }
}

}  // namespace

int64_t QuantReport::quantized_layers() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const Layer& each) { return each.quantized; });
}

std::vector<Layer> plan_layers(const QuantJob& job) {
  const program::TracedModel traced = program::trace_model(job.model, job.load);
  Quantizable model(*traced.function, traced.weight);
  keep_layers(model.layers(), job.keep_float);
  return model.layers();
}

QuantReport run_quantization(const QuantJob& given,
                             const std::function<void(const std::string&)>& progress) {
  QuantJob job = given;
  const bool only_file = job.output.ends_with(".onnx");
  const std::string onnx_file = only_file ? job.output : job.output + "/model.onnx";
  if (!job.overwrite && (file_exists(job.output) || is_directory(job.output)))
    fail(ErrorCode::kUsage, job.output, ": is there already (--overwrite replaces it)");
  const auto source = program::load_model(job.model, job.load);
  job.calibration = data_of(job.calibration, *source, "train");
  if (!is_given(job.calibration))
    fail(ErrorCode::kUsage, job.model, ": has no data of its own; give --data");
  job.evaluation = data_of(job.evaluation, *source, "valid");
  if (!is_given(job.evaluation)) job.evaluation = job.calibration;

  const program::TracedModel traced = program::trace_model(job.model, job.load);
  Quantizable model(*traced.function, traced.weight);
  if (model.layers().empty())
    fail(ErrorCode::kModel, job.model, ": has no layer with constant weights to quantize");
  keep_layers(model.layers(), job.keep_float);
  QuantReport report;
  progress("calibrating");
  report.calibration_samples = calibrate(job, model, *source, traced, report.warnings);
  progress("measuring layers");
  measure_layers(job, model, *source, traced);
  const QuantizedFunction quantized = quantize(model);
  report.layers = model.layers();

  progress("writing");
  if (!only_file) ensure_directory(job.output);
  const auto weight = [&](const std::string& name) {
    const auto found = quantized.weights.find(name);
    return found == quantized.weights.end() ? traced.weight(name) : found->second;
  };
  onnx::ExportOptions options;
  options.name = traced.name.empty() ? "model" : traced.name;
  options.producer = job.producer;
  const auto exported = onnx::export_function(*quantized.function, weight, options);
  const auto written = formats::onnx::write_model(exported.model, onnx_file, {});
  report.onnx_file = onnx_file;
  report.quantized_bytes = static_cast<int64_t>(written.model_bytes + written.data_bytes);
  const auto float_export = onnx::export_function(*traced.function, traced.weight, options);
  report.float_bytes = static_cast<int64_t>(formats::onnx::encoded_bytes(float_export.model));
  if (!only_file && is_directory(job.model)) {
    report.model_folder = job.output + "/model";
    write_folder(report.model_folder, program::find_model_folder(job.model), traced.name,
                 quantized);
  }

  progress("comparing");
  const auto result = program::load_model(onnx_file, {});
  compare(job, *source, *result, report);
  for (const Metric& metric : report.metrics)
    if (metric.name == "accuracy" && job.max_drop &&
        metric.float_value - metric.quantized > *job.max_drop) {
      report.accepted = false;
      report.reason =
          str("accuracy falls by ", format_double(metric.float_value - metric.quantized),
              ", more than ", format_double(*job.max_drop));
    }
  if (report.quantized_ms > report.float_ms)
    report.warnings.push_back(
        str("the quantized model is slower here: ", format_double(report.quantized_ms),
            " ms against ", format_double(report.float_ms)));
  write_file_atomically(only_file ? onnx_file + ".report.json" : job.output + "/report.json",
                        report_json(job, report));
  return report;
}

std::string report_json(const QuantJob& job, const QuantReport& report) {
  Json metrics = Json::object();
  for (const Metric& each : report.metrics) {
    Json value = {{"float", each.float_value}, {"quantized", each.quantized}};
    if (each.name == "output_sqnr_db") value.erase("float");
    if (each.confidence95) value["confidence95"] = *each.confidence95;
    metrics[each.name] = value;
  }
  Json layers = Json::array();
  for (const Layer& each : report.layers)
    layers.push_back({{"name", each.name},
                      {"op", each.op},
                      {"place", each.location},
                      {"decision", each.quantized ? "int8" : "float32"},
                      {"why", each.why},
                      {"input_range", {each.input.low, each.input.high}},
                      {"sqnr_db", each.sqnr_db}});
  const Json out = {
      {"version", 1},
      {"scheme", "int8"},
      {"model", job.model},
      {"observer", job.method_name},
      {"calibration_samples", report.calibration_samples},
      {"evaluation_samples", report.evaluation_samples},
      {"metrics", metrics},
      {"latency_ms", {{"float", report.float_ms}, {"quantized", report.quantized_ms}}},
      {"bytes", {{"float", report.float_bytes}, {"quantized", report.quantized_bytes}}},
      {"accepted", report.accepted},
      {"reason", report.reason},
      {"warnings", report.warnings},
      {"layers", layers}};
  return out.dump(2) + "\n";
}

}  // namespace paddle::quant
