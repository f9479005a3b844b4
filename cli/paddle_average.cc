// paddle-average RUN: a model with the mean of the weights of a run's last checkpoints.

#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "train/runs/average_checkpoints.h"

namespace {

using namespace paddle;

int run_average(int argc, char** argv) {
  cli::App app{"Writes a model with the mean of the weights of a run's last checkpoints."};
  app.footer("Prints one line of JSON: the model's folder and the steps that were averaged.");
  std::string folder, output;
  int64_t last = 3;
  bool dry_run = false, json = false, overwrite = false;
  app.add_option("RUN", folder, "the run folder")->required();
  app.add_option("--last", last, "how many checkpoints (default: 3)")
      ->check(cli::in_range(1, 10'000));
  app.add_option("-o,--output", output, "the model's folder (default: RUN/average)");
  cli::add_overwrite(app, overwrite);
  app.add_flag("--dry-run", dry_run, "check the checkpoints, write nothing");
  app.add_flag("--json", json, "accepted for scripts: the output is JSON in any case");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (output.empty()) output = folder + "/average";
  const std::vector<int64_t> steps =
      train::average_checkpoints(folder, last, output, dry_run, overwrite);
  cli::print(
      nlohmann::ordered_json({{"model", output}, {"steps", steps}, {"written", !dry_run}}).dump() +
      "\n");
  return 0;
}

}  // namespace

namespace paddle::cli {

int average_command(int argc, char** argv) {
  return run_tool([&] { return run_average(argc, argv); });
}

}  // namespace paddle::cli
