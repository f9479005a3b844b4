// paddle-quant MODEL: makes a model smaller and faster with int8, and measures what that costs.

#include <filesystem>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "common.h"
#include "quant/quant_job.h"

namespace {

using namespace paddle;

/// "0.5%" or "0.005".
double parse_share(const std::string& text) {
  const bool percent = text.ends_with('%');
  const std::string number = percent ? text.substr(0, text.size() - 1) : text;
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(value >= 0))
    fail(ErrorCode::kUsage, "--max-drop: expected a share such as 0.5%, found '", text, "'");
  return percent ? value / 100 : value;
}

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

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void print_layers(const std::vector<quant::Layer>& layers, bool measured) {
  size_t width = 5;
  for (const auto& each : layers) width = std::max(width, each.name.size());
  for (const auto& each : layers) {
    std::string line = each.name + std::string(width - each.name.size() + 2, ' ');
    line += each.quantized ? "int8   " : "float  ";
    if (measured) line += fixed(each.sqnr_db, 1) + " dB  ";
    line += each.op;
    if (!each.why.empty()) line += "  (" + each.why + ")";
    cli::print(line + "\n");
  }
}

std::string summary(const quant::QuantReport& report) {
  std::string out = "int8: ";
  for (const auto& metric : report.metrics) {
    if (metric.name == "accuracy")
      out += str("accuracy ", fixed(100 * metric.float_value, 2), " → ",
                 fixed(100 * metric.quantized, 2), " (±", fixed(100 * *metric.confidence95, 2),
                 ") · ");
    else if (metric.name == "output_sqnr_db")
      out += fixed(metric.quantized, 1) + " dB · ";
  }
  const auto count = static_cast<int64_t>(report.layers.size());
  out +=
      str(fixed(report.float_ms / report.quantized_ms, 2), "× as fast (batch 1) · ",
          fixed(static_cast<double>(report.float_bytes) /
                    static_cast<double>(std::max<int64_t>(1, report.quantized_bytes)),
                2),
          "× smaller · ", count - report.quantized_layers(), " of ", count, " layers kept float");
  return out;
}

int run(int argc, char** argv) {
  CLI::App app{"Quantizes a model to int8, compares it with the float model and times both."};
  app.footer(
      "MODEL is a run folder, a checkpoint, a model file or an ONNX file. The result is a QDQ ONNX "
      "file "
      "and, for runs, a model folder that paddle-infer loads.");
  std::vector<std::string> arguments, data, evaluation;
  std::string drop, scheme = "int8";
  int64_t batch = 8;
  quant::QuantJob job;
  bool dry_run = false, json = false;
  app.add_option("MODEL", arguments, "the model, then params.x=value of a model file");
  app.add_option("-o,--output", job.output,
                 "folder, or a file that ends in .onnx (default: "
                 "runs/NAME-int8)");
  app.add_option("--scheme", scheme, "number format")->check(CLI::IsMember({"int8"}));
  app.add_option("--data", data,
                 "calibration data: train, valid, CONFIG.yaml[:part], a folder or files "
                 "(default: the run's training data)");
  app.add_option("--eval-data", evaluation,
                 "data to compare on (default: the run's validation data, else --data)");
  app.add_option("--samples", job.samples, "samples for calibration")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  app.add_option("--batch", batch, "samples at a time")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  app.add_option("--observer", job.method_name,
                 "how ranges are chosen: min_max, percentile, mse, kl");
  app.add_option("--percentile", job.percentile, "for the percentile observer")
      ->check(CLI::Range(50.0, 100.0));
  app.add_option("--keep-float", job.keep_float, "layers that stay float (pattern)")
      ->allow_extra_args(false);
  app.add_option("--max-drop", drop,
                 "largest drop of the accuracy, such as 0.5%; else exit code 1");
  app.add_option("--weights", job.load.weights, "weights of a model file (safetensors)");
  app.add_option("--function", job.load.function, "an entry of a model file (default: model)");
  app.add_option("--seed", job.load.seed, "of random weights");
  app.add_flag("--overwrite", job.overwrite, "replace what is in the output");
  app.add_flag("--dry-run", dry_run, "print the layers and what would happen to them");
  app.add_flag("--json", json, "the report on one line at the end");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  job.load.overrides = cli::take_overrides(arguments);
  if (arguments.empty()) fail(ErrorCode::kUsage, "no model is given (see paddle-quant --help)");
  if (arguments.size() > 1)
    fail(ErrorCode::kUsage, "one model is expected, found '", arguments[0], "' and '", arguments[1],
         "'");
  job.model = arguments[0];
  job.method = quant::parse_range_method(job.method_name);
  if (!drop.empty()) job.max_drop = parse_share(drop);
  if (!data.empty()) job.calibration = data_options(data, batch);
  if (!evaluation.empty()) job.evaluation = data_options(evaluation, batch);
  job.calibration.batch = job.evaluation.batch = batch;
  job.producer = "paddle " + cli::version_text().substr(0, cli::version_text().find('\n'));
  if (dry_run) {
    print_layers(quant::plan_layers(job), false);
    return 0;
  }
  if (job.output.empty()) {
    std::filesystem::path name = std::filesystem::path(job.model).lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    if (name.filename() == "model" && name.has_parent_path()) name = name.parent_path();
    job.output = "runs/" + name.stem().string() + "-int8";
  }
  const auto progress = [&](const std::string& line) {
    if (!json) cli::print_error(line);
  };
  const quant::QuantReport report = quant::run_quantization(job, progress);
  for (const std::string& line : report.warnings) cli::print_error("warning: " + line);
  if (json) {
    std::string line = quant::report_json(job, report);
    std::erase(line, '\n');
    cli::print(line + "\n");
  } else {
    print_layers(report.layers, true);
    cli::print(report.onnx_file + "\n");
    if (!report.model_folder.empty()) cli::print(report.model_folder + "\n");
    cli::print(summary(report) + "\n");
  }
  if (report.accepted) return 0;
  cli::print_error("error: not accepted: " + report.reason + "; the model is kept in " +
                   job.output);
  return static_cast<int>(ErrorCode::kDifference);
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
