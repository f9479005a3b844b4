// paddle-eval RUN|MODEL: the loss and the metrics of a trained model, as the run computed them.

#include <cmath>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "common.h"
#include "program/saved_model.h"
#include "sections/sections.h"
#include "train/trainer.h"

namespace {

using namespace paddle;
namespace fs = std::filesystem;

class Messages final : public train::TrainObserver {
 public:
  void warn(const std::string& line) override { cli::print_error("warning: " + line); }
};

/// The folder with the config of the run and what it fitted: of a checkpoint, `inference`.
std::string metadata_folder(const std::string& model) {
  const std::string inference = (fs::path(model) / "inference").string();
  return is_directory(inference) ? inference : model;
}

/// Puts the wanted data in the place of the validation data.
std::string choose_data(train::RunConfig& config, const std::string& words) {
  data::DataConfig& data = config.data;
  const std::vector<std::string> parts = {"train", "valid", "test"};
  const auto [file, part] = data::parse_data_name(words, parts);
  std::optional<data::DataConfig> other;
  if (!file.empty()) other = data::read_config_data(file);
  const data::DataConfig& from = other ? *other : data;
  std::optional<data::DatasetOptions> wanted;
  if (part == "train")
    wanted = from.train;
  else if (part == "valid")
    wanted = from.valid;
  else if (part == "test")
    wanted = from.test;
  else
    fail(ErrorCode::kUsage, "--data: expected train, valid or test, found '", part, "'",
         did_you_mean(part, parts));
  if (!wanted) fail(ErrorCode::kUsage, "--data: the config has no data.", part);
  data.valid = wanted;
  data.test.reset();
  return part;
}

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

int run(int argc, char** argv) {
  CLI::App app{"Computes the loss and the metrics of a trained model."};
  app.footer("RUN is a run folder, its model/ or a checkpoint. Prints one line of JSON.");
  std::vector<std::string> arguments;
  std::string words = "valid", details;
  bool json = false, eager = false;
  app.add_option("RUN", arguments, "the run or model, then key=value overrides of its config");
  app.add_option("--data", words, "valid, test, train, or CONFIG.yaml[:part]");
  app.add_option("--details", details,
                 "write the confusion matrix, a table of the classes, curves and the worst samples "
                 "as JSON to this file");
  app.add_flag("--eager", eager, "run operation by operation, as a run with --eager did");
  app.add_flag("--json", json, "accepted for scripts: the output is JSON in any case");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const auto overrides = cli::take_overrides(arguments);
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, arguments.empty() ? "no run is given" : "one run is expected",
         " (see paddle-eval --help)");
  if (!is_directory(arguments[0]))
    fail(ErrorCode::kUsage, arguments[0], ": there is no such run or model folder");
  std::string model = program::find_model_folder(arguments[0]);
  const std::string metadata = metadata_folder(model);
  const std::string config_file = (fs::path(metadata) / "config.yaml").string();
  if (!file_exists(config_file))
    fail(ErrorCode::kModel, model, ": has no config.yaml, so its loss and metrics are not known");
  train::RunConfig config = train::read_config(config_file, overrides);
  if (!config.models[0].name.empty() && !file_exists((fs::path(model) / "state.json").string())) {
    // The loss of several models needs all of them, which checkpoints hold.
    model = (fs::path(arguments[0]) / "checkpoints/latest").string();
    if (!is_directory(model))
      fail(ErrorCode::kUsage, arguments[0],
           ": holds one of several models; give the run or one of its checkpoints");
  }
  // A saved model holds the sums of matrices and adapters; a checkpoint has both.
  if (!file_exists((fs::path(model) / "state.json").string())) {
    config.adapters.reset();
    for (train::OptimizerConfig& optimizer : config.optimizers)
      std::erase_if(optimizer.options.groups, [](const optim::ParameterGroup& group) {
        return group.key == "lora" || group.key == "lora.also";
      });
  }
  const std::string part = choose_data(config, words);
  config.best = {};
  config.early_stop.reset();
  config.parallel = {};           // on one rank, however the run was trained
  config.data.check_seconds = 0;  // all samples of the part are read anyway, and no others

  train::TrainOptions options;
  options.eager = eager;
  options.details = details;
  options.initial_weights = (fs::path(model) / "model.safetensors").string();
  const std::string fitted = (fs::path(metadata) / "fitted.json").string();
  if (file_exists(fitted)) options.fitted = fitted;
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

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] {
    paddle::register_sections();
    return run(argc, argv);
  });
}
