// paddle-launch -n N COMMAND …: starts the ranks of a parallel run on this machine.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "comm/sockets.h"
#include "common.h"
#include "launch/launcher.h"

namespace {

using namespace paddle;

int run(int argc, char** argv) {
  CLI::App app{"Starts a command on N ranks, which share the work as its config says."};
  app.footer("Example: paddle-launch -n 4 paddle-train config.yaml parallel.data=4");
  launch::LaunchOptions options;
  double dead_after = 10;
  app.add_option("-n,--ranks", options.ranks, "processes to start")
      ->check(CLI::Range(1, comm::kMostRanks))
      ->required();
  app.add_option("--logs", options.logs, "folder for rank-N.log, what each rank writes");
  app.add_option("--dead-after", dead_after, "seconds after which a stopped rank counts as lost")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("COMMAND", options.command, "the command and its arguments")
      ->required()
      ->allow_extra_args();
  app.positionals_at_end();
  app.prefix_command();
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  for (const std::string& argument : app.remaining()) options.command.push_back(argument);
  options.dead_after = std::chrono::milliseconds(static_cast<int64_t>(dead_after * 1000));
  options.output = [](const std::string& bytes, bool is_error) {
    if (is_error)
      std::fputs(bytes.c_str(), stderr);
    else
      cli::print(bytes);
  };
  const launch::LaunchResult result = launch::launch(options);
  if (!result.error.empty()) cli::print_error(result.error);
  return result.status;
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
