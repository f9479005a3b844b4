// paddle-sweep CONFIG key=1,2,3 …: trains a config with many settings and compares the runs.

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/interrupt.h"
#include "commands.h"
#include "common.h"
#include "common_model_files.h"
#include "common_options.h"
#include "common_table.h"
#include "common_trial.h"
#include "sections/sections.h"
#include "train/config/run_config.h"
#include "train/runs/run_index.h"
#include "train/sweeps/sweep.h"
#include "train/sweeps/sweep_page.h"

namespace {

using namespace paddle;
namespace fs = std::filesystem;

using train::SweptRun;

/// The best value comes first; trials that were trained for longer come before the others, and
/// trials without a value last.
void sort_runs(std::vector<SweptRun>& runs, bool larger) {
  std::stable_sort(runs.begin(), runs.end(), [&](const SweptRun& a, const SweptRun& b) {
    if (a.value.has_value() != b.value.has_value()) return a.value.has_value();
    if (a.share != b.share) return a.share > b.share;
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

/// "11.1%"
std::string percent(double share) { return fmt::format("{:.3g}%", 100 * share); }

/// Trains the trials of a sweep and keeps its record, sweep.json.
class Sweep {
 public:
  std::string config, output;
  std::vector<std::string> fixed;  ///< settings of every trial
  std::vector<train::Trial> trials;
  std::vector<std::string> digests;  ///< of the trials: what their results depend on
  train::WatchedMetric watched;
  int64_t halving = 0;  ///< factor of successive halving; 0: every trial is trained to its end

  /// 0, or the status to end with when a signal has arrived.
  int train() {
    ensure_directory(output);
    const train::FolderLock lock(output, "sweep");
    read_record();
    for (size_t i = 0; i < trials.size(); ++i) {
      SweptRun& run = runs_.emplace_back();
      run.trial = trials[i];
      run.folder = (fs::path(output) / train::trial_name(i, trials[i])).string();
      run.share = 0;
    }
    const std::vector<train::Rung> rungs = halving > 0
                                               ? train::halving_rungs(trials.size(), halving)
                                               : std::vector<train::Rung>{{1, trials.size()}};
    std::vector<SweptRun*> alive;
    for (SweptRun& run : runs_) alive.push_back(&run);
    for (const train::Rung& rung : rungs) {
      keep_best(alive, rung.trials);
      if (halving > 0)
        cli::print(str("round: ", alive.size(), " trials up to ", percent(rung.share), "\n"));
      for (size_t i = 0; i < alive.size(); ++i) {
        if (const int signal = pending_interrupt()) return 128 + signal;
        if (const int status = train_up_to(*alive[i], rung.share)) return status;
        write_record();
        SweptRun& run = *alive[i];
        if (&rung == &rungs.front()) run.first = run.value;
        cli::print(str(i + 1, "/", alive.size(), "  ", join(run.trial, " "), "  ", watched.name,
                       " ", run.value ? cli::short_number(*run.value) : run.status, "\n"));
      }
    }
    if (const int signal = pending_interrupt()) return 128 + signal;
    sort_runs(runs_, watched.larger_is_better);
    write_record();
    return 0;
  }

  const std::vector<SweptRun>& runs() const { return runs_; }
  std::string record_text(int indent) const { return record().dump(indent); }

 private:
  std::string record_path() const { return (fs::path(output) / "sweep.json").string(); }

  /// The file with the digest of the trial in a run folder.
  static std::string digest_file(const std::string& folder) { return folder + ".digest"; }

  /// Removes what a trial with other settings or other data has left in the folder: the results of
  /// its run, which would count as those of this trial. Whether there was something.
  bool forget_other_trial(const SweptRun& run, const std::string& digest) {
    const std::string file = digest_file(run.folder);
    const bool is_same = file_exists(file) && read_file(file, 1 << 16) == digest + "\n";
    const bool has_results = train::is_run_folder(run.folder);
    if (!is_same) {
      values_.erase(run.folder);
      std::error_code error;
      if (has_results)
        for (const char* name : {"checkpoints", "metrics.jsonl"}) {
          fs::remove_all(fs::path(run.folder) / name, error);
          if (error) fail(ErrorCode::kDevice, run.folder, ": ", error.message());
        }
      write_file_atomically(file, digest + "\n");
    }
    return has_results && !is_same;
  }

  /// Trials without a value are out; the order of the others stays that of the trials.
  void keep_best(std::vector<SweptRun*>& alive, size_t count) const {
    if (count >= alive.size()) return;
    std::erase_if(alive, [](const SweptRun* run) { return !run->value; });
    std::vector<SweptRun*> best = alive;
    std::stable_sort(best.begin(), best.end(), [&](const SweptRun* a, const SweptRun* b) {
      return watched.larger_is_better ? *a->value > *b->value : *a->value < *b->value;
    });
    best.resize(std::min(count, best.size()));
    std::erase_if(alive, [&](const SweptRun* run) {
      return std::find(best.begin(), best.end(), run) == best.end();
    });
  }

  /// 0, or the status to end with when the trial was interrupted.
  int train_up_to(SweptRun& run, double share) {
    run.share = share;
    run.status.clear();
    const auto number = static_cast<size_t>(&run - runs_.data());
    if (forget_other_trial(run, digests[number]))
      cli::print(str(run.folder, ": is trained again, its settings or data have changed\n"));
    auto& values = values_[run.folder];
    const bool is_there = train::is_run_folder(run.folder);
    const bool has_checkpoints = is_directory((fs::path(run.folder) / "checkpoints").string());
    if (const auto known = values.find(share); known != values.end() && is_there) {
      run.value = known->second;
      run.status = "finished";
      return 0;
    }
    if (!is_there || halving > 0 || train::read_run(run.folder).status != "finished") {
      std::vector<std::string> words = {config};
      words.insert(words.end(), fixed.begin(), fixed.end());
      words.insert(words.end(), run.trial.begin(), run.trial.end());
      words.emplace_back(has_checkpoints ? "--resume" : "--output");
      words.push_back(run.folder);
      if (is_there && !has_checkpoints) words.emplace_back("--overwrite");
      if (share < 1) words.insert(words.end(), {"--until", format_double(100 * share) + "%"});
      const std::string log = run.folder + ".log";
      const int status = cli::run_trainer(words, log);
      if (status > 128 || pending_interrupt()) {
        cli::print(str("stopped in ", run.folder, "; the same command continues\n"));
        return status > 128 ? status : 128 + pending_interrupt();
      }
      if (status != 0) {
        run.status = "failed";
        run.value.reset();
        cli::print_error(str(run.folder, ": status ", status, ": ", cli::last_line(log)));
        return 0;
      }
    }
    const train::RunInfo info = train::read_run(run.folder);
    run.status = info.status;
    run.value = info.metric(watched.name);
    if (run.value && !std::isfinite(*run.value)) run.value.reset();
    if (run.value) values[share] = *run.value;
    return 0;
  }

  nlohmann::ordered_json record() const {
    nlohmann::ordered_json out = {{"metric", watched.name}, {"halving", halving}};
    out["trials"] = nlohmann::json::array();
    for (const SweptRun& run : runs_) {
      nlohmann::ordered_json line = {{"run", run.folder}, {"status", run.status}};
      line["value"] = run.value ? nlohmann::ordered_json(*run.value) : nlohmann::ordered_json();
      line["trained"] = run.share;
      line["settings"] = run.trial;
      if (const auto known = values_.find(run.folder); halving > 0 && known != values_.end())
        for (const auto& [share, value] : known->second)
          line["rounds"].push_back({{"trained", share}, {"value", value}});
      out["trials"].push_back(std::move(line));
    }
    return out;
  }
  void write_record() const { write_file_atomically(record_path(), record().dump(2) + "\n"); }

  /// Values of rounds that an earlier call has trained. A damaged record is as good as none.
  void read_record() {
    if (!file_exists(record_path())) return;
    const auto old = nlohmann::json::parse(read_file(record_path(), 1 << 28), nullptr, false);
    if (!old.is_object()) return;
    const auto number = [](const nlohmann::json& in, const char* key) {
      const auto it = in.find(key);
      return it != in.end() && it->is_number() ? it->get<double>() : 0.0;
    };
    if (const auto factor = static_cast<int64_t>(number(old, "halving")); factor != halving)
      fail(ErrorCode::kUsage, output, " has a sweep ",
           factor > 0 ? str("with --halving ", factor) : "without --halving",
           "; continue it so, or choose another --output");
    if (halving == 0 || old.value("metric", nlohmann::json()) != watched.name) return;
    const auto lines = old.find("trials");
    if (lines == old.end() || !lines->is_array()) return;
    for (const auto& line : *lines) {
      const auto run = line.is_object() ? line.find("run") : line.end();
      if (!line.is_object() || run == line.end() || !run->is_string()) continue;
      const auto rounds = line.find("rounds");
      if (rounds == line.end() || !rounds->is_array()) continue;
      for (const auto& round : *rounds)
        if (round.is_object())
          values_[run->get<std::string>()][number(round, "trained")] = number(round, "value");
    }
  }

  std::vector<SweptRun> runs_;
  std::map<std::string, std::map<double, double>> values_;  ///< by folder and share
};

int run_sweep(int argc, char** argv) {
  cli::App app{"Trains a config with many settings: a grid of values, or random ones."};
  app.footer(
      "key=1,2,3 tries values, key=1e-4..1e-1 a range (with --random). Keys with one value are set "
      "for all trials. Each trial is a run folder; the same command continues a sweep.");
  std::vector<std::string> arguments;
  std::string metric;
  Sweep sweep;
  int64_t random = 0;
  uint64_t seed = 0;
  bool dry_run = false, as_json = false;
  app.add_option("CONFIG", arguments, "the config, then key=value,…");
  app.add_option("-o,--output", sweep.output,
                 "folder of the runs (default: runs/<config name>-sweep)");
  app.add_option("--metric", metric, "what is compared (default: train.best, or the loss)");
  app.add_option("--random", random, "random trials in place of a grid")
      ->check(cli::in_range(int64_t{1}, int64_t{10000}));
  app.add_option("--seed", seed, "seed of random trials (default: 0)");
  app.add_option("--halving", sweep.halving,
                 "successive halving: train all trials a little, then in each round one of N, for "
                 "N times as long")
      ->check(cli::in_range(int64_t{2}, int64_t{100}));
  app.add_flag("--dry-run", dry_run, "list the trials, check the config, train nothing");
  app.add_flag("--json", as_json, "print one JSON object at the end");
  if (const auto status = cli::read_command_line(app, argc, argv)) return *status;
  const std::vector<std::string> settings = cli::take_overrides(arguments);
  sweep.config = cli::only_config(arguments, "paddle-sweep");
  std::vector<train::SweptKey> keys;
  for (const std::string& text : settings) {
    train::SweptKey key = train::parse_swept(text);
    if (key.values.size() == 1)
      sweep.fixed.push_back(text);
    else
      keys.push_back(std::move(key));
  }
  if (keys.empty())
    fail(ErrorCode::kUsage, "no key has several values, such as optimizer.lr=1e-3,1e-2");
  sweep.trials = random > 0 ? train::random_trials(keys, random, seed) : train::grid_trials(keys);
  // Every trial must be a config that can run; what is wrong is found before the first one trains.
  std::string name;
  for (const train::Trial& trial : sweep.trials) {
    std::vector<std::string> overrides = sweep.fixed;
    overrides.insert(overrides.end(), trial.begin(), trial.end());
    const train::RunConfig config =
        train::read_config(sweep.config, cli::with_model_files(sweep.config, std::move(overrides)));
    if (name.empty()) sweep.watched = choose_metric(config, metric), name = config.name;
    if (!dry_run) sweep.digests.push_back(train::trial_digest(config.document));
  }
  if (sweep.output.empty()) sweep.output = (fs::path("runs") / (name + "-sweep")).string();
  cli::print(str(sweep.trials.size(), " trials of ", sweep.config, " in ", sweep.output,
                 ", compared by ", sweep.watched.name, "\n"));
  if (dry_run) {
    for (size_t i = 0; i < sweep.trials.size(); ++i)
      cli::print(
          str("  ", train::trial_name(i, sweep.trials[i]), "  ", join(sweep.trials[i], " "), "\n"));
    if (sweep.halving > 0)
      for (const train::Rung& rung : train::halving_rungs(sweep.trials.size(), sweep.halving))
        cli::print(str("  round: ", rung.trials, " trials up to ", percent(rung.share),
                       " of their steps\n"));
    return 0;
  }
  watch_for_interrupts();
  if (const int status = sweep.train()) return status;
  const std::vector<SweptRun>& runs = sweep.runs();
  cli::Table table({sweep.watched.name, "run"});
  for (const train::SweptKey& key : keys) table.add_column(key.key);
  if (sweep.halving > 0) table.add_column("trained");
  for (const SweptRun& each : runs) {
    std::vector<std::string> row = {each.value ? cli::short_number(*each.value) : each.status,
                                    each.folder};
    for (const std::string& setting : each.trial)
      row.push_back(setting.substr(setting.find('=') + 1));
    if (sweep.halving > 0) row.push_back(percent(each.share));
    table.add_row(std::move(row));
  }
  cli::print(table.text());
  const std::string page = (fs::path(sweep.output) / "sweep.html").string();
  write_file_atomically(page, train::sweep_page(sweep.output, sweep.watched.name, runs));
  cli::print("page: " + page + "\n");
  if (!runs.empty() && runs[0].value) {
    const std::string best = (fs::path(sweep.output) / "best.yaml").string();
    write_file_atomically(best, read_file(join_path(runs[0].folder, "config.yaml"), 1 << 26));
    cli::print(str("best: ", runs[0].folder, "; its config is ", best, "\n"));
  }
  if (as_json) cli::print(sweep.record_text(-1) + "\n");
  const bool failed = std::any_of(runs.begin(), runs.end(),
                                  [](const SweptRun& each) { return each.status == "failed"; });
  return failed ? 1 : 0;
}

}  // namespace

namespace paddle::cli {

int sweep_command(int argc, char** argv) {
  return run_tool([&] {
    register_sections();
    return run_sweep(argc, argv);
  });
}

}  // namespace paddle::cli
