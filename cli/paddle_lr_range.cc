// paddle-lr-range CONFIG [key=value…]: the learning-rate range test of a config.

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/interrupt.h"
#include "commands.h"
#include "common.h"
#include "common_model_files.h"
#include "common_options.h"
#include "common_table.h"
#include "common_trial.h"
#include "config/document.h"
#include "sections/sections.h"
#include "train/config/run_config.h"
#include "train/job/resume.h"
#include "train/runs/run_folder.h"
#include "train/sweeps/rate_test.h"

namespace {

using namespace paddle;
namespace fs = std::filesystem;

/// Whether an interrupted test is in the folder; kUsage if it is one of other settings.
bool continues(const std::string& folder, const train::RunConfig& config) {
  if (!is_directory(folder) || !train::RunFolder(folder).has_checkpoints()) return false;
  config::Diagnostics diagnostics;
  const config::Node before = config::read_document(train::config_of_run(folder), diagnostics);
  diagnostics.raise();
  const auto changes = train::config_changes(before, config.document);
  const auto shown = [](const std::string& value) { return value.empty() ? "not given" : value; };
  if (!changes.empty())
    fail(ErrorCode::kUsage, folder, ": is a test with other settings: ", changes[0].path, " was ",
         shown(changes[0].before), " and is ", shown(changes[0].after),
         "; omit --resume to start over");
  return true;
}

int run_lr_range(int argc, char** argv) {
  cli::App app{"Finds a learning rate: trains some steps with an increasing rate."};
  app.footer(
      "The run is a folder of its own; the model of the config and other runs are unchanged. "
      "Losses by rate are in rates.csv, their curve in rates.html.");
  std::vector<std::string> arguments;
  std::string output;
  double low = 1e-6, high = 1;
  int64_t steps = 100;
  bool as_json = false, resume = false;
  app.add_option("CONFIG", arguments, "the config, then key=value overrides");
  app.add_option("--from", low, "first rate")->check(cli::kPositive);
  app.add_option("--to", high, "last rate")->check(cli::kPositive);
  app.add_option("--steps", steps, "number of updates (default: 100)")
      ->check(cli::in_range(int64_t{20}, int64_t{100000}));
  app.add_option("-o,--output", output, "folder of the run (default: runs/<config name>-lr-range)");
  app.add_flag("--resume", resume,
               "continue an interrupted test in its folder, or show the results of a finished one");
  app.add_flag("--json", as_json, "print one JSON object at the end");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  std::vector<std::string> overrides = cli::take_overrides(arguments);
  const std::string config = cli::only_config(arguments, "paddle-lr-range");
  const auto read = [&] {
    return train::read_config(config, cli::with_model_files(config, overrides));
  };
  if (!(low < high)) fail(ErrorCode::kUsage, "--from ", low, " is not below --to ", high);
  const train::RunConfig given = read();
  if (given.optimizers.size() != 1)
    fail(ErrorCode::kConfig, "a range test needs one optimizer; this config has ",
         given.optimizers.size());
  // Evaluations would only take time, and what follows from them changes the rate.
  for (const std::string& setting :
       {str("optimizer.lr=", low),
        str("schedule={name: exponential, gamma: ", train::rate_factor(low, high, steps), "}"),
        str("train.steps=", steps), std::string("train.epochs=0"), std::string("train.log_every=1"),
        std::string("train.best=''"), std::string("train.early_stop=null"),
        std::string("train.evaluate_every=never"), std::string("train.checkpoint_every=never")})
    overrides.push_back(setting);
  const train::RunConfig tested = read();
  if (output.empty()) output = (fs::path("runs") / (given.name + "-lr-range")).string();
  ensure_directory(output);
  const std::string folder = (fs::path(output) / "run").string(), log = folder + ".log";
  std::vector<std::string> words = {config};
  words.insert(words.end(), overrides.begin(), overrides.end());
  if (resume && continues(folder, tested))
    words.insert(words.end(), {"--resume", folder});
  else
    words.insert(words.end(), {"--output", folder, "--overwrite"});
  watch_for_interrupts();
  cli::print(str(steps, " steps of ", config, ", rates from ", cli::short_number(low), " to ",
                 cli::short_number(high), "\n"));
  const int status = cli::run_trainer(words, log);
  if (status > 128 || pending_interrupt()) {
    cli::print_error("interrupted; the same command with --resume continues");
    return status > 128 ? status : 128 + pending_interrupt();
  }
  // A run that diverges ends with kData: that is what the test is for.
  if (status != 0 && status != static_cast<int>(ErrorCode::kData)) {
    cli::print_error(str(folder, ": status ", status, ": ", cli::last_line(log)));
    return status;
  }
  const std::vector<train::RateAt> rates = train::read_rates(folder);
  if (status != 0 && rates.empty()) fail(ErrorCode::kData, cli::last_line(log));
  const train::RateTest test = train::analyze_rates(rates);
  const std::string csv = (fs::path(output) / "rates.csv").string(),
                    page = (fs::path(output) / "rates.html").string();
  write_file_atomically(csv, train::rates_csv(test));
  write_file_atomically(page, train::rates_page(given.name + ": learning rates", test));
  const auto line = [](const char* what, double rate) {
    cli::print(str(what, rate > 0 ? cli::short_number(rate) : "-", "\n"));
  };
  line("the loss falls fastest at  ", test.steepest);
  line("the loss is lowest at      ", test.lowest);
  line("training diverges from     ", test.diverges);
  line("suggested: optimizer.lr=", test.suggested);
  cli::print(str("curve: ", page, "\n"));
  if (as_json)
    cli::print(nlohmann::ordered_json(
                   {{"steepest", test.steepest},
                    {"lowest", test.lowest},
                    {"diverges", test.diverges > 0 ? nlohmann::ordered_json(test.diverges)
                                                   : nlohmann::ordered_json()},
                    {"suggested", test.suggested},
                    {"steps", test.steps.size()}})
                   .dump() +
               "\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int lr_range_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_lr_range(argc, argv);
  });
}

}  // namespace paddle::cli
