// paddle-quant MODEL: makes a model smaller and faster with integers, measures what that costs, and
// refuses a model that is slower or worse than the user accepts.

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/duration.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "common.h"
#include "common_dims.h"
#include "common_options.h"
#include "common_progress.h"
#include "formats/gguf/quantize.h"
#include "formats/gguf/reader.h"
#include "llm/language_model.h"
#include "quant/gguf_job.h"
#include "quant/interruption.h"
#include "quant/merge_lora.h"
#include "quant/prune.h"
#include "quant/report.h"
#include "sections/sections.h"
#include "train/config.h"

namespace {

using namespace paddle;

infer::InputOptions data_options(const std::vector<std::string>& words, int64_t batch) {
  infer::InputOptions out;
  out.batch = batch;
  if (words.size() == 1 && !file_exists(words[0]) && !is_directory(words[0]))
    out.data = words[0];
  else if (words.size() == 1 && (words[0].ends_with(".yaml") || words[0].ends_with(".yml")))
    out.data = words[0] + ":train";
  else
    out.paths = words;
  return out;
}

using quant::fixed;

std::string padded(const std::string& text, size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

void print_layers(const std::vector<quant::Layer>& layers, bool measured) {
  size_t name = 5, decision = 4;
  for (const auto& each : layers) {
    name = std::max(name, each.name.size());
    decision = std::max(decision, each.decision().size());
  }
  for (const auto& each : layers) {
    std::string line = padded(each.name, name + 2) + padded(each.decision(), decision + 2);
    if (measured) line += padded(each.sqnr_db > 0 ? fixed(each.sqnr_db, 1) + " dB" : "", 10);
    if (each.float_us > 0)
      line += padded(fixed(each.float_us, 1) + " → " + fixed(each.quantized_us, 1) + " us", 22);
    line += each.op;
    if (!each.why.empty()) line += "  (" + each.why + ")";
    cli::print(line + "\n");
  }
}

/// `--accept KEY=VALUE` as a setting: a key of `accept`, else a metric of the model's config.
std::string acceptance_setting(const std::string& text) {
  const size_t end = text.find('=');
  if (end == std::string::npos || end == 0 || end + 1 == text.size())
    fail(ErrorCode::kUsage, "--accept: expected NAME=LIMIT such as accuracy=0.5%, found '", text,
         "'");
  const std::vector<std::string> keys = quant::accept_keys();
  const std::string key = text.substr(0, text.find_first_of(".="));
  const bool is_key = std::find(keys.begin(), keys.end(), key) != keys.end();
  return (is_key ? "quant.accept." : "quant.accept.metrics.") + text;
}

/// Shows the stages of a job and the time left on standard error, unless it ends with JSON.
quant::Progress reporter(bool json) {
  if (json) return [](const quant::Step&) {};
  return [shown = std::make_shared<cli::StepProgress>()](const quant::Step& step) {
    shown->show(step.what, step.done, step.total);
  };
}

/// The program as files that it writes name it.
std::string producer() {
  const std::string version = cli::version_text();
  return "paddle " + version.substr(0, version.find('\n'));
}

void print_metric(const quant::Metric& metric) {
  if (metric.name == "output_sqnr_db")
    cli::print(padded("signal-to-noise", 18) + fixed(metric.quantized, 2) + " dB\n");
  else if (metric.is_share)
    cli::print(padded(metric.name, 18) + fixed(100 * metric.float_value, 2) + "% → " +
               fixed(100 * metric.quantized, 2) + "%\n");
  else
    cli::print(padded(metric.name, 18) + quant::short_number(metric.float_value) + " → " +
               quant::short_number(metric.quantized) + "\n");
}

/// kUsage for a language model in other tools' files, which `command` does not take: only whole
/// files of other number formats are made of them.
void refuse_language_model(const std::string& model, const char* command) {
  if (!llm::is_language_model(model)) return;
  fail(ErrorCode::kUsage, model, ": is a ",
       is_directory(model) ? "Hugging Face folder" : "GGUF file", ", which ", command,
       " does not take; expected a run, a model file or an ONNX file ('paddle quant ", model,
       " --scheme TYPE' writes it as a GGUF file: ", join(quant::gguf_scheme_names(), ", "), ")");
}

/// The options of all commands.
struct Options {
  std::vector<std::string> arguments, data, evaluation, keep_float, accept, dims;
  std::string file, scheme, observer, drop, target, statistics, scales = "plain";
  int64_t samples = 0, batch = 0;
  double percentile = 0;
  bool json = false;
  quant::QuantJob job;

  void add_to(cli::App& app) {
    app.add_option("MODEL", arguments, "the model, then key=value of the configuration");
    app.add_option("-c,--config", file, "configuration with a section 'quant'");
    app.add_option(
        "--scheme", scheme,
        "number format: " + join(quant::scheme_names(), ", ") +
            "; of a Hugging Face folder or a GGUF file: " + join(quant::gguf_scheme_names(), ", "));
    app.add_option("--data", data,
                   "calibration data: train, valid, CONFIG.yaml[:part], a folder or files "
                   "(default: the run's training data)");
    app.add_option("--samples", samples, "samples for calibration (default: 256)")
        ->check(cli::in_range(int64_t{1}, int64_t{1} << 32));
    app.add_option("--batch", batch, "samples at a time (default: 8)")
        ->check(cli::in_range(int64_t{1}, int64_t{1} << 20));
    app.add_option("--observer", observer,
                   "how ranges are chosen: " + join(quant::range_method_names(), ", "));
    app.add_option("--percentile", percentile, "for the percentile observer")
        ->check(cli::in_range(50.0, 100.0));
    app.add_option("--keep-float", keep_float, "layers that stay float (pattern)")
        ->allow_extra_args(false);
    app.add_option("--weights", job.load.weights, "weights of a model file (safetensors)");
    app.add_option("--function", job.load.function, "an entry of a model file (default: model)");
    app.add_option("--seed", job.load.seed, "of random weights");
    app.add_option("--dim", dims,
                   "NAME=SIZE…: fix symbolic dims of the inputs; others stay symbolic in the file");
    app.add_flag("--json", json, "one line of JSON at the end");
  }

  /// The job of a command line; options are overrides of the configuration.
  quant::QuantJob& read(const char* command) {
    std::vector<std::string> overrides;
    for (std::string& each : cli::take_arguments(dims)) arguments.push_back(std::move(each));
    job.dims = cli::parse_dims(dims);
    // A list of files ends where settings begin.
    for (std::vector<std::string>* words : {&data, &evaluation})
      for (std::string& each : cli::take_overrides(*words))
        (file_exists(each) ? *words : arguments).push_back(std::move(each));
    for (const std::string& each : cli::take_overrides(arguments))
      (each.starts_with("params.") ? job.load.overrides : overrides).push_back(each);
    if (arguments.empty()) fail(ErrorCode::kUsage, "no model is given (see ", command, " --help)");
    if (arguments.size() > 1)
      fail(ErrorCode::kUsage, "one model is expected, found '", arguments[0], "' and '",
           arguments[1], "'");
    job.model = arguments[0];
    refuse_language_model(job.model, command);
    if (!scheme.empty()) {
      auto names = quant::scheme_names();
      for (const std::string& each : formats::gguf::block_type_names()) names.push_back(each);
      if (std::find(names.begin(), names.end(), scheme) == names.end())
        fail(ErrorCode::kUsage, "'", scheme, "' is not a scheme", did_you_mean(scheme, names),
             "; schemes are ", join(names, ", "));
      overrides.push_back("quant.scheme=" + scheme);
    }
    if (!observer.empty()) {
      quant::parse_range_method(observer);
      overrides.push_back("quant.calibrate.observer=" + observer);
    }
    if (samples > 0) overrides.push_back(str("quant.calibrate.samples=", samples));
    if (batch > 0) overrides.push_back(str("quant.calibrate.batch_size=", batch));
    if (percentile > 0)
      overrides.push_back("quant.calibrate.percentile=" + format_double(percentile));
    if (!target.empty()) overrides.push_back("quant.target=" + target);
    if (!statistics.empty()) overrides.push_back("quant.calibrate.statistics=" + statistics);
    if (!drop.empty()) overrides.push_back("quant.accept.accuracy=" + drop);
    std::vector<std::string> others;
    for (const auto& key : train::run_schema().keys()) others.push_back(key.name);
    for (const std::string& each : accept) overrides.push_back(acceptance_setting(each));
    job.config = quant::read_quant_config(file, overrides, others);
    for (const std::string& pattern : keep_float) {
      quant::LayerRule rule;
      rule.match = {pattern};
      rule.keep_float = true;
      rule.option = "--keep-float " + pattern;
      job.config.layers.push_back(rule);
    }
    if (data.empty() && !job.config.data.empty()) data = {job.config.data};
    if (evaluation.empty() && !job.config.eval_data.empty()) evaluation = {job.config.eval_data};
    if (!data.empty()) job.calibration = data_options(data, job.config.batch);
    if (!evaluation.empty()) job.evaluation = data_options(evaluation, job.config.batch);
    job.calibration.batch = job.evaluation.batch = job.config.batch;
    job.producer = producer();
    return job;
  }

  quant::Progress progress() const { return reporter(json); }
};

std::string default_output(const quant::QuantJob& job) {
  std::filesystem::path name = std::filesystem::path(job.model).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  if (name.filename() == "model" && name.has_parent_path()) name = name.parent_path();
  return "runs/" + name.stem().string() + "-" + job.config.scheme;
}

struct QuantizeOptions : Options {
  bool dry_run = false, dump = false, no_check = false;
  std::string time_limit, format = "qdq";

  void add_to(cli::App& app) {
    Options::add_to(app);
    app.add_option("-o,--output", job.output,
                   "folder, or a file that ends in .onnx (default: runs/NAME-SCHEME)");
    app.add_option("--eval-data", evaluation,
                   "data to compare on (default: the run's validation data, else --data)");
    app.add_option("--target", target,
                   "cpu: layers that are slower in integers here stay float; onnxruntime: they are "
                   "not timed");
    app.add_option("--format", format,
                   "of the ONNX file: qdq, qoperator (QLinearConv and the like) or nbits (weights "
                   "of 4 bits in MatMulNBits)")
        ->check(cli::one_of({"qdq", "qoperator", "nbits"}));
    app.add_option(
           "--scales", scales,
           "of the blocks of a GGUF file: plain (the bytes of ggml's quantizer) or searched "
           "(least squared error)")
        ->check(cli::one_of({"plain", "searched"}));
    app.add_option("--statistics", statistics,
                   "file of histograms: read if it fits the model, else written");
    app.add_option("--max-drop", drop,
                   "largest drop of the accuracy, such as 0.5%; else exit code 1");
    app.add_option("--accept", accept,
                   "what the model must reach: NAME=LIMIT with a metric of the model's config or "
                   "its loss (accuracy=0.5%, perplexity=2%, error.rise=0.3), or sqnr_db, speedup, "
                   "size, confidence; repeatable")
        ->allow_extra_args(false);
    app.add_flag("--no-check", no_check, "do not compare and time the result");
    app.add_flag("--write-anyway", job.write_anyway,
                 "exit 0 and write in place, although the model is not accepted");
    app.add_flag("--overwrite", job.overwrite, "replace what is in the output");
    app.add_option("--time-limit", time_limit,
                   "time after which the model is written with what has been chosen: seconds, "
                   "'30m' or '1h30m'");
    app.add_flag("--resume", job.resume,
                 "continue an interrupted call in its output, with its statistics and trials");
    app.add_flag("--dry-run", dry_run, "print the layers and what would happen to them");
    app.add_flag("--dump-config", dump, "print the resolved configuration");
  }
};

/// Whether a language model becomes a GGUF file.
bool writes_gguf(const QuantizeOptions& options) {
  if (formats::gguf::find_block_type(options.scheme)) return true;
  return (options.scheme == "float16" || options.scheme == "bf16") && !options.arguments.empty() &&
         llm::is_language_model(options.arguments[0]);
}

/// The path beside the model.
std::string gguf_output(const quant::GgufJob& job) {
  std::filesystem::path name = std::filesystem::path(job.model).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  const std::string stem = (is_directory(job.model) ? name.filename() : name.stem()).string();
  return (name.parent_path() / (stem + "-" + job.type + ".gguf")).string();
}

/// A Hugging Face folder or a GGUF file to a GGUF file of another type.
int run_gguf(const QuantizeOptions& options) {
  if (options.arguments.size() != 1)
    fail(ErrorCode::kUsage, "one Hugging Face folder or GGUF file is expected with --scheme ",
         options.scheme);
  quant::GgufJob job{options.arguments[0],
                     options.job.output,
                     options.scheme,
                     options.keep_float,
                     options.job.overwrite,
                     options.scales == "searched" ? formats::gguf::BlockScales::kSearched
                                                  : formats::gguf::BlockScales::kPlain};
  if (!llm::is_language_model(job.model))
    fail(ErrorCode::kUsage, job.model, ": --scheme ", job.type,
         " needs a Hugging Face folder or a GGUF file");
  if (job.output.empty()) job.output = gguf_output(job);
  if (!job.output.ends_with(".gguf"))
    fail(ErrorCode::kUsage, "--output: expected a name that ends in .gguf, found '", job.output,
         "'");
  const auto report = quant::quantize_gguf(job, options.dry_run, options.progress());
  for (const std::string& note : report.notes) cli::print_error("note: " + note);
  if (options.json) {
    cli::print(quant::gguf_report_json(job, report) + "\n");
    return 0;
  }
  size_t width = 0;
  for (const auto& each : report.tensors) width = std::max(width, each.name.size());
  for (const auto& each : report.tensors) {
    std::string line = padded(each.name, width + 2) + each.before;
    if (each.before != each.after) line += " → " + each.after;
    if (each.sqnr_db > 0) line += "  " + fixed(each.sqnr_db, 1) + " dB";
    if (!each.why.empty()) line += "  (" + each.why + ")";
    cli::print(line + "\n");
  }
  const double share = 100 * static_cast<double>(report.bytes_after) /
                       static_cast<double>(std::max<uint64_t>(1, report.bytes_before));
  cli::print((options.dry_run ? "" : job.output + "\n") + job.type + ": " + fixed(share, 1) +
             "% of the size\n");
  return 0;
}

/// Runs what Ctrl-C ends between two steps; then the status of the signal, else 0.
int resumable(const std::function<void()>& code) {
  watch_for_interrupts();
  try {
    code();
  } catch (const quant::Interrupted&) {
    cli::print_error("interrupted; the same command with --resume continues");
    return 128 + pending_interrupt();
  }
  return 0;
}

int run_quantize(QuantizeOptions& options) {
  if (writes_gguf(options)) return run_gguf(options);
  quant::QuantJob& job = options.read("paddle quant");
  job.check = !options.no_check;
  job.format = *onnx::parse_format(options.format);
  if (!options.time_limit.empty()) {
    job.time_limit = parse_duration(options.time_limit);
    if (!job.time_limit)
      fail(ErrorCode::kUsage,
           "--time-limit: expected seconds or a time such as '30m' or '1h30m', found '",
           options.time_limit, "'");
  }
  if (options.dump) {
    cli::print(config::dump_yaml(job.config.document));
    return 0;
  }
  if (options.dry_run) {
    print_layers(quant::plan_layers(job), false);
    return 0;
  }
  if (job.output.empty()) job.output = job.config.output;
  if (job.output.empty()) job.output = default_output(job);
  quant::QuantReport report;
  if (const int status =
          resumable([&] { report = quant::run_quantization(job, options.progress()); });
      status != 0)
    return status;
  for (const std::string& line : report.warnings) cli::print_error("warning: " + line);
  if (options.json) {
    cli::print(nlohmann::ordered_json::parse(quant::report_json(job, report)).dump() + "\n");
  } else {
    print_layers(report.layers, true);
    cli::print(report.onnx_file + "\n");
    if (!report.model_folder.empty()) cli::print(report.model_folder + "\n");
    cli::print(quant::summary(job, report) + "\n");
  }
  if (report.accepted) return 0;
  if (job.write_anyway) {
    cli::print_error("warning: not accepted: " + report.reason);
    return 0;
  }
  cli::print_error("error: not accepted: " + report.reason + "; the model is in " +
                   report.onnx_file + " (--write-anyway takes it)");
  return static_cast<int>(ErrorCode::kDifference);
}

int run_calibrate(Options& options, const std::string& output) {
  const quant::QuantJob& job = options.read("paddle quant calibrate");
  int64_t samples = 0;
  if (const int status =
          resumable([&] { samples = quant::run_calibration(job, output, options.progress()); });
      status != 0)
    return status;
  if (options.json)
    cli::print(nlohmann::ordered_json{{"file", output}, {"samples", samples}}.dump() + "\n");
  else
    cli::print(str(output, ": statistics of ", samples, " samples\n"));
  return 0;
}

int run_sensitivity(Options& options, quant::Sensitivity by) {
  const quant::QuantJob& job = options.read("paddle quant sensitivity");
  const bool by_loss = by == quant::Sensitivity::kGradient;
  auto found = quant::run_sensitivity(job, by, options.progress());
  if (options.json) {
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    for (auto& each : found) {
      nlohmann::ordered_json layer = {{"name", each.name}, {"op", each.op}};
      if (!each.quantized)
        layer["why"] = each.why;
      else if (const auto& value = each.sensitivity(by))
        layer[by_loss ? "loss_change" : "output_sqnr_db"] = *value;
      layers.push_back(layer);
    }
    cli::print(nlohmann::ordered_json{{"layers", layers}}.dump() + "\n");
    return 0;
  }
  // The most sensitive layer first.
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    return a.quantized != b.quantized ? a.quantized : a.is_more_sensitive(b, by);
  });
  size_t width = 5;
  for (const auto& each : found) width = std::max(width, each.name.size());
  for (auto& each : found) {
    std::string value = each.quantized ? "unknown" : "float";
    if (const auto& known = each.sensitivity(by); each.quantized && known)
      value = by_loss ? quant::short_number(*known) : fixed(*known, 1) + " dB";
    cli::print(padded(each.name, width + 2) + padded(value, 12) + each.op +
               (each.why.empty() ? "" : "  (" + each.why + ")") + "\n");
  }
  return 0;
}

