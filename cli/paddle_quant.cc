// paddle-quant MODEL: makes a model smaller and faster with integers, measures what that costs, and
// rejects a model that is slower or worse than the user accepts.

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/duration.h"
#include "base/interrupt.h"
#include "commands.h"
#include "common_options.h"
#include "quant/interruption.h"
#include "quant_gguf.h"
#include "quant_options.h"
#include "quant_tables.h"
#include "quant_weights.h"
#include "sections/sections.h"

namespace {

using namespace paddle;
using quant::fixed;

std::string default_output(const quant::QuantJob& job) {
  std::filesystem::path name = std::filesystem::path(job.model).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  if (name.filename() == "model" && name.has_parent_path()) name = name.parent_path();
  return "runs/" + name.stem().string() + "-" + job.config.scheme;
}

struct QuantizeOptions : cli::QuantOptions {
  bool dry_run = false, dump = false, no_check = false;
  std::string time_limit, format = "qdq";

  void add_to(cli::App& app) {
    QuantOptions::add_to(app);
    app.add_option("-o,--output", job.output,
                   "folder, or a file that ends in .onnx (default: runs/NAME-SCHEME)");
    app.add_option("--eval-data", evaluation,
                   "data to compare on (default: the run's validation data, else --data)");
    app.add_option("--target", target,
                   "cpu: layers that are slower in integers here stay float; onnxruntime: they are "
                   "not timed");
    app.add_option(
           "--format", format,
           "form of the ONNX file: qdq, qoperator (QLinearConv and the like) or nbits (weights "
           "of 4 bits in MatMulNBits)")
        ->check(cli::one_of({"qdq", "qoperator", "nbits"}));
    app.add_option(
           "--scales", scales,
           "scales of the blocks of a GGUF file: plain (the bytes of ggml's quantizer) or searched "
           "(least squared error)")
        ->check(cli::one_of({"plain", "searched"}));
    app.add_option("--statistics", statistics,
                   "file of histograms: read if it matches the model, else written");
    app.add_option("--max-drop", drop,
                   "largest drop of the accuracy, such as 0.5%; else exit code 1");
    app.add_option("--accept", accept,
                   "acceptance limit: NAME=LIMIT with a metric of the model's config or "
                   "its loss (accuracy=0.5%, perplexity=2%, error.rise=0.3), or sqnr_db, speedup, "
                   "size, confidence; repeatable")
        ->allow_extra_args(false);
    app.add_flag("--no-check", no_check, "do not compare and time the result");
    app.add_flag("--write-anyway", job.write_anyway,
                 "exit with 0 and write the output even if the model is not accepted");
    app.add_flag("--overwrite", job.overwrite, "replace an existing output");
    app.add_option("--time-limit", time_limit,
                   "time limit, after which the model is written with the choices so far: seconds, "
                   "'30m' or '1h30m'");
    app.add_flag("--resume", job.resume,
                 "continue an interrupted call in its output, with its statistics and trials");
    app.add_flag("--dry-run", dry_run, "print the layers and what would happen to them");
    app.add_flag("--dump-config", dump, "print the resolved configuration");
  }
};

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
  if (cli::writes_gguf(options)) return cli::run_gguf(options, options.dry_run);
  quant::QuantJob& job = options.read("paddle quant");
  job.check = !options.no_check;
  job.format = *onnx::parse_format(options.format);
  if (!options.time_limit.empty()) {
    job.time_limit = parse_duration(options.time_limit);
    if (job.time_limit.value_or(0) <= 0)
      fail(ErrorCode::kUsage,
           "--time-limit: expected seconds or a time such as '30m' or '1h30m', found '",
           options.time_limit, "'");
  }
  if (options.dump) {
    cli::print(config::dump_yaml(job.config.document));
    return 0;
  }
  if (options.dry_run) {
    cli::print_layers(quant::plan_layers(job), false);
    return 0;
  }
  if (job.output.empty()) job.output = job.config.output;
  if (job.output.empty()) job.output = default_output(job);
  quant::QuantReport report;
  if (const int status =
          resumable([&] { report = quant::run_quantization(job, options.progress()); });
      status != 0)
    return status;
  for (const std::string& line : report.warnings) cli::print_warning(line);
  if (options.json) {
    cli::print(nlohmann::ordered_json::parse(quant::report_json(job, report)).dump() + "\n");
  } else {
    cli::print_layers(report.layers, true);
    cli::print(report.onnx_file + "\n");
    if (!report.model_folder.empty()) cli::print(report.model_folder + "\n");
    cli::print(quant::summary(job, report) + "\n");
  }
  if (report.accepted) return 0;
  if (job.write_anyway) {
    cli::print_warning("not accepted: " + report.reason);
    return 0;
  }
  cli::print_error("error: not accepted: " + report.reason + "; the model is in " +
                   report.onnx_file + " (--write-anyway takes it)");
  return static_cast<int>(ErrorCode::kDifference);
}

