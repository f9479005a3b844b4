// paddle-runs [FOLDER…]: a table of runs.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "common_table.h"
#include "train/records/metrics_log.h"
#include "train/runs/run_index.h"

namespace {

using namespace paddle;

/// Runs whose last evaluation lacks the metric come last.
void sort_runs(std::vector<train::RunInfo>& runs, const std::string& metric) {
  bool larger = false, known = false;
  std::vector<std::string> names;
  for (const train::RunInfo& run : runs) {
    for (const auto& [name, value] : run.valid) names.push_back(name);
    if (const auto better = train::larger_is_better(run.path, metric); better && !known)
      larger = *better, known = true;
  }
  if (std::find(names.begin(), names.end(), metric) == names.end())
    fail(ErrorCode::kUsage, "--sort: no run has the metric '", metric, "'",
         did_you_mean(metric, names));
  std::stable_sort(runs.begin(), runs.end(), [&](const auto& a, const auto& b) {
    const auto x = a.metric(metric), y = b.metric(metric);
    const bool has_x = x && !std::isnan(*x), has_y = y && !std::isnan(*y);
    if (has_x != has_y) return has_x;
    return has_x && (larger ? *x > *y : *x < *y);
  });
}

nlohmann::ordered_json numbers(const train::NamedNumbers& all) {
  auto out = nlohmann::ordered_json::object();
  for (const auto& [name, value] : all)
    out[name] = train::number_or_null<nlohmann::ordered_json>(value);
  return out;
}

int run_runs(int argc, char** argv) {
  cli::App app{"Lists runs with their progress, metrics, and the settings in which they differ."};
  std::vector<std::string> folders;
  std::string sort;
  bool as_json = false;
  app.add_option("FOLDER", folders, "run folders, or folders with runs (default: runs)");
  app.add_option("--sort", sort, "a metric of the validation data; the best run comes first");
  app.add_flag("--json", as_json, "print one JSON object");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  if (folders.empty()) folders = {"runs"};
  std::vector<train::RunInfo> runs;
  for (const std::string& folder : folders) {
    if (!is_directory(folder)) fail(ErrorCode::kUsage, folder, ": no such folder");
    const auto found = train::find_runs(folder);
    if (found.empty()) fail(ErrorCode::kUsage, folder, ": holds no runs");
    for (const std::string& path : found) runs.push_back(train::read_run(path));
  }
  if (!sort.empty()) sort_runs(runs, sort);
  const std::vector<std::string> keys = train::varying_settings(runs);
  if (as_json) {
    nlohmann::ordered_json out;
    out["runs"] = nlohmann::ordered_json::array();
    for (const train::RunInfo& each : runs) {
      nlohmann::ordered_json line = {{"path", each.path},         {"status", each.status},
                                     {"step", each.step},         {"epoch", each.epoch},
                                     {"seconds", each.seconds},   {"valid", numbers(each.valid)},
                                     {"test", numbers(each.test)}};
      for (const std::string& key : keys) line["settings"][key] = each.setting(key);
      out["runs"].push_back(std::move(line));
    }
    cli::print(out.dump() + "\n");
    return 0;
  }
  cli::Table table({"run", "status", "step", "time"});
  std::vector<std::string> metrics;
  for (const train::RunInfo& each : runs)
    for (const auto& [name, value] : each.valid)
      if (std::find(metrics.begin(), metrics.end(), name) == metrics.end()) metrics.push_back(name);
  constexpr size_t kMaxKeys = 6;
  for (const std::string& name : metrics) table.add_column(name);
  const size_t shown = std::min(keys.size(), kMaxKeys);
  for (size_t k = 0; k < shown; ++k) table.add_column(keys[k]);
  for (const train::RunInfo& each : runs) {
    std::vector<std::string> row = {each.path, each.status, std::to_string(each.step),
                                    cli::short_duration(each.seconds)};
    for (const std::string& name : metrics) {
      const auto value = each.metric(name);
      row.push_back(value ? cli::short_number(*value) : "");
    }
    for (size_t k = 0; k < shown; ++k) row.push_back(each.setting(keys[k]));
    table.add_row(std::move(row));
  }
  cli::print(table.text());
  if (keys.size() > shown)
    cli::print(str("and ", keys.size() - shown, " more settings differ; --json has all\n"));
  return 0;
}

}  // namespace

namespace paddle::cli {

int runs_command(int argc, char** argv) {
  return run_tool([&] { return run_runs(argc, argv); });
}

}  // namespace paddle::cli