struct CompareOptions {
  std::vector<std::string> models, data;
  int64_t batch = 8;
  bool json = false;

  void add_to(cli::App& app) {
    app.add_option("MODELS", models, "the reference, then the model to compare")
        ->expected(2)
        ->required();
    app.add_option("--data", data, "train, valid, CONFIG.yaml[:part], a folder or files")
        ->required();
    app.add_option("--batch", batch, "samples at a time")
        ->check(cli::in_range(int64_t{1}, int64_t{1} << 20));
    app.add_flag("--json", json, "one line of JSON at the end");
  }
};

int run_compare(const CompareOptions& options) {
  const auto& [models, data, batch, json] = options;
  for (const std::string& model : models) refuse_language_model(model, "compare");
  const auto first = program::load_model(models[0], {});
  const auto second = program::load_model(models[1], {});
  const quant::Comparison found = quant::compare_models(*first, *second, data_options(data, batch));
  nlohmann::ordered_json line = {{"samples", found.samples}};
  for (const quant::Metric& each : found.metrics) {
    if (!json) print_metric(each);
    if (each.name == "output_sqnr_db") {
      line[each.name] = each.quantized;
      continue;
    }
    nlohmann::ordered_json value = {{"first", each.float_value}, {"second", each.quantized}};
    if (each.confidence95) value["confidence95"] = *each.confidence95;
    line[each.name] = value;
  }
  line["latency_ms"] = {{"first", found.first_ms}, {"second", found.second_ms}};
  if (json)
    cli::print(line.dump() + "\n");
  else
    cli::print(padded("latency", 18) + fixed(found.first_ms, 3) + " → " +
               fixed(found.second_ms, 3) + " ms\n" + padded("samples", 18) +
               str(found.samples, "\n"));
  return 0;
}

