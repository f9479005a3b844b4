// paddle-onnx check FOLDER…: runs cases in the layout of the ONNX project's test suite.

#include <CLI/CLI.hpp>

#include "base/parallel.h"
#include "common.h"
#include "inspect/onnx_suite.h"

namespace {

using namespace paddle;

int run(int argc, char** argv) {
  CLI::App app{"Checks ONNX models against their expected outputs."};
  app.require_subcommand(1);
  std::vector<std::string> folders;
  inspect::SuiteOptions options;
  bool eager = false, partitions = false;
  CLI::App* check = app.add_subcommand("check", "run cases and compare");
  check
      ->add_option("FOLDER", folders, "a case (model.onnx, test_data_set_N/), or a folder of cases")
      ->required();
  check->add_option("--filter", options.filter, "only cases whose names match this pattern");
  check->add_option("--known", options.known,
                    "file with a line NAME: REASON for each case that may fail");
  check->add_option("--timeout", options.isolation.timeout_seconds, "seconds per case");
  check->add_flag("--by-operator", options.by_operator, "count failures by operator");
  check->add_flag("--eager", eager, "run node by node instead of as one plan");
  check
      ->add_flag("--partitions,--sections", partitions,
                 "as partitions, like graphs with data-dependent shapes")
      ->excludes("--eager");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  options.mode = eager        ? onnx::Mode::kEager
                 : partitions ? onnx::Mode::kPartitions
                              : onnx::Mode::kAutomatic;
  options.isolation.workers = thread_count();
  const auto result = inspect::run_onnx_suite(
      folders, options, [](const std::string& line) { cli::print(line + "\n"); });
  cli::print(str(result.passed, " passed, ", result.failed, " failed\n"));
  return result.unexpected > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