int run_calibrate(cli::QuantOptions& options, const std::string& output) {
  const quant::QuantJob& job = options.read("paddle quant calibrate");
  if (!job.resume) cli::check_output(output, job.overwrite);
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

int run_sensitivity(cli::QuantOptions& options, quant::Sensitivity by) {
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
    cli::print(cli::padded(printable(each.name), width + 2) + cli::padded(value, 12) + each.op +
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
  for (const std::string& model : models) cli::reject_language_model(model, "compare");
  const auto first = program::load_model(models[0], {});
  const auto second = program::load_model(models[1], {});
  const quant::Comparison found =
      quant::compare_models(*first, *second, cli::quant_data_options(data, batch));
  nlohmann::ordered_json line = {{"samples", found.samples}};
  for (const quant::Metric& each : found.metrics) {
    if (!json) cli::print_metric(each);
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
    cli::print(cli::padded("latency", 18) + fixed(found.first_ms, 3) + " → " +
               fixed(found.second_ms, 3) + " ms\n" + cli::padded("samples", 18) +
               str(found.samples, "\n"));
  return 0;
}

int run_quant(int argc, char** argv) {
  cli::App app{
      "Quantizes a model, compares it with the float model, times both, and rejects a result that "
      "is slower or worse than you accept."};
  app.footer(
      "MODEL is a run folder, a checkpoint, a model file or an ONNX file. The result is a QDQ ONNX "
      "file and, for runs, a model folder that paddle-infer loads. A Hugging Face folder or a GGUF "
      "file becomes a GGUF file.");
  QuantizeOptions quantize;
  quantize.add_to(app);
  cli::QuantOptions calibrate, sensitivity;
  CompareOptions compare;
  std::string statistics = "statistics.safetensors";
  cli::App* const calibrate_app =
      app.add_subcommand("calibrate", "collect the statistics of layer inputs for later calls");
  calibrate.add_to(*calibrate_app);
  calibrate_app->add_option("-o,--output", statistics,
                            "file to write (default: statistics.safetensors)");
  cli::add_overwrite(*calibrate_app, calibrate.job.overwrite);
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
  cli::QuantTables tables(app);
  cli::PruneOptions prune;
  cli::App* const prune_app = app.add_subcommand(
      "prune", "set two of every four weights to zero; training with train.keep_zeros keeps them");
  prune.add_to(*prune_app);
  cli::MergeOptions merge;
  cli::App* const merge_app =
      app.add_subcommand("merge", "add a LoRA adapter to the weights of a model");
  merge.add_to(*merge_app);
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (tables.parsed()) return tables.run();
  if (prune_app->parsed()) return cli::run_prune(prune);
  if (merge_app->parsed()) return cli::run_merge(merge);
  if (calibrate_app->parsed()) return run_calibrate(calibrate, statistics);
  if (sensitivity_app->parsed()) return run_sensitivity(sensitivity, quant::parse_sensitivity(by));
  if (compare_app->parsed()) return run_compare(compare);
  return run_quantize(quantize);
}

}  // namespace

namespace paddle::cli {

int quant_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_quant(argc, argv);
  });
}

}  // namespace paddle::cli
