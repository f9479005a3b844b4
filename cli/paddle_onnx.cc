// paddle-onnx check FOLDER…: runs cases in the layout of the ONNX project's test suite.
// paddle-onnx diff A B: compares two files.

#include <nlohmann/json.hpp>

#include "base/parallel.h"
#include "commands.h"
#include "common.h"
#include "common_dims.h"
#include "common_options.h"
#include "exporter/onnx_diff.h"
#include "inspect/onnx_suite.h"

namespace {

using namespace paddle;
using Json = nlohmann::ordered_json;

Json json_of(const exporter::OnnxDiff& diff) {
  Json outputs = Json::array();
  for (const auto& each : diff.outputs) {
    Json line = {{"name", each.name}, {"absolute", each.absolute}, {"relative", each.relative}};
    if (!each.difference.empty()) line["difference"] = each.difference;
    outputs.push_back(line);
  }
  Json out = {{"same_structure", diff.same_structure()},
              {"same_results", diff.same_results()},
              {"interface", diff.interface},
              {"structure", diff.structure},
              {"weights", diff.weights},
              {"outputs", outputs}};
  if (!diff.not_run.empty()) out["not_run"] = diff.not_run;
  return out;
}

int print_diff(const exporter::OnnxDiff& diff, bool ran, bool json) {
  const bool same = ran ? diff.same_results() && diff.interface.empty() : diff.same_structure();
  if (json) {
    cli::print(json_of(diff).dump() + "\n");
    return same ? 0 : 1;
  }
  const auto print = [](const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    cli::print(str(title, ":\n"));
    for (const std::string& line : lines) cli::print_line("  " + line);
  };
  print("inputs and outputs", diff.interface);
  print("graph", diff.structure);
  print("weights", diff.weights);
  if (diff.same_structure()) cli::print("the graphs and weights are the same\n");
  if (!diff.not_run.empty()) cli::print_error("not run: " + diff.not_run);
  for (const auto& each : diff.outputs)
    cli::print(str("output '", each.name, "': largest difference ", each.absolute, " (",
                   each.relative, " of the largest value)",
                   each.difference.empty() ? "" : ": " + each.difference, "\n"));
  return same ? 0 : 1;
}

int run_onnx(int argc, char** argv) {
  cli::App app{"Checks ONNX models against their expected outputs, and compares two of them."};
  app.require_subcommand(1);
  std::vector<std::string> folders;
  inspect::SuiteOptions options;
  bool eager = false, partitions = false;
  cli::App* check = app.add_subcommand("check", "run cases and compare");
  check
      ->add_option("FOLDER", folders, "a case (model.onnx, test_data_set_N/), or a folder of cases")
      ->required();
  check->add_option("--filter", options.filter, "only cases whose names match this pattern");
  check->add_option("--known", options.known,
                    "file with a line NAME: REASON for each case that may fail");
  check->add_option("--timeout", options.isolation.timeout_seconds, "processor time per case")
      ->check(cli::duration(0, 1e6));
  check->add_flag("--by-operator", options.by_operator, "count failures by operator");
  cli::Option* const node_by_node =
      check->add_flag("--eager", eager, "run node by node instead of as one plan");
  check
      ->add_flag("--partitions,--sections", partitions,
                 "as partitions, like graphs with data-dependent shapes")
      ->excludes(node_by_node);
  std::string first, second;
  exporter::DiffOptions comparison;
  std::vector<std::string> dims;
  bool json = false;
  cli::App* diff = app.add_subcommand("diff", "compare two files: graphs, weights and results");
  diff->add_option("A", first, "an ONNX file")->required();
  diff->add_option("B", second, "another one")->required();
  diff->add_option("--check", comparison.runs, "runs on random inputs to compare; 0: none")
      ->check(cli::in_range(0, 100));
  diff->add_option("--dim", dims, "NAME=SIZE of a symbolic dim of A in the runs")
      ->allow_extra_args(false);
  diff->add_option("--rtol", comparison.relative, "relative tolerance of results")
      ->check(cli::kNonNegative);
  diff->add_option("--atol", comparison.absolute, "absolute tolerance of results")
      ->check(cli::kNonNegative);
  diff->add_flag("--json", json, "one JSON object");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (diff->parsed()) {
    comparison.dims = cli::parse_dims(dims);
    return print_diff(exporter::diff_onnx(first, second, comparison), comparison.runs > 0, json);
  }
  options.mode = eager        ? onnx::Mode::kEager
                 : partitions ? onnx::Mode::kPartitions
                              : onnx::Mode::kAutomatic;
  options.isolation.workers = thread_count();
  const auto result = inspect::run_onnx_suite(
      folders, options, [](const std::string& line) { cli::print_line(line); });
  cli::print(str(result.passed, " passed, ", result.failed, " failed\n"));
  return result.unexpected > 0 ? 1 : 0;
}

}  // namespace

namespace paddle::cli {

int onnx_command(int argc, char** argv) {
  return run_tool([&] { return run_onnx(argc, argv); });
}

}  // namespace paddle::cli
