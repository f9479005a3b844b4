// paddle-sweep CONFIG key=1,2,3 …: trains a config with many settings and compares the runs.

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/interrupt.h"
#include "common.h"
#include "common_table.h"
#include "train/config.h"
#include "train/run_index.h"
#include "train/sweep.h"

namespace {

using namespace paddle;
namespace fs = std::filesystem;

/// Runs paddle-train, its output in a file; the exit status, or 128 and the signal.
int train_trial(const std::vector<std::string>& arguments, const std::string& log) {
  const std::string program = (fs::path(program_path()).parent_path() / "paddle-train").string();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) fail(ErrorCode::kDevice, program, ": ", std::strerror(errno));
  if (child == 0) {
    if (!std::freopen(log.c_str(), "a", stdout)) _exit(127);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The last line of a log, for a trial that failed.
std::string last_line(const std::string& path) {
  const std::string text = file_exists(path) ? read_file(path, 1 << 28) : "";
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  return text.substr(text.rfind('\n', end) + 1, end - text.rfind('\n', end));
}

struct Outcome {
  train::Trial trial;
  std::string folder, status;
  std::optional<double> value;
};

/// The best value comes first; trials without one last.
void sort_outcomes(std::vector<Outcome>& outcomes, bool larger) {
  std::stable_sort(outcomes.begin(), outcomes.end(), [&](const Outcome& a, const Outcome& b) {
    if (a.value.has_value() != b.value.has_value()) return a.value.has_value();
    return a.value && (larger ? *a.value > *b.value : *a.value < *b.value);
  });
}

/// The metric that decides: as asked for, or that of the config.
train::WatchedMetric choose_metric(const train::RunConfig& config, const std::string& asked) {
  if (!config.data.valid) fail(ErrorCode::kConfig, "a sweep compares runs on data.valid; add it");
  train::WatchedMetric out = config.best;
  if (!asked.empty() && asked != out.name) {
    std::vector<std::string> names = {"loss"};
    std::optional<metrics::Direction> direction;
    if (asked == "loss") direction = metrics::Direction::kLower;
    for (const train::MetricDefinition& each : config.metrics) {
      names.push_back(each.name);
      if (each.name == asked) direction = each.direction();
    }
    if (!direction)
      fail(ErrorCode::kUsage, "--metric: '", asked, "' is neither 'loss' nor a metric",
           did_you_mean(asked, names));
    if (*direction == metrics::Direction::kUnknown)
      fail(ErrorCode::kUsage, "--metric: '", asked,
           "' may be better when higher or lower; set train.best and train.best_mode");
    out = {asked, *direction == metrics::Direction::kHigher};
  }
  if (out.name.empty()) out = {"loss", false};
  return out;
}

int run(int argc, char** argv) {
  CLI::App app{"Trains a config with many settings: a grid of values, or random ones."};
  app.footer(
      "key=1,2,3 tries values, key=1e-4..1e-1 a range (with --random). Keys with one value are set "
      "for all trials. Each trial is a run folder; the same command continues a sweep.");
  std::vector<std::string> arguments;
  std::string output, metric;
  int64_t random = 0;
  uint64_t seed = 0;
  bool dry_run = false, as_json = false;
  app.add_option("CONFIG", arguments, "the config, then key=value,…");
  app.add_option("--output", output, "folder of the runs (default: runs/<config name>-sweep)");
  app.add_option("--metric", metric, "what is compared (default: train.best, or the loss)");
  app.add_option("--random", random, "random trials in place of a grid")
      ->check(CLI::Range(int64_t{1}, int64_t{10000}));
  app.add_option("--seed", seed, "of random trials");
  app.add_flag("--dry-run", dry_run, "list the trials, check the config, train nothing");
  app.add_flag("--json", as_json, "print one JSON object at the end");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const std::vector<std::string> settings = cli::take_overrides(arguments);
  if (arguments.size() != 1)
    fail(ErrorCode::kUsage, arguments.empty() ? "no config is given" : "one config is expected",
         " (see paddle-sweep --help)");
  std::vector<train::SweptKey> keys;
  std::vector<std::string> fixed;
  for (const std::string& text : settings) {
    train::SweptKey key = train::parse_swept(text);
    if (key.values.size() == 1)
      fixed.push_back(text);
    else
      keys.push_back(std::move(key));
  }
  if (keys.empty())
    fail(ErrorCode::kUsage, "no key has several values, such as optimizer.lr=1e-3,1e-2");
  const auto trials =
      random > 0 ? train::random_trials(keys, random, seed) : train::grid_trials(keys);
  // Every trial must be a config that can run; what is wrong is found before the first one trains.
  std::optional<train::WatchedMetric> watched;
  std::string name;
  for (const train::Trial& trial : trials) {
    std::vector<std::string> overrides = fixed;
    overrides.insert(overrides.end(), trial.begin(), trial.end());
    const train::RunConfig config = train::read_config(arguments[0], overrides);
    if (!watched) watched = choose_metric(config, metric), name = config.name;
  }
  if (output.empty()) output = (fs::path("runs") / (name + "-sweep")).string();
  cli::print(str(trials.size(), " trials of ", arguments[0], " in ", output, ", compared by ",
                 watched->name, "\n"));
  if (dry_run) {
    for (size_t i = 0; i < trials.size(); ++i)
      cli::print(str("  ", train::trial_name(i, trials[i]), "  ", join(trials[i], " "), "\n"));
    return 0;
  }
  ensure_directory(output);
  watch_for_interrupts();
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < trials.size() && !pending_interrupt(); ++i) {
    Outcome& out = outcomes.emplace_back();
    out.trial = trials[i];
    out.folder = (fs::path(output) / train::trial_name(i, trials[i])).string();
    const std::string log = out.folder + ".log";
    const bool is_there = train::is_run_folder(out.folder);
    if (!is_there || train::read_run(out.folder).status != "finished") {
      std::vector<std::string> words = {arguments[0]};
      words.insert(words.end(), fixed.begin(), fixed.end());
      words.insert(words.end(), trials[i].begin(), trials[i].end());
      words.emplace_back(is_there ? "--resume" : "--output");
      words.push_back(out.folder);
      const int status = train_trial(words, log);
      if (status > 128 || pending_interrupt()) {
        cli::print(str("stopped in trial ", i, "; the same command continues\n"));
        return status > 128 ? status : 128 + pending_interrupt();
      }
      if (status != 0) {
        out.status = "failed";
        cli::print_error(str(out.folder, ": status ", status, ": ", last_line(log)));
      }
    }
    if (out.status.empty()) {
      const train::RunInfo info = train::read_run(out.folder);
      out.status = info.status;
      out.value = info.metric(watched->name);
      if (out.value && !std::isfinite(*out.value)) out.value.reset();
    }
    cli::print(str(i + 1, "/", trials.size(), "  ", join(trials[i], " "), "  ", watched->name, " ",
                   out.value ? cli::short_number(*out.value) : out.status, "\n"));
  }
  if (const int signal = pending_interrupt()) return 128 + signal;
  sort_outcomes(outcomes, watched->larger_is_better);
  nlohmann::ordered_json record = {{"metric", watched->name}, {"trials", nlohmann::json::array()}};
  cli::Table table({watched->name, "run"});
  for (const train::SweptKey& key : keys) table.add_column(key.key);
  for (const Outcome& each : outcomes) {
    std::vector<std::string> row = {each.value ? cli::short_number(*each.value) : each.status,
                                    each.folder};
    nlohmann::ordered_json line = {{"run", each.folder}, {"status", each.status}};
    line["value"] = each.value ? nlohmann::ordered_json(*each.value) : nlohmann::ordered_json();
    line["settings"] = each.trial;
    for (const std::string& setting : each.trial)
      row.push_back(setting.substr(setting.find('=') + 1));
    table.add_row(std::move(row));
    record["trials"].push_back(std::move(line));
  }
  write_file_atomically((fs::path(output) / "sweep.json").string(), record.dump(2) + "\n");
  cli::print(table.text());
  if (!outcomes.empty() && outcomes[0].value) {
    const std::string best = (fs::path(output) / "best.yaml").string();
    write_file_atomically(best, read_file(join_path(outcomes[0].folder, "config.yaml"), 1 << 26));
    cli::print(str("best: ", outcomes[0].folder, "; its config is ", best, "\n"));
  }
  if (as_json) cli::print(record.dump() + "\n");
  const bool failed = std::any_of(outcomes.begin(), outcomes.end(),
                                  [](const Outcome& each) { return each.status == "failed"; });
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return paddle::cli::run_tool([&] { return run(argc, argv); });
}
