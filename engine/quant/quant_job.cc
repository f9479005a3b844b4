#include "quant/quant_job.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "formats/onnx/write.h"
#include "onnx/export/export.h"
#include "program/checkpoint.h"
#include "program/prediction.h"
#include "program/traced_model.h"
#include "quant/calibration.h"
#include "quant/layer_times.h"
#include "quant/methods.h"
#include "quant/quantize.h"
#include "quant/report.h"
#include "quant/rounding.h"
#include "runtime/execute.h"

namespace paddle::quant {
namespace {

namespace fs = std::filesystem;

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
      const bool named = rule.match.empty() ||
                         std::any_of(rule.match.begin(), rule.match.end(), [&](const auto& each) {
                           return matches_pattern(each, layer.name);
                         });
      if (!named || (!rule.op.empty() && rule.op != layer.op)) continue;
      any = true;
      if (rule.weights) layer.format.weights = *rule.weights;
      if (rule.keep_float && layer.quantized) {
        layer.quantized = false;
        layer.why = rule.option.empty() ? "quant.layers: keep" : rule.option;
      }
    }
    if (any) continue;
    const std::string pattern = join(rule.match, ", ");
    throw Error(
        ErrorCode::kConfig,
        str(rule.option.empty() ? "quant.layers" : "--keep-float", ": no layer matches '", pattern,
            rule.op.empty() ? "" : " (" + rule.op + ")", "'", did_you_mean(pattern, names),
            names.empty() ? "" : "; layers are " + join(names, ", ")),
        rule.where);
  }
  // Groups that do not divide the features become smaller.
  for (size_t i = 0; i < model.layers().size(); ++i) {
    Layer& layer = model.layers()[i];
    WeightFormat& weights = layer.format.weights;
    if (!layer.quantized || weights.per != Granularity::kGroup) continue;
    const Array& weight = model.weight(i);
    const int64_t features = layer.channels_first() ? 0 : weight.shape.front();
    while (weights.group > 16 && (features == 0 || features % weights.group != 0))
      weights.group /= 2;
    if (features == 0 || features % weights.group != 0) weights.per = Granularity::kChannel;
  }
}

Source open_source(const QuantJob& job) {
  Source out;
  out.traced = program::trace_model(job.model, job.load);
  out.layers = std::make_unique<Quantizable>(*out.traced.function, out.traced.weight);
  if (out.layers->layers().empty())
    fail(ErrorCode::kModel, job.model, ": has no layer with constant weights to quantize");
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
}

bool has_step(const QuantConfig& config, const char* name) {
  return std::any_of(config.methods.begin(), config.methods.end(),
                     [&](const MethodStep& step) { return step.name == name; });
}

/// equalize, smooth and awq, which change float weights.
void scale_weights(const QuantConfig& config, Quantizable& model, CalibrationData& data,
                   const WeightSource& weight, const Progress& progress,
                   std::vector<std::string>& warnings) {
  for (const MethodStep& step : config.methods) {
    int64_t count = -1;
    if (step.name == "equalize") {
      progress("equalizing");
      count = equalize(model);
    } else if (step.name == "smooth") {
      progress("smoothing");
      count = smooth(model, largest_features(model, layers_after_norms(model), data, weight),
                     step.alpha);
    } else if (step.name == "awq") {
      progress("scaling weights");
      std::vector<size_t> layers;
      for (const size_t i : layers_after_norms(model))
        if (can_collect_moments(model, i)) layers.push_back(i);
      std::vector<Moments> moments(model.layers().size());
      const auto source = [&](const auto& use) { data.for_each(use); };
      collect_moments(model, layers, source, weight,
                      [&](size_t layer, const Moments& found) { moments[layer] = found; });
      count = scale_by_activations(model, moments);
    }
    if (count == 0) warnings.push_back(step.name + ": found nothing to scale in this model");
  }
}