struct PruneOptions {
  quant::PruneJob job;
  std::string kind = "2:4", by = "magnitude";
  std::vector<std::string> data, evaluation;
  bool no_check = false, json = false;

  void add_to(cli::App& app) {
    app.add_option("MODEL", job.model, "a run, a model file or an ONNX file")->required();
    app.add_option("-o,--output", job.output,
                   "folder with the pruned model, or a file that ends in .onnx")
        ->required();
    app.add_option("--kind", kind, "pattern of zeros (default: 2:4)")->check(cli::one_of({"2:4"}));
    app.add_option("--by", by,
                   "what goes: magnitude, the smallest weights (default); wanda, those "
                   "that contribute least")
        ->check(cli::one_of({"magnitude", "wanda"}));
    app.add_option("--match", job.match, "only these layers (pattern)")->allow_extra_args(false);
    app.add_option("--data", data, "data for wanda (default: the run's training data)");
    app.add_option("--eval-data", evaluation,
                   "data to compare on (default: the run's validation data, else --data)");
    app.add_option("--samples", job.samples, "samples for wanda (default: 256)")
        ->check(cli::in_range(int64_t{1}, int64_t{1} << 32));
    app.add_option("--weights", job.load.weights, "weights of a model file (safetensors)");
    app.add_flag("--no-check", no_check, "do not compare the result");
    app.add_flag("--overwrite", job.overwrite, "replace what is in the output");
    app.add_flag("--json", json, "one line of JSON at the end");
  }
};

