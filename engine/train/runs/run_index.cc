#include "train/runs/run_index.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "config/document.h"
#include "train/records/metrics_log.h"
#include "train/step/metric_call.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string inside(const std::string& run, const char* name) {
  return (fs::path(run) / name).string();
}

void add_leaves(const config::Node& node, const std::string& path,
                std::vector<std::pair<std::string, std::string>>& out) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.is_map()) {
    for (const config::Entry& e : node.entries) add_leaves(e.value, below(e.key.text), out);
  } else if (node.is_sequence()) {
    for (size_t i = 0; i < node.items.size(); ++i)
      add_leaves(node.items[i], below(std::to_string(i)), out);
  } else {
    out.emplace_back(path, node.is_null() ? "" : node.text);
  }
}

/// Calls `use` with each object of a log.
template <class Use>
void for_each_line(const std::string& run, Use&& use) {
  const std::string path = inside(run, "metrics.jsonl");
  if (!file_exists(path)) return;
  const auto file = MappedFile::open(path);
  std::string_view text = file->view();
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const ordered_json object = ordered_json::parse(line.begin(), line.end(), nullptr, false);
    if (object.is_object()) use(object);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

NamedNumbers numbers_of(const ordered_json& object) {
  NamedNumbers out;
  for (const auto& [key, value] : object.items())
    if ((key == "loss" || !is_log_key(key)) && (value.is_number() || value.is_null()))
      out.emplace_back(key, value.is_null() ? std::nan("") : value.get<double>());
  return out;
}

/// Whether a process holds the lock of the folder.
bool is_locked(const std::string& run) {
  const int lock = ::open(inside(run, ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0;
  ::close(lock);
  return held;
}

}  // namespace

std::optional<double> RunInfo::metric(const std::string& name) const {
  for (const auto& [key, value] : valid)
    if (key == name) return value;
  return std::nullopt;
}

std::string RunInfo::setting(const std::string& key) const {
  for (const auto& [path, value] : settings)
    if (path == key) return value;
  return "";
}

bool is_run_folder(const std::string& path) {
  return file_exists(inside(path, "config.yaml")) &&
         (file_exists(inside(path, "run.json")) || file_exists(inside(path, "metrics.jsonl")) ||
          is_directory(inside(path, "checkpoints")));
}

std::vector<std::string> find_runs(const std::string& path) {
  std::vector<std::string> out;
  if (is_run_folder(path)) return {path};
  constexpr int kMaxDepth = 6;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored) || it->is_symlink(ignored)) continue;
    const std::string folder = it->path().string();
    if (is_run_folder(folder)) {
      out.push_back(folder);
      it.disable_recursion_pending();
    } else if (it.depth() >= kMaxDepth) {
      it.disable_recursion_pending();
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

RunInfo read_run(const std::string& path) {
  if (!is_run_folder(path))
    fail(ErrorCode::kUsage, path,
         is_directory(path) ? ": is not a run folder" : ": no such folder");
  RunInfo out;
  out.path = path;
  config::Diagnostics diagnostics;
  add_leaves(config::read_document(inside(path, "config.yaml"), diagnostics), "", out.settings);
  diagnostics.raise();
  out.status = "new";
  bool ended = false;
  for_each_line(path, [&](const ordered_json& line) {
    const std::string kind = kind_of(line);
    ended = kind == "end";
    out.status = "stopped";
    if (line.contains("step")) out.step = step_of(line);
    if (const auto epoch = line.find("epoch"); epoch != line.end() && epoch->is_number_integer())
      out.epoch = epoch->get<int64_t>();
    if (const double seconds = number_at(line, "seconds"); seconds == seconds)
      out.seconds = seconds;
    if (kind == "train") out.train_loss = number_at(line, "loss");
    if (kind == "valid") out.valid = numbers_of(line);
    if (kind == "test") out.test = numbers_of(line);
  });
  if (is_locked(path))
    out.status = "running";
  else if (ended)
    out.status = "finished";
  return out;
}

std::vector<std::string> varying_settings(const std::vector<RunInfo>& runs) {
  const auto is_left_out = [](const std::string& key) {
    for (const char* pattern : {"name", "*path*", "*.images", "*.labels", "*.files.*",
                                "train.log_every", "train.keep_checkpoints", "data.workers"})
      if (matches_pattern(pattern, key)) return true;
    return false;
  };
  std::vector<std::string> keys, out;
  std::set<std::string> seen;
  for (const RunInfo& run : runs)
    for (const auto& [key, value] : run.settings)
      if (seen.insert(key).second) keys.push_back(key);
  for (const std::string& key : keys) {
    if (is_left_out(key)) continue;
    const std::string first = runs[0].setting(key);
    if (std::any_of(runs.begin(), runs.end(),
                    [&](const RunInfo& run) { return run.setting(key) != first; }))
      out.push_back(key);
  }
  return out;
}

std::vector<LossAt> read_losses(const std::string& path) {
  std::vector<LossAt> out;
  for_each_line(path, [&](const ordered_json& line) {
    if (kind_of(line) != "train") return;
    out.push_back({step_of(line), number_at(line, "loss")});
  });
  return out;
}

std::vector<LossAt> read_evaluations(const std::string& path, const std::string& name) {
  std::vector<LossAt> out;
  for_each_line(path, [&](const ordered_json& line) {
    if (kind_of(line) != "valid") return;
    out.push_back({step_of(line), number_at(line, name)});
  });
  return out;
}

std::vector<RateAt> read_rates(const std::string& path) {
  std::vector<RateAt> out;
  for_each_line(path, [&](const ordered_json& line) {
    if (kind_of(line) != "train") return;
    out.push_back({step_of(line), number_at(line, "learning_rate"), number_at(line, "loss")});
  });
  return out;
}

std::optional<bool> larger_is_better(const std::string& run, const std::string& metric) {
  if (metric == "loss") return false;
  config::Diagnostics diagnostics;
  const config::Node document = config::read_document(inside(run, "config.yaml"), diagnostics);
  if (const config::Node* train = document.find("train")) {
    const config::Node *best = train->find("best"), *mode = train->find("best_mode");
    if (best && mode && best->text == metric && mode->text != "auto") return mode->text == "max";
  }
  const config::Node* metrics = document.find("metrics");
  if (!metrics) return std::nullopt;
  for (const MetricDefinition& each : read_metrics(*metrics, diagnostics))
    if (each.name == metric && each.direction() != metrics::Direction::kUnknown)
      return each.direction() == metrics::Direction::kHigher;
  return std::nullopt;
}

}  // namespace paddle::train