/// gptq, adaround and bias_correction, which need the moments of layer inputs.
void choose_integers(const QuantConfig& config, Quantizable& model, CalibrationData& data,
                     const WeightSource& weight, const Progress& progress) {
  const bool corrects = has_step(config, "bias_correction");
  if (!corrects && !has_step(config, "gptq") && !has_step(config, "adaround")) return;
  std::vector<size_t> layers;
  for (size_t i = 0; i < model.layers().size(); ++i)
    if (can_collect_moments(model, i)) layers.push_back(i);
  std::vector<std::pair<size_t, Moments>> for_biases;
  const auto source = [&](const auto& use) { data.for_each(use); };
  size_t done = 0;
  collect_moments(model, layers, source, weight, [&](size_t i, const Moments& moments) {
    progress(str("choosing integers: layer ", ++done, " of ", layers.size()));
    Layer& layer = model.layers()[i];
    const WeightRows rows = weight_rows(model.weight(i), layer.channels_first());
    for (const MethodStep& step : config.methods) {
      if (step.name == "gptq")
        layer.weight =
            std::make_shared<QuantizedWeight>(gptq(rows, layer.format.weights, moments, step.damp));
      if (step.name == "adaround")
        layer.weight = std::make_shared<QuantizedWeight>(
            descend(rows, quantized_weight(layer, model.weight(i)), moments));
    }
    if (corrects) for_biases.emplace_back(i, Moments{moments.features, {}, moments.mean});
  });
  for (const auto& [layer, moments] : for_biases) correct_bias(model, layer, moments);
}

/// Calibration and the methods: everything before the integers are final.
int64_t prepare(const QuantJob& job, Quantizable& model, const program::Model& source,
                const WeightSource& weight, const Progress& progress,
                std::vector<std::string>& warnings) {
  const QuantConfig& config = job.config;
  CalibrationData data(source, job.calibration, config.samples);
  scale_weights(config, model, data, weight, progress, warnings);
  int64_t samples = 0;
  if (config.format.activations == ActivationMode::kStatic) {
    std::optional<Statistics> statistics;
    if (!config.statistics.empty() && file_exists(config.statistics)) {
      std::string reason;
      statistics = read_statistics(config.statistics, model, reason);
      if (!statistics) warnings.push_back(reason + "; they are made again");
    }
    if (!statistics) {
      progress("calibrating");
      statistics = collect_statistics(model, data, weight);
      if (!config.statistics.empty()) write_statistics(config.statistics, model, *statistics);
    }
    samples = statistics->samples;
    for (size_t i = 0; i < model.layers().size(); ++i)
      model.layers()[i].input = statistics->inputs[i].range(config.range, 256, config.percentile);
    if (samples < 32)
      warnings.push_back(str("calibration used ", samples,
                             " samples; ranges of so few may not hold for other inputs"));
  }
  choose_integers(config, model, data, weight, progress);
  for (const std::string& line : data.warnings()) warnings.push_back(line);
  return samples;
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

/// Where a job writes. Files are made in `partial`, and moved when it is known where they belong.
struct Paths {
  bool only_file;
  fs::path base;     ///< the output folder, or the folder of the output file
  fs::path partial;  ///< holds `file` and `model/` until then
  std::string file;  ///< name of the ONNX file

  explicit Paths(const std::string& output)
      : only_file(output.ends_with(".onnx")),
        base(only_file ? fs::path(output).parent_path() : fs::path(output)),
        file(only_file ? fs::path(output).filename().string() : "model.onnx") {
    if (base.empty()) base = ".";
    partial = base / ("." + file + ".partial");
  }
  fs::path report(const char* kind) const {
    return base / (only_file ? file + "." + kind : std::string(kind));
  }
  /// Moves what is in `partial` to its place. What was in that place is replaced.
  void publish(bool accepted) const {
    const fs::path to = accepted ? base : base / "best";
    ensure_directory(to.string());
    for (const auto& each : fs::directory_iterator(partial)) {
      const fs::path place = to / each.path().filename();
      if (fs::is_directory(place)) fs::remove_all(place);
      fs::rename(each.path(), place);
    }
    fs::remove_all(partial);
  }
};

/// Writes the quantized model into `folder`; returns the size of the ONNX file.
int64_t write_model(const QuantJob& job, const Source& source, const QuantizedFunction& quantized,
                    const Paths& paths) {
  onnx::ExportOptions options;
  options.name = source.traced.name.empty() ? "model" : source.traced.name;
  options.producer = job.producer;
  const auto weight = [&](const std::string& name) {
    const auto found = quantized.weights.find(name);
    return found == quantized.weights.end() ? source.traced.weight(name) : found->second;
  };
  const auto exported = onnx::export_function(*quantized.function, weight, options);
  const auto written =
      formats::onnx::write_model(exported.model, (paths.partial / paths.file).string(), {});
  const bool four_bits =
      std::any_of(quantized.weights.begin(), quantized.weights.end(),
                  [](const auto& each) { return info(each.second.dtype).bits < 8; });
  // Safetensors files have no integers of 4 bits.
  if (!paths.only_file && is_directory(job.model) && !four_bits)
    write_folder((paths.partial / "model").string(), program::find_model_folder(job.model),
                 source.traced.name, quantized);
  return static_cast<int64_t>(written.model_bytes + written.data_bytes);
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%%", 100 * share);
  return text;
}

/// Compares with what the user accepts.
void judge(const Acceptance& accept, QuantReport& report) {
  std::vector<std::string> reasons;
  const Comparison& c = report.comparison;
  if (const Metric* accuracy = c.find("accuracy"); accept.drop) {
    if (!accuracy)
      reasons.push_back("the data has no labels to compute the accuracy from");
    else if (accuracy->float_value - accuracy->quantized > *accept.drop)
      reasons.push_back(str("accuracy falls by ",
                            percent(accuracy->float_value - accuracy->quantized), ", more than ",
                            percent(*accept.drop)));
  }
  if (const Metric* noise = c.find("output_sqnr_db");
      accept.sqnr_db && noise && noise->quantized < *accept.sqnr_db)
    reasons.push_back(str("the output has ", format_double(std::round(noise->quantized * 10) / 10),
                          " dB, less than ", format_double(*accept.sqnr_db)));
  // Times of the same program differ by this share from one measurement to the next.
  constexpr double kNoise = 0.03;
  if (accept.speedup && c.second_ms > 0) {
    const double speedup = c.first_ms / c.second_ms;
    if (speedup < *accept.speedup * (1 - kNoise)) {
      char text[128];
      std::snprintf(text, sizeof text, "it takes %.3g ms against %.3g in floats: %.2fx",
                    c.second_ms, c.first_ms, speedup);
      reasons.push_back(str(text, ", expected at least ", format_double(*accept.speedup), "x"));
    }
  }
  const double size = static_cast<double>(report.quantized_bytes) /
                      static_cast<double>(std::max<int64_t>(1, report.float_bytes));
  if (accept.size_ratio && size > *accept.size_ratio)
    reasons.push_back(
        str("it has ", percent(size), " of the size, more than ", percent(*accept.size_ratio)));
  report.accepted = reasons.empty();
  report.reason = join(reasons, "; ");
}

}  // namespace