int run_prune(PruneOptions& options) {
  quant::PruneJob& job = options.job;
  refuse_language_model(job.model, "prune");
  constexpr int64_t kBatch = 8;
  if (options.by == "wanda") job.rule = quant::PruneRule::kWanda;
  if (!options.data.empty()) job.calibration = data_options(options.data, kBatch);
  if (!options.evaluation.empty()) job.evaluation = data_options(options.evaluation, kBatch);
  job.calibration.batch = job.evaluation.batch = kBatch;
  job.check = !options.no_check;
  job.producer = producer();
  const quant::PruneReport report = quant::prune(job, reporter(options.json));
  if (options.json) {
    cli::print(quant::prune_json(job, report) + "\n");
    return 0;
  }
  size_t width = 5;
  for (const auto& each : report.layers) width = std::max(width, each.name.size());
  for (const auto& each : report.layers)
    cli::print(padded(each.name, width + 2) +
               padded(each.pruned ? fixed(100 * each.zeros, 1) + "% zero" : "whole", 13) +
               (each.pruned ? "relative error " + fixed(each.error, 3) + "  " : "") + each.op +
               (each.why.empty() ? "" : "  (" + each.why + ")") + "\n");
  for (const quant::Metric& each : report.comparison.metrics) print_metric(each);
  cli::print(report.file + "\n");
  return 0;
}

