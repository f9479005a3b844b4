#include "quant/quant_job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "formats/onnx/write.h"
#include "onnx/export/export.h"
#include "program/checkpoint.h"
#include "program/folders.h"
#include "program/prediction.h"
#include "program/saved_model.h"
#include "program/traced_model.h"
#include "quant/acceptance.h"
#include "quant/calibration.h"
#include "quant/interruption.h"
#include "quant/layer_times.h"
#include "quant/loss_sensitivity.h"
#include "quant/output.h"
#include "quant/preparation.h"
#include "quant/quantize.h"
#include "quant/report.h"
#include "quant/search_job.h"
#include "quant/trained.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;

/// A model, opened twice: to run it, and as a function with its layers.
struct Source {
  std::unique_ptr<program::Model> model;
  program::TracedModel traced;
  std::unique_ptr<Quantizable> layers;
};

/// Gives layers their formats, and applies the exceptions.
void set_formats(Quantizable& model, const QuantConfig& config) {
  std::vector<std::string> names;
  for (Layer& layer : model.layers()) {
    names.push_back(layer.name);
    layer.format = config.format;
    // A table takes integers only where a smaller file is the purpose.
    if (layer.op == "embedding" && config.format.activations != ActivationMode::kNone) {
      layer.quantized = false;
      layer.why = "tables are quantized by the schemes for weights";
    }
  }
  for (const LayerRule& rule : config.layers) {
    bool any = false;
    for (Layer& layer : model.layers()) {
      if (!rule.matches(layer.name, layer.op)) continue;
      any = true;
      if (rule.weights) layer.format.weights = *rule.weights;
      if (rule.keep_float && layer.quantized) {
        layer.quantized = false;
        layer.why = rule.option.empty() ? "quant.layers: keep" : rule.option;
      }
    }
    if (!any) throw unmatched(rule, names);
  }
  // Groups that do not divide the features become smaller.
  for (size_t i = 0; i < model.layers().size(); ++i) {
    Layer& layer = model.layers()[i];
    if (!layer.quantized || !layer.has_weight) continue;
    const Dims& shape = model.weight(i).shape;
    const bool rows = layer.transposed || layer.op == "recurrent_scan";
    fit_groups(layer.format.weights, rows                                         ? shape.back()
                                     : layer.channel_axis() != ChannelAxis::kLast ? 0
                                                                                  : shape.front());
  }
}

/// kModel for a model that computes with integers.
void check_float(const QuantJob& job, const ir::Function& function) {
  int64_t count = 0;
  const ir::Operation* first = nullptr;
  for (const auto& operation : function.body.operations) {
    const std::string_view op = operation->op->name();
    if (op != "quantize" && op != "dequantize" && op != "quantize_dynamic" &&
        !op.starts_with("quantized_"))
      continue;
    if (!first) first = operation.get();
    ++count;
  }
  if (first)
    fail(ErrorCode::kModel, job.model, ": is quantized already (", count,
         " operations on integers, the first one ", first->op->name(),
         "); expected a model of floats");
}

/// The model as a function. kUsage for a fixed dim that no input has, and for a batch that the last
/// samples of the data cannot fill.
program::TracedModel traced_model(const QuantJob& job) {
  program::TracedModel out = program::trace_model(job.model, job.load, job.dims);
  std::vector<std::string> symbols, batches;
  const ir::Function& function = *out.function;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (function.inputs[i].kind != ir::PortKind::kValue) continue;
    const Shape& shape = function.body.arguments[i]->type.shape;
    for (const Dim& dim : shape) dim.collect_symbols(symbols);
    if (!shape.empty()) shape[0].collect_symbols(batches);
  }
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  for (const auto& [name, value] : job.dims) {
    if (!std::binary_search(symbols.begin(), symbols.end(), name))
      fail(ErrorCode::kUsage, "--dim ", name, ": no input of the model has such a dim",
           did_you_mean(name, symbols), symbols.empty() ? "" : "; it has ", join(symbols, ", "));
    if (std::find(batches.begin(), batches.end(), name) != batches.end() &&
        (value != job.config.batch || value != read_latency(job.config.document).batch))
      fail(ErrorCode::kUsage, "--dim ", name, "=", value,
           ": is the batch axis, which needs --batch ", value,
           " and quant.accept.latency.batch=", value, " too");
  }
  return out;
}