int64_t QuantReport::quantized_layers() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const Layer& each) { return each.quantized; });
}

std::vector<Layer> plan_layers(const QuantJob& job) { return open_source(job).layers->layers(); }

QuantReport run_quantization(const QuantJob& given, const Progress& progress) {
  QuantJob job = given;
  const Paths paths(job.output);
  if (!job.overwrite && (file_exists(job.output) || is_directory(job.output)))
    fail(ErrorCode::kUsage, job.output, ": is there already (--overwrite replaces it)");
  // The model that runs; the traced one below is what changes.
  const auto model = program::load_model(job.model, job.load);
  settle_data(job, *model);
  Source source = open_source(job);
  Quantizable& layers = *source.layers;
  const WeightSource& weight = source.traced.weight;
  QuantReport report;
  report.checked = job.check;
  report.calibration_samples = prepare(job, layers, *model, weight, progress, report.warnings);
  progress("measuring layers");
  const bool times =
      job.config.measure && job.check && job.config.format.activations != ActivationMode::kNone;
  measure_layers(layers, some_inputs(job, *model, 1), weight, times);
  const std::vector<Layer> all = layers.layers();
  if (times) keep_slow_layers_float(layers.layers());
  if (std::none_of(layers.layers().begin(), layers.layers().end(),
                   [](const Layer& each) { return each.quantized; })) {
    report.warnings.push_back("no layer is faster in integers on this machine; all are quantized");
    layers.layers() = all;
  }

  progress("writing");
  fs::remove_all(paths.partial);
  ensure_directory(paths.partial.string());
  report.quantized_bytes = write_model(job, source, quantize(layers, Integers::kPacked), paths);
  onnx::ExportOptions options;
  const auto float_export =
      onnx::export_function(*source.traced.function, source.traced.weight, options);
  report.float_bytes = static_cast<int64_t>(formats::onnx::encoded_bytes(float_export.model));

  if (job.check) {
    progress("comparing");
    const std::string file = (paths.partial / paths.file).string();
    const auto compare = [&] {
      const auto result = program::load_model(file, {});
      report.comparison = compare_models(*model, *result, job.evaluation);
      judge(job.config.accept, report);
    };
    compare();
    // Layers that lose by themselves can still win between others.
    const bool slower = report.comparison.second_ms > report.comparison.first_ms;
    if (times && slower && layers.layers().size() > 1 &&
        std::any_of(layers.layers().begin(), layers.layers().end(),
                    [](const Layer& each) { return !each.quantized && each.quantized_us > 0; })) {
      const QuantReport decided = report;
      const std::vector<Layer> decided_layers = layers.layers();
      layers.layers() = all;
      report.quantized_bytes = write_model(job, source, quantize(layers, Integers::kPacked), paths);
      compare();
      if (!report.accepted && report.comparison.second_ms > decided.comparison.second_ms) {
        report = decided;
        layers.layers() = decided_layers;
        report.quantized_bytes =
            write_model(job, source, quantize(layers, Integers::kPacked), paths);
      }
    }
  }
  report.layers = layers.layers();
  const bool in_place = report.accepted || job.write_anyway;
  const fs::path folder = in_place ? paths.base : paths.base / "best";
  report.onnx_file = (folder / paths.file).lexically_normal().string();
  if (fs::exists(paths.partial / "model")) report.model_folder = (folder / "model").string();
  paths.publish(in_place);
  write_file_atomically(paths.report("report.json").string(), report_json(job, report));
  write_file_atomically(paths.report("report.html").string(), report_html(job, report));
  write_file_atomically(paths.report("layers.csv").string(), layers_csv(report));
  return report;
}