struct MergeOptions {
  quant::MergeJob job;
  double scale = 0;
  cli::Option* scale_option = nullptr;
  bool json = false;

  void add_to(cli::App& app) {
    app.add_option("MODEL", job.model, "a folder with safetensors files, or one such file")
        ->required();
    app.add_option("--lora", job.adapter,
                   "folder with adapter_config.json and adapter_model.safetensors")
        ->required();
    app.add_option("-o,--output", job.output, "a folder, or a file if MODEL is one")->required();
    scale_option =
        app.add_option("--scale", scale, "factor on the adapter, in place of its alpha / rank");
    app.add_flag("--overwrite", job.overwrite, "replace what is in the output");
    app.add_flag("--json", json, "one line of JSON at the end");
  }
};

int run_merge(MergeOptions& options) {
  quant::MergeJob& job = options.job;
  if (options.scale_option->count() > 0) job.scale = options.scale;
  const quant::MergeReport report = quant::merge_lora(job, reporter(options.json));
  // A small change can vanish in 16 bits.
  constexpr double kMostRounding = 0.1;
  for (const auto& each : report.weights)
    if (each.rounding > kMostRounding)
      cli::print_error("warning: " + each.name + ": storing it loses " +
                       fixed(100 * each.rounding, 1) + "% of what the adapter adds");
  if (options.json) {
    cli::print(quant::merge_json(job, report) + "\n");
    return 0;
  }
  size_t width = 6;
  for (const auto& each : report.weights) width = std::max(width, each.name.size());
  for (const auto& each : report.weights)
    cli::print(padded(each.name, width + 2) +
               (each.replaced
                    ? "replaced"
                    : str("rank ", each.rank, "  changes by ", fixed(100 * each.change, 2), "%")) +
               "\n");
  cli::print(job.output + "\n");
  return 0;
}