Source open_source(const QuantJob& job, program::TracedModel traced) {
  Source out;
  out.traced = std::move(traced);
  if (is_trained_with_quantization(*out.traced.function))
    fail(ErrorCode::kUsage, job.model,
         ": was trained with quantization, so its ranges are settled; 'paddle quant MODEL' writes "
         "its integers");
  check_float(job, *out.traced.function);
  const bool products =
      job.config.products && job.config.format.activations == ActivationMode::kStatic;
  out.layers = std::make_unique<Quantizable>(*out.traced.function, out.traced.weight, products);
  if (out.layers->layers().empty())
    fail(ErrorCode::kModel, job.model, ": has no layer with constant weights to quantize");
  // ONNX Runtime fuses convolutions and sums whose results are quantized at once, and our kernels
  // for weights of 7 bits are faster with results of bytes.
  if (job.config.target != "cpu" && job.config.format.activations == ActivationMode::kStatic)
    out.layers->round_sums();
  set_formats(*out.layers, job.config);
  return out;
}

/// Settles where samples come from; kUsage if nothing says so.
void settle_data(QuantJob& job, const program::Model& model) {
  job.calibration = data_of(job.calibration, model, "train");
  if (!is_given(job.calibration))
    fail(ErrorCode::kUsage, job.model, ": has no data of its own; give --data");
  job.evaluation = data_of(job.evaluation, model, "valid");
  if (!is_given(job.evaluation)) job.evaluation = job.calibration;
  job.calibration.rows_are_samples = job.evaluation.rows_are_samples = true;
}

/// The inputs of at most `rows` samples, in one batch.
std::vector<Array> some_inputs(const QuantJob& job, const program::Model& model, int64_t rows) {
  infer::InputOptions options = job.calibration;
  options.batch = std::min(options.batch, rows);
  const auto batches = infer::open_inputs(model, options);
  while (const auto batch = batches->next()) {
    if (batch->rows == 0) continue;
    std::vector<Array> out;
    for (const Array& each : batch->inputs) {
      Array part = each;
      if (part.ndim() > 0 && part.shape[0] == batch->rows)
        part.shape[0] = std::min(batch->rows, rows);
      out.push_back(part.contiguous());
    }
    return out;
  }
  fail(ErrorCode::kData, "calibration: the data has no samples");
}

/// Writes the quantized model into `folder`; returns the size of the ONNX file.
int64_t write_model(const QuantJob& job, const program::TracedModel& source,
                    const QuantizedFunction& quantized, const Paths& paths,
                    onnx::ExportOptions options = {}) {
  options.dims = job.dims;
  options.name = source.name.empty() ? "model" : source.name;
  options.producer = job.producer;
  options.format = job.format;
  // Of ranges that are found at run time ONNX Runtime computes pairs of operators in floats, and
  // integers only where the file has the operators of integers.
  if (job.format == onnx::QuantizedFormat::kQdq && job.config.target != "cpu" &&
      job.config.format.activations == ActivationMode::kDynamic)
    options.format = onnx::QuantizedFormat::kQOperator;
  const auto weight = [&](const std::string& name) {
    const auto found = quantized.weights.find(name);
    return found == quantized.weights.end() ? source.weight(name) : found->second;
  };
  const auto exported = onnx::export_function(*quantized.function, weight, options);
  const auto written =
      formats::onnx::write_model(exported.model, (paths.partial / paths.file).string(), {});
  const bool four_bits =
      std::any_of(quantized.weights.begin(), quantized.weights.end(),
                  [](const auto& each) { return info(each.second.dtype).bits < 8; });
  // Safetensors files have no integers of 4 bits.
  if (!paths.only_file && is_directory(job.model) && !four_bits && !options.low)
    program::write_folder((paths.partial / "model").string(), program::find_model_folder(job.model),
                          source.name, quantized.function, weight);
  return static_cast<int64_t>(written.model_bytes + written.data_bytes);
}

/// Puts the result and the reports in their places.
void finish(const QuantJob& job, const Paths& paths, QuantReport& report) {
  warn_of_few(job, report);
  const bool in_place = report.accepted || job.write_anyway;
  const fs::path folder = in_place ? paths.base : paths.base / "best";
  report.onnx_file = (folder / paths.file).lexically_normal().string();
  if (fs::exists(paths.partial / "model")) report.model_folder = (folder / "model").string();
  const auto write = [&](const char* kind, const std::string& text) {
    write_file_atomically((paths.partial / paths.report(kind).filename()).string(), text);
  };
  write("report.json", report_json(job, report));
  write("report.html", report_html(job, report));
  write("layers.csv", layers_csv(report));
  paths.publish(in_place);
}