int64_t run_calibration(const QuantJob& given, const std::string& output,
                        const Progress& progress) {
  QuantJob job = given;
  const auto model = program::load_model(job.model, job.load);
  settle_data(job, *model);
  Source source = open_source(job);
  std::vector<std::string> warnings;
  CalibrationData data(*model, job.calibration, job.config.samples);
  scale_weights(job.config, *source.layers, data, source.traced.weight, progress, warnings);
  progress("calibrating");
  const Statistics statistics = collect_statistics(*source.layers, data, source.traced.weight);
  write_statistics(output, *source.layers, statistics);
  return statistics.samples;
}

std::vector<Sensitivity> run_sensitivity(const QuantJob& given, const Progress& progress) {
  QuantJob job = given;
  const auto model = program::load_model(job.model, job.load);
  settle_data(job, *model);
  Source source = open_source(job);
  Quantizable& layers = *source.layers;
  std::vector<std::string> warnings;
  prepare(job, layers, *model, source.traced.weight, progress, warnings);
  const std::vector<Array> inputs = some_inputs(job, *model, job.config.batch);
  const std::vector<Layer> all = layers.layers();
  const auto run = [&] {
    const QuantizedFunction quantized = quantize(layers, Integers::kBytes);
    FunctionRunner runner(quantized.function, [&](const std::string& name) {
      const auto found = quantized.weights.find(name);
      return found == quantized.weights.end() ? source.traced.weight(name) : found->second;
    });
    return runtime::copied(runner.run(inputs).at(0));  // the runner's memory goes with it
  };
  for (Layer& layer : layers.layers()) layer.quantized = false;
  const Array expected = run();
  std::vector<Sensitivity> out;
  for (size_t i = 0; i < all.size(); ++i) {
    Sensitivity each{all[i], 0};
    if (all[i].quantized) {
      progress(str("layer ", i + 1, " of ", all.size(), ": ", all[i].name));
      layers.layers()[i].quantized = true;
      Sqnr sqnr;
      sqnr.add(expected, run());
      each.output_sqnr_db = sqnr.decibels();
      layers.layers()[i].quantized = false;
    }
    out.push_back(each);
  }
  return out;
}

}  // namespace paddle::quant
