// paddle-eval RUN|MODEL: the loss and the metrics of a trained model, as the run computed them.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/interrupt.h"
#include "commands.h"
#include "common.h"
#include "common_model_files.h"
#include "common_observer.h"
#include "common_options.h"
#include "lang/syntax/program.h"
#include "llm/language_model.h"
#include "sections/sections.h"
#include "train/records/metrics_log.h"
#include "train/runs/evaluated_model.h"

namespace {

using namespace paddle;

int run_eval(int argc, char** argv) {
  cli::App app{"Computes the loss and the metrics of a trained model."};
  app.footer(
      "MODEL is a run folder, its model/ or a checkpoint; or, with --config, weights "
      "(.safetensors), an ONNX file, a model file[:variant] with --weights, a Hugging Face folder "
      "or a GGUF file. Prints one line of JSON.");
  std::vector<std::string> arguments;
  std::string words = "valid", details, config_file, weights;
  bool json = false, eager = false, dry_run = false;
  app.add_option("MODEL", arguments,
                 "the run, the model or its file, then key=value overrides of the config");
  app.add_option("--config", config_file,
                 "of a model without a config of its own: the config with loss, metrics and data");
  app.add_option("--weights", weights, "weights of a model file (safetensors)");
  app.add_option("--data", words,
                 "valid, test, train, CONFIG.yaml[:part], or a file or folder that is read as the "
                 "run's own data");
  app.add_option("--details", details,
                 "write the confusion matrix, a table of the classes, curves and the worst samples "
                 "as JSON to this file");
  app.add_flag("--eager", eager, "run operation by operation, as a run with --eager did");
  app.add_flag("--dry-run", dry_run,
               "check everything, print the memory that is needed, compute nothing");
  app.add_flag("--json", json, "accepted for scripts: the output is JSON in any case");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  std::vector<std::string> overrides = cli::take_overrides(arguments);
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, arguments.empty() ? "no run is given" : "one run is expected",
         " (see paddle-eval --help)");
  const std::string source = lang::split_variant(arguments[0]).first;
  const bool is_language_model = llm::is_language_model(arguments[0]);
  const bool is_file = (file_exists(source) && !is_directory(source)) || is_language_model;
  if (!weights.empty() && !is_file)
    fail(ErrorCode::kUsage, "--weights is for model files; ", arguments[0], " has its own weights");
  if (!is_file && !is_directory(arguments[0]))
    fail(ErrorCode::kUsage, arguments[0], ": no such run or model folder");
  if (!is_file && !config_file.empty())
    fail(ErrorCode::kUsage, "--config: ", arguments[0], " has a config of its own");
  if (is_file && config_file.empty())
    fail(ErrorCode::kUsage, arguments[0],
         ": needs --config CONFIG, which names the loss, metrics and data");
  if (is_language_model) {
    if (!weights.empty())
      fail(ErrorCode::kUsage, "--weights is for model files; ", arguments[0],
           " has its own weights");
    overrides.push_back("model=" + cli::quoted(std::filesystem::absolute(arguments[0])));
  }
  if (is_file) overrides = cli::with_model_files(config_file, std::move(overrides));
  auto [model, config, options] =
      is_language_model ? train::open_evaluated_config(config_file, overrides)
      : is_file         ? train::open_evaluated_file(arguments[0], config_file, overrides, weights)
                        : train::open_evaluated_folder(arguments[0], overrides);
  if (is_language_model) model = arguments[0];
  const std::string part = train::choose_evaluation_data(config, words, "--data");
  train::settle_for_evaluation(config);
  options.eager = eager;
  options.details = details;
  watch_for_interrupts();
  cli::WarningObserver messages;
  train::Trainer trainer(std::move(config), options, messages);
  const train::MemoryPlan plan = trainer.prepare();
  if (dry_run)
    cli::print(nlohmann::ordered_json({{"model", model},
                                       {"data", part},
                                       {"parameters", trainer.parameter_count()},
                                       {"memory_bytes", plan.total()},
                                       {"available_bytes", plan.available},
                                       {"fits", plan.fits()}})
                   .dump() +
               "\n");
  plan.require_fit();
  if (dry_run) return 0;
  const auto line = trainer.evaluate();
  if (!line) return 128 + pending_interrupt();
  if (!details.empty() && !file_exists(details))
    fail(ErrorCode::kUsage,
         "--details: no metric of the config compares scores with classes (such ",
         "as accuracy(logits, label))");
  nlohmann::ordered_json out = {{"model", model}, {"data", part}, {"samples", line->samples}};
  out["loss"] = train::number_or_null<nlohmann::ordered_json>(line->loss);
  for (const auto& [name, value] : line->metrics)
    out[name] = train::number_or_null<nlohmann::ordered_json>(value);
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
    return run_eval(argc, argv);
  });
}

}  // namespace paddle::cli