/// A model that was trained with quantization: its integers, compared with its floats.
QuantReport write_trained(const QuantJob& job, const program::TracedModel& traced,
                          const Paths& paths, AcceptanceCheck& acceptance,
                          const Progress& progress) {
  QuantReport report;
  report.checked = job.check;
  progress({"writing"});
  const QuantizedFunction trained = with_stored_integers(*traced.function, traced.weight);
  report.layers = trained_layers(trained);
  report.quantized_bytes = write_model(job, traced, trained, paths);
  const std::shared_ptr<ir::Function> floats = without_quantization(*traced.function);
  report.float_bytes = static_cast<int64_t>(
      formats::onnx::encoded_bytes(onnx::export_function(*floats, traced.weight, {}).model));
  if (job.check) {
    progress({"comparing"});
    const std::string folder = (paths.partial / "float").string();
    program::write_folder(folder, program::find_model_folder(job.model), traced.name, floats,
                          traced.weight);
    const auto first = program::load_model(folder, {});
    const std::string file = (paths.partial / paths.file).string();
    acceptance.compare(*first, *program::load_model(file, {}), file, report);
    fs::remove_all(folder);
  }
  finish(job, paths, report);
  return report;
}

/// Layers that float16 cannot hold: values of their weight, input or result come near its largest
/// number on the calibration data.
void keep_overflowing_float(Quantizable& model, CalibrationData& data, const WeightSource& weight) {
  std::vector<double> largest(model.layers().size());
  const auto add = [&](size_t layer, const Array& values) {
    const Array floats = values.cast(DType::kF32).contiguous();
    for (int64_t i = 0; i < floats.size(); ++i)
      largest[layer] =
          std::max(largest[layer], std::abs(static_cast<double>(floats.data<float>()[i])));
  };
  for (size_t i = 0; i < largest.size(); ++i) add(i, model.weight(i));
  const auto observe = [&](const std::shared_ptr<ir::Function>& function,
                           const std::vector<size_t>& layers) {
    FunctionRunner runner(function, weight);
    data.for_each([&](const std::vector<Array>& inputs) {
      const std::vector<Array> results = runner.run(inputs);
      for (size_t i = 0; i < layers.size(); ++i) add(layers[i], results.at(model.outputs() + i));
    });
  };
  std::vector<size_t> results, inputs;
  for (size_t i = 0; i < model.top_level_layers(); ++i) results.push_back(i);
  for (const LayerInput& each : model.layer_inputs()) inputs.push_back(each.layer);
  observe(model.with_layer_results(), results);
  observe(model.with_layer_inputs(), inputs);
  constexpr double kMargin = 2, kMax = 65504;
  for (size_t i = 0; i < largest.size(); ++i) {
    Layer& layer = model.layers()[i];
    if (!layer.quantized || !(largest[i] * kMargin > kMax)) continue;
    layer.quantized = false;
    layer.why = str("its values reach ", format_double(std::round(largest[i])),
                    ", near the largest float16");
  }
}

/// float16 and bf16: the ONNX file computes in 16 bits where operations allow it.
QuantReport write_half(const QuantJob& job, program::Model& model, program::TracedModel traced,
                       const Paths& paths, AcceptanceCheck& acceptance, const Progress& progress) {
  Source source = open_source(job, std::move(traced));
  Quantizable& layers = *source.layers;
  paths.begin(job.resume);
  QuantReport report;
  report.checked = job.check;
  if (job.config.format.half == DType::kF16) {
    progress({"observing ranges"});
    CalibrationData data(model, job.calibration, job.config.samples);
    keep_overflowing_float(layers, data, source.traced.weight);
    report.warnings = data.warnings();
  }
  report.layers = layers.layers();
  onnx::ExportOptions options;
  report.float_bytes = static_cast<int64_t>(formats::onnx::encoded_bytes(
      onnx::export_function(*source.traced.function, source.traced.weight, options).model));
  options.low = job.config.format.half;
  for (const Layer& layer : report.layers)
    if (!layer.quantized && !layer.parameter.empty()) options.keep_float.push_back(layer.parameter);
  progress({"writing"});
  report.quantized_bytes =
      write_model(job, source.traced, {source.traced.function, {}}, paths, options);
  if (job.check) {
    progress({"comparing"});
    const std::string file = (paths.partial / paths.file).string();
    acceptance.compare(model, *program::load_model(file, {}), file, report);
  }
  finish(job, paths, report);
  return report;
}

