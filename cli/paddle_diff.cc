// paddle-diff RUN1 RUN2: what two runs differ in.

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "common_options.h"
#include "common_table.h"
#include "train/runs/run_index.h"

namespace {

using namespace paddle;
using nlohmann::ordered_json;

/// run.json of a run; empty if it has none.
ordered_json record_of(const std::string& run) {
  const std::string path = join_path(run, "run.json");
  if (!file_exists(path)) return ordered_json::object();
  ordered_json out = ordered_json::parse(read_file(path, 1 << 24), nullptr, false);
  return out.is_object() ? out : ordered_json::object();
}

/// Leaves of two records that differ, as "key: before → after".
void add_differences(const ordered_json& a, const ordered_json& b, const std::string& path,
                     ordered_json& out) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items())
      add_differences(value, b.contains(key) ? b.at(key) : ordered_json(),
                      path.empty() ? key : path + "." + key, out);
    for (const auto& [key, value] : b.items())
      if (!a.contains(key))
        add_differences(ordered_json(), value, path.empty() ? key : path + "." + key, out);
    return;
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (size_t i = 0; i < a.size(); ++i)
      add_differences(a[i], b[i], path + "." + std::to_string(i), out);
    return;
  }
  if (a != b) out[path] = {a, b};
}

/// The first logged step at which the losses are not the same; nullopt if there is none.
std::optional<std::pair<train::LossAt, train::LossAt>> first_difference(
    const std::vector<train::LossAt>& a, const std::vector<train::LossAt>& b) {
  size_t j = 0;
  for (const train::LossAt& x : a) {
    while (j < b.size() && b[j].step < x.step) ++j;
    if (j == b.size()) break;
    if (b[j].step == x.step && b[j].loss != x.loss) return std::pair(x, b[j]);
  }
  return std::nullopt;
}

std::string shown(const ordered_json& value) {
  if (value.is_null()) return "nothing";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

int run_diff(int argc, char** argv) {
  cli::App app{"Shows how two runs differ: settings, data and program, and their numbers."};
  app.footer("Exit status: 0 if the losses are the same, 1 if they differ.");
  std::string first, second;
  bool as_json = false;
  app.add_option("RUN1", first, "a run folder")->required();
  app.add_option("RUN2", second, "another one")->required();
  app.add_flag("--json", as_json, "print one JSON object");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const std::vector<train::RunInfo> runs = {train::read_run(first), train::read_run(second)};
  ordered_json out;
  out["runs"] = {first, second};
  out["settings"] = ordered_json::object();
  for (const std::string& key : train::varying_settings(runs))
    out["settings"][key] = {runs[0].setting(key), runs[1].setting(key)};
  out["record"] = ordered_json::object();
  add_differences(record_of(first), record_of(second), "", out["record"]);
  for (const char* key : {"config_digest", "started", "name"}) out["record"].erase(key);
  const auto parted = first_difference(train::read_losses(first), train::read_losses(second));
  out["first_difference"] = nullptr;
  if (parted)
    out["first_difference"] = {{"step", parted->first.step},
                               {"losses", {parted->first.loss, parted->second.loss}}};
  out["valid"] = ordered_json::object();
  for (const auto& [name, value] : runs[0].valid) {
    const auto other = runs[1].metric(name);
    out["valid"][name] = {value, other ? ordered_json(*other) : ordered_json()};
  }
  const int status = parted ? 1 : 0;
  if (as_json) {
    cli::print(out.dump() + "\n");
    return status;
  }
  const auto section = [&](const char* title, const ordered_json& pairs) {
    if (pairs.empty()) {
      cli::print(str(title, ": no differences\n"));
      return;
    }
    cli::print(str(title, "\n"));
    cli::Table table({"  key", first, second});
    for (const auto& [key, pair] : pairs.items())
      table.add_row({"  " + key, shown(pair[0]), shown(pair[1])});
    cli::print(table.text());
  };
  section("settings", out["settings"]);
  section("program and data", out["record"]);
  if (parted)
    cli::print(str("training loss differs from step ", parted->first.step,
                   " on: ", format_double(parted->first.loss), " and ",
                   format_double(parted->second.loss), "\n"));
  else
    cli::print("training loss: the same at all logged steps that both have\n");
  cli::Table table({"last evaluation", first, second});
  for (const auto& [name, pair] : out["valid"].items())
    table.add_row({name, shown(pair[0]), shown(pair[1])});
  cli::print(table.text());
  return status;
}

}  // namespace

namespace paddle::cli {

int diff_command(int argc, char** argv) {
  return run_tool([&] { return run_diff(argc, argv); });
}

}  // namespace paddle::cli