int run(int argc, char** argv) {
  cli::App app{
      "Quantizes a model, compares it with the float model, times both, and refuses a result that "
      "is slower or worse than you accept."};
  app.footer(
      "MODEL is a run folder, a checkpoint, a model file or an ONNX file. The result is a QDQ ONNX "
      "file and, for runs, a model folder that paddle-infer loads. A Hugging Face folder or a GGUF "
      "file becomes a GGUF file.");
  QuantizeOptions quantize;
  quantize.add_to(app);
  Options calibrate, sensitivity;
  CompareOptions compare;
  std::string statistics = "statistics.safetensors";
  cli::App* const calibrate_app =
      app.add_subcommand("calibrate", "collect the statistics of layer inputs for later calls");
  calibrate.add_to(*calibrate_app);
  calibrate_app->add_option("-o,--output", statistics,
                            "file to write (default: statistics.safetensors)");
  calibrate_app->add_flag("--resume", calibrate.job.resume,
                          "continue an interrupted call, with the samples that it has seen");
  cli::App* const sensitivity_app = app.add_subcommand(
      "sensitivity", "quantize one layer at a time and print the noise of the model's output");
  sensitivity.add_to(*sensitivity_app);
  std::string by = "sqnr";
  sensitivity_app
      ->add_option("--by", by,
                   "sqnr: the noise of the output (default); gradient: the change of the run's "
                   "loss, to first order, in one pass over the data")
      ->check(cli::one_of({"sqnr", "gradient"}));
  cli::App* const compare_app = app.add_subcommand(
      "compare", "compare two models on the same data: noise, agreement, accuracy, latency");
  compare.add_to(*compare_app);
  PruneOptions prune;
  cli::App* const prune_app = app.add_subcommand(
      "prune", "set two of every four weights to zero; training with train.keep_zeros keeps them");
  prune.add_to(*prune_app);
  MergeOptions merge;
  cli::App* const merge_app =
      app.add_subcommand("merge", "add a LoRA adapter to the weights of a model");
  merge.add_to(*merge_app);
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (prune_app->parsed()) return run_prune(prune);
  if (merge_app->parsed()) return run_merge(merge);
  if (calibrate_app->parsed()) return run_calibrate(calibrate, statistics);
  if (sensitivity_app->parsed()) return run_sensitivity(sensitivity, quant::parse_sensitivity(by));
  if (compare_app->parsed()) return run_compare(compare);
  return run_quantize(quantize);
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] {
    paddle::register_sections();
    return run(argc, argv);
  });
}