/// Layers as they were before they were timed, with their times.
void restore(const std::vector<Layer>& before, std::vector<Layer>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].quantized = before[i].quantized;
    layers[i].why = before[i].why;
  }
}

}  // namespace

int64_t QuantReport::quantized_layers() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const Layer& each) { return each.quantized; });
}

std::vector<Layer> plan_layers(const QuantJob& job) {
  return open_source(job, traced_model(job)).layers->layers();
}

namespace {

QuantReport run_in_folder(QuantJob job, const Paths& paths, const Progress& progress) {
  auto search_options = read_search(job.config.document);
  CalibrationData::Deadline deadline;
  if (job.time_limit)
    deadline = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::chrono::duration<double>(*job.time_limit));
  if (search_options) search_options->deadline = deadline;
  // Statistics outlive an interruption; those of another job are not read.
  if (job.config.statistics.empty()) {
    const fs::path earlier = paths.base / paths.statistics().filename();
    const bool reads = job.resume && !paths.only_file && !paths.is_interrupted();
    job.config.statistics = (reads && fs::exists(earlier) ? earlier : paths.statistics()).string();
  }
  // The model that runs; the traced one below is what changes.
  const auto model = program::load_model(job.model, job.load);
  settle_data(job, *model);
  if (search_options && search_options->sensitivity == Sensitivity::kGradient) check_has_loss(job);
  AcceptanceCheck acceptance(job);
  program::TracedModel traced = traced_model(job);
  if (is_trained_with_quantization(*traced.function)) {
    paths.begin(job.resume);
    return write_trained(job, traced, paths, acceptance, progress);
  }
  if (job.config.format.half)
    return write_half(job, *model, std::move(traced), paths, acceptance, progress);
  Source source = open_source(job, std::move(traced));
  Quantizable& layers = *source.layers;
  const WeightSource& weight = source.traced.weight;
  paths.begin(job.resume);
  QuantReport report;
  report.checked = job.check;
  report.calibration_samples = prepare(job, layers, *model, weight, deadline, progress,
                                       report.warnings, paths.begun_statistics().string());
  const std::vector<Layer> all = layers.layers();
  const bool decided = job.resume && read_decisions(paths.decisions(), layers.layers());
  std::optional<SearchProgress> searched;
  if (search_options && job.check && job.resume) searched = begun_search(job, paths, layers);
  if (!decided) progress({"measuring layers"});
  const bool wants_times =
      job.config.measure && job.check && job.config.format.activations != ActivationMode::kNone;
  const bool times = wants_times && !is_past(deadline);
  if (wants_times && !times) report.warnings.push_back("the time limit left layers untimed");
  if (!decided) {
    const int64_t rows = read_latency(job.config.document).batch;
    measure_layers(layers, timed_inputs(*model, job.calibration, rows), weight, times && !searched,
                   progress);
    if (times && !searched) keep_slow_layers_float(layers.layers());
    write_decisions(paths.decisions(), layers.layers());
  }
  if (std::none_of(layers.layers().begin(), layers.layers().end(),
                   [](const Layer& each) { return each.quantized; })) {
    report.warnings.push_back("no layer is faster in integers on this machine; all are quantized");
    restore(all, layers.layers());
  }

  if (searched) {
    // The first trial was compared before the interruption.
    report.accepted = false;
    report.accuracy_gap = searched->trials.front().accuracy_gap;
  } else {
    progress({"writing"});
    report.quantized_bytes =
        write_model(job, source.traced, quantize(layers, Integers::kPacked), paths);
  }
  onnx::ExportOptions options;
  const auto float_export =
      onnx::export_function(*source.traced.function, source.traced.weight, options);
  report.float_bytes = static_cast<int64_t>(formats::onnx::encoded_bytes(float_export.model));

