// paddle-checkpoint verify RUN|CHECKPOINT: whether the files of checkpoints are those that were
// written.

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "common_table.h"
#include "program/checkpoint.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

/// The checkpoints of a run, or the one that the path is.
std::vector<std::string> checkpoints_of(const std::string& path) {
  if (file_exists(join_path(path, "state.json"))) return {path};
  const std::string folder = join_path(path, "checkpoints");
  std::vector<std::string> out;
  for (const int64_t step : program::list_checkpoints(folder))
    out.push_back(join_path(folder, str(step)));
  if (out.empty())
    fail(ErrorCode::kUsage, path, ": is neither a checkpoint nor a run with checkpoints");
  return out;
}

int verify_checkpoints(const std::string& path, bool json) {
  ordered_json list = ordered_json::array();
  cli::Table table({"checkpoint", "files", "size", ""});
  std::vector<std::string> problems;
  for (const std::string& checkpoint : checkpoints_of(path)) {
    const program::CheckpointFiles found = program::check_checkpoint(checkpoint);
    table.add_row({checkpoint, str(found.whole), human_bytes(found.bytes),
                   found.problems.empty() ? "whole" : "DAMAGED"});
    list.push_back({{"checkpoint", checkpoint},
                    {"files", found.whole},
                    {"bytes", found.bytes},
                    {"problems", found.problems}});
    problems.insert(problems.end(), found.problems.begin(), found.problems.end());
  }
  if (json) {
    cli::print(ordered_json{{"checkpoints", list}}.dump(-1, ' ', false,
                                                        ordered_json::error_handler_t::replace) +
               "\n");
  } else {
    cli::print(table.text());
    for (const std::string& problem : problems) cli::print_line(problem);
  }
  return problems.empty() ? 0 : static_cast<int>(ErrorCode::kDifference);
}

int run_checkpoint(int argc, char** argv) {
  cli::App app{"Checks checkpoints."};
  app.require_subcommand(1);
  cli::App* const verify = app.add_subcommand(
      "verify", "read all files of checkpoints and compare them with their sizes and checksums");
  std::string path;
  bool json = false;
  verify->add_option("RUN", path, "the folder of a run (all its checkpoints) or a checkpoint")
      ->required();
  verify->add_flag("--json", json, "print one JSON object");
  app.footer(
      "The exit code is 1 if a checkpoint is damaged. Example: paddle-checkpoint verify "
      "runs/digits");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  return verify_checkpoints(path, json);
}

}  // namespace

namespace paddle::cli {

int checkpoint_command(int argc, char** argv) {
  return run_tool([&] { return run_checkpoint(argc, argv); });
}

}  // namespace paddle::cli
