// paddle-eval RUN|MODEL: the loss and the metrics of a trained model, as the run computed them.

#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "common.h"
#include "common_options.h"
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

/// The model, the config of its run, and where its weights and fitted values are.
struct Evaluated {
  std::string model;
  train::RunConfig config;
  train::TrainOptions options;
};

void use_fitted(const fs::path& folder, train::TrainOptions& options) {
  const std::string fitted = (folder / "fitted.json").string();
  if (file_exists(fitted)) options.fitted = fitted;
}

/// A run folder, a model folder or a checkpoint, each with the config of the run.
Evaluated open_folder(const std::string& given, const std::vector<std::string>& overrides) {
  Evaluated out;
  out.model = program::find_model_folder(given);
  const std::string metadata = metadata_folder(out.model);
  const std::string config_file = (fs::path(metadata) / "config.yaml").string();
  if (!file_exists(config_file))
    fail(ErrorCode::kModel, out.model,
         ": has no config.yaml, so its loss and metrics are not known");
  out.config = train::read_config(config_file, overrides);
  const auto is_checkpoint = [&] {
    return file_exists((fs::path(out.model) / "state.json").string());
  };
  if (!out.config.models[0].name.empty() && !is_checkpoint()) {
    // The loss of several models needs all of them, which checkpoints hold.
    out.model = (fs::path(given) / "checkpoints/latest").string();
    if (!is_directory(out.model))
      fail(ErrorCode::kUsage, given,
           ": holds one of several models; give the run or one of its checkpoints");
  }
  // A saved model holds the sums of matrices and adapters; a checkpoint has both.
  if (!is_checkpoint()) {
    out.config.adapters.reset();
    for (train::OptimizerConfig& optimizer : out.config.optimizers)
      std::erase_if(optimizer.options.groups, [](const optim::ParameterGroup& group) {
        return group.key == "lora" || group.key == "lora.also";
      });
  }
  out.options.initial_weights = (fs::path(out.model) / "model.safetensors").string();
  use_fitted(metadata, out.options);
  return out;
}

/// Weights of the config's model, or an ONNX file in the place of the model.
Evaluated open_file(const std::string& file, const std::string& config_file,
                    std::vector<std::string> overrides) {
  if (config_file.empty())
    fail(ErrorCode::kUsage, file,
         ": needs --config CONFIG, which names the loss, metrics and data");
  Evaluated out;
  out.model = file;
  const bool is_onnx = file.ends_with(".onnx");
  if (!is_onnx && !file.ends_with(".safetensors"))
    fail(ErrorCode::kUsage, file,
         ": expected a run, a model folder, a .safetensors or an .onnx file");
  if (is_onnx) overrides.insert(overrides.begin(), "model=" + fs::absolute(file).string());
  out.config = train::read_config(config_file, overrides);
  out.config.init = {};  // the weights are those of the file
  if (!is_onnx) out.options.initial_weights = file;
  const fs::path folder = fs::path(config_file).parent_path();
  use_fitted(folder / "model", out.options);  // of a run
  use_fitted(folder, out.options);
  return out;
}

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
  const bool is_file = file_exists(arguments[0]) && !is_directory(arguments[0]);
  if (!is_file && !is_directory(arguments[0]))
    fail(ErrorCode::kUsage, arguments[0], ": there is no such run or model folder");
  if (!is_file && !config_file.empty())
    fail(ErrorCode::kUsage, "--config: ", arguments[0], " has a config of its own");
  auto [model, config, options] = is_file ? open_file(arguments[0], config_file, overrides)
                                          : open_folder(arguments[0], overrides);
  const std::string part = choose_data(config, words);
  config.best = {};
  config.early_stop.reset();
  config.parallel = {};           // on one rank, however the run was trained
  config.data.check_seconds = 0;  // all samples of the part are read anyway, and no others
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

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] {
    paddle::register_sections();
    return run(argc, argv);
  });
}
