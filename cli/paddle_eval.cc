// paddle-eval RUN|MODEL: the loss and the metrics of a trained model, as the run computed them.

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "commands.h"
#include "common.h"
#include "common_model_files.h"
#include "common_options.h"
#include "sections/sections.h"
#include "train/evaluated_model.h"

namespace {

using namespace paddle;

class Messages final : public train::TrainObserver {
 public:
  void warn(const std::string& line) override { cli::print_error("warning: " + line); }
};

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

int run(int argc, char** argv) {
  cli::App app{"Computes the loss and the metrics of a trained model."};
  app.footer(
      "RUN is a run folder, its model/ or a checkpoint, or a file with --config. Prints one line "
      "of "
      "JSON.");
  std::vector<std::string> arguments;
  std::string words = "valid", details, config_file;
  bool json = false, eager = false;
  app.add_option("RUN", arguments,
                 "the run, model, .safetensors or .onnx file, then key=value overrides of the "
                 "config");
  app.add_option("--config", config_file,
                 "of a file: the config with its model, loss, metrics and data");
  app.add_option("--data", words,
                 "valid, test, train, CONFIG.yaml[:part], or a file or folder that is read as the "
                 "run's own data");
  app.add_option("--details", details,
                 "write the confusion matrix, a table of the classes, curves and the worst samples "
                 "as JSON to this file");
  app.add_flag("--eager", eager, "run operation by operation, as a run with --eager did");
  app.add_flag("--json", json, "accepted for scripts: the output is JSON in any case");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  std::vector<std::string> overrides = cli::take_overrides(arguments);
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, arguments.empty() ? "no run is given" : "one run is expected",
         " (see paddle-eval --help)");
  const bool is_file = file_exists(arguments[0]) && !is_directory(arguments[0]);
  if (!is_file && !is_directory(arguments[0]))
    fail(ErrorCode::kUsage, arguments[0], ": there is no such run or model folder");
  if (!is_file && !config_file.empty())
    fail(ErrorCode::kUsage, "--config: ", arguments[0], " has a config of its own");
  if (is_file && config_file.empty())
    fail(ErrorCode::kUsage, arguments[0],
         ": needs --config CONFIG, which names the loss, metrics and data");
  if (is_file) overrides = cli::with_model_files(config_file, std::move(overrides));
  auto [model, config, options] =
      is_file ? train::open_evaluated_file(arguments[0], config_file, overrides)
              : train::open_evaluated_folder(arguments[0], overrides);
  const std::string part = train::choose_evaluation_data(config, words, "--data");
  train::settle_for_evaluation(config);
  options.eager = eager;
  options.details = details;
  watch_for_interrupts();
  Messages messages;
  train::Trainer trainer(std::move(config), options, messages);
  trainer.prepare().require_fit();
  const auto line = trainer.evaluate();
  if (!line) return 128 + pending_interrupt();
  if (!details.empty() && !file_exists(details))
    fail(ErrorCode::kUsage,
         "--details: no metric of the config compares scores with classes (such ",
         "as accuracy(logits, label))");
  nlohmann::ordered_json out = {{"model", model}, {"data", part}, {"samples", line->samples}};
  out["loss"] = number(line->loss);
  for (const auto& [name, value] : line->metrics) out[name] = number(value);
  for (const auto& [name, interval] : line->intervals)
    out["intervals"][name] = {interval.low, interval.high};
  cli::print(out.dump() + "\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int eval_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return ::run(argc, argv);
  });
}

}  // namespace paddle::cli