  if (job.check && !searched) {
    progress({"comparing"});
    const std::string file = (paths.partial / paths.file).string();
    const auto compare = [&] {
      acceptance.compare(*model, *program::load_model(file, {}), file, report);
    };
    compare();
    // Layers that lose by themselves can still win between others.
    const bool slower = report.comparison.second_ms > report.comparison.first_ms;
    if (times && slower && layers.layers().size() > 1 &&
        std::any_of(layers.layers().begin(), layers.layers().end(),
                    [](const Layer& each) { return !each.quantized && each.quantized_us > 0; })) {
      const QuantReport first = report;
      const std::vector<Layer> first_layers = layers.layers();
      restore(all, layers.layers());
      report.quantized_bytes =
          write_model(job, source.traced, quantize(layers, Integers::kPacked), paths);
      compare();
      if (!report.accepted && report.comparison.second_ms > first.comparison.second_ms) {
        report = first;
        layers.layers() = first_layers;
        report.quantized_bytes =
            write_model(job, source.traced, quantize(layers, Integers::kPacked), paths);
      }
    }
  }
  if (search_options && job.check && !report.accepted) {
    const std::string file = (paths.partial / paths.file).string();
    const auto write = [&] {
      report.quantized_bytes =
          write_model(job, source.traced, quantize(layers, Integers::kPacked), paths);
      acceptance.compare(*model, *program::load_model(file, {}), file, report);
    };
    search_layers(job, *search_options, paths, layers, some_inputs(job, *model, job.config.batch),
                  weight, write, std::move(searched), report, progress);
    if (is_past(deadline)) report.warnings.push_back("the time limit ended the search");
  }
  if (job.check && report.trials == 0) {
    // For the report; large models are measured in part.
    double seconds = 10;
    if (deadline)
      seconds = std::clamp(
          std::chrono::duration<double>(*deadline - std::chrono::steady_clock::now()).count(), 0.0,
          seconds);
    const std::vector<Layer> decided_layers = layers.layers();
    restore(all, layers.layers());
    measure_sensitivity(
        job, Sensitivity::kSqnr, layers, some_inputs(job, *model, 1), weight,
        [](const Step&) { stop_if_interrupted(); }, seconds);
    const std::vector<Layer> measured = layers.layers();
    layers.layers() = decided_layers;
    for (size_t i = 0; i < measured.size(); ++i)
      layers.layers()[i].output_sqnr_db = measured[i].output_sqnr_db;
  }
  report.layers = layers.layers();
  finish(job, paths, report);
  if (search_options && (report.accepted || job.write_anyway))
    program::remove_folder(paths.base / "best");
  return report;
}

}  // namespace

QuantReport run_quantization(const QuantJob& job, const Progress& progress) {
  const Paths paths(job.output);
  if (job.resume && !paths.is_interrupted() && fs::exists(paths.base / paths.file))
    fail(ErrorCode::kUsage, job.output, ": is complete, there is nothing to resume");
  if (!job.resume) check_output(job.output, job.overwrite);
  const bool continues = paths.is_interrupted();
  QuantReport out;
  try {
    with_disk_errors([&] {
      out = run_in_folder(job, paths, [&](const Step& step) {
        stop_if_interrupted();
        progress(step);
      });
    });
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& e) {
    // A full disk leaves what can be resumed.
    if (e.code() != ErrorCode::kDevice && !continues && !job.resume) paths.abandon();
    throw;
  }
  return out;
}

int64_t run_calibration(const QuantJob& given, const std::string& output,
                        const Progress& progress) {
  QuantJob job = given;
  const auto model = program::load_model(job.model, job.load);
  settle_data(job, *model);
  Source source = open_source(job, traced_model(job));
  std::vector<std::string> warnings;
  CalibrationData data(*model, job.calibration, job.config.samples);
  scale_weights(job.config, *source.layers, data, source.traced.weight, progress, warnings);
  const std::string begun = output + ".begun";
  if (!job.resume) fs::remove(begun);
  const Statistics statistics =
      collect_statistics(*source.layers, data, source.traced.weight, progress, begun);
  write_statistics(output, *source.layers, statistics);
  fs::remove(begun);
  return statistics.samples;
}

std::vector<Layer> run_sensitivity(const QuantJob& given, Sensitivity by,
                                   const Progress& progress) {
  QuantJob job = given;
  const auto model = program::load_model(job.model, job.load);
  if (by == Sensitivity::kGradient) check_has_loss(job);
  settle_data(job, *model);
  Source source = open_source(job, traced_model(job));
  Quantizable& layers = *source.layers;
  std::vector<std::string> warnings;
  prepare(job, layers, *model, source.traced.weight, {}, progress, warnings);
  const std::vector<Array> inputs = some_inputs(job, *model, job.config.batch);
  measure_sensitivity(job, by, layers, inputs, source.traced.weight, progress);
  return layers.layers();
}

}  // namespace paddle::quant
