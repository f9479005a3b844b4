#include "tune/search.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace paddle::tune {
namespace {

class Search {
 public:
  Search(Subject& subject, const SearchOptions& options)
      : subject_(subject), options_(options), begin_(Clock::now()) {
    result_.start = result_.best = subject.start();
  }

  Result run() {
    result_.finished = true;
    for (const std::string& dimension : options_.dimensions)
      if (!explore(dimension)) {
        result_.finished = false;
        break;
      }
    if (result_.trials.empty() && !result_.finished && !options_.interrupted())
      fail(ErrorCode::kUsage,
           "no time is left after warm-up: the first measurement did not end in ",
           format_double(options_.time_limit), " s; raise --time-limit");
    confirm_total();
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  bool stop() const { return options_.interrupted() || elapsed() > options_.time_limit; }

  /// The result of this trial in an interrupted search, or null.
  const Trial* known(const std::string& dimension, const Change& change) const {
    for (const Trial& t : options_.known)
      if (t.dimension == dimension && t.change.key == change.key &&
          t.change.value == change.value && t.base == result_.best)
        return &t;
    return nullptr;
  }

  /// False if the search was stopped.
  bool explore(const std::string& dimension) {
    std::set<std::pair<std::string, std::string>> tried;
    while (true) {
      if (stop()) return false;
      const std::vector<Change> candidates = subject_.candidates(dimension, result_.best);
      const auto next = std::find_if(candidates.begin(), candidates.end(), [&](const Change& c) {
        return !tried.contains({c.key, c.value});
      });
      if (next == candidates.end()) return true;
      tried.insert({next->key, next->value});
      Trial trial;
      if (const Trial* before = known(dimension, *next)) {
        trial = *before;
      } else if (!measure(dimension, *next, trial)) {
        return false;
      }
      report(trial);
      if (trial.accepted) {
        tried.insert({next->key, trial.before});  // which has just lost
        result_.best[next->key] = next->value;
      }
      result_.trials.push_back(std::move(trial));
      options_.save(result_.trials);
    }
  }

  /// The runner of the best settings so far, kept between trials.
  Runner& incumbent() {
    if (!incumbent_ || incumbent_settings_ != result_.best) {
      incumbent_.reset();
      incumbent_ = subject_.open(result_.best);
      incumbent_settings_ = result_.best;
      incumbent_->block(options_.block_seconds);
    }
    return *incumbent_;
  }

  /// False if there was no time to finish.
  bool measure(const std::string& dimension, const Change& change, Trial& trial) {
    trial.dimension = dimension;
    trial.change = change;
    trial.before = result_.best[change.key];
    trial.base = result_.best;
    Settings settings = result_.best;
    settings[change.key] = change.value;
    Runner& base = incumbent();
    std::unique_ptr<Runner> candidate;
    try {
      candidate = subject_.open(settings);
      candidate->block(options_.block_seconds);
    } catch (const Error& e) {
      // A candidate that does not fit must not end the search.
      if (e.code() != ErrorCode::kDevice && e.code() != ErrorCode::kConfig &&
          e.code() != ErrorCode::kData)
        throw;
      trial.verdict = Verdict::kSame;
      trial.why = e.message();
      return true;
    }
    const auto stopped = [this] { return stop(); };
    const auto run_base = [&] { return base.block(options_.block_seconds); };
    const auto run_candidate = [&] { return candidate->block(options_.block_seconds); };
    Race first = race(run_base, run_candidate, {.worth = options_.worth}, stopped);
    trial.gain = first.gain;
    trial.rounds = first.rounds;
    trial.verdict = first.verdict;
    if (first.verdict == Verdict::kStopped) return false;
    if (first.verdict != Verdict::kFaster) {
      trial.why = first.verdict == Verdict::kSlower ? "slower" : "no gain above noise";
      return true;
    }
    trial.why = subject_.objection(result_.best, change);
    if (!trial.why.empty()) return true;
    // The winner of a race was partly lucky: what is claimed is measured anew, with a fixed number
    // of rounds.
    const RaceOptions again{.min_rounds = 12, .max_rounds = 12, .worth = 0};
    const Race second = race(run_base, run_candidate, again, stopped);
    trial.rounds += second.rounds;
    if (second.verdict == Verdict::kStopped) return false;
    trial.gain = second.gain;
    trial.verdict = second.verdict;
    trial.accepted = second.verdict == Verdict::kFaster;
    if (!trial.accepted) {
      trial.why = "a second measurement did not confirm the gain";
      return true;
    }
    candidate.reset();
    trial.same_bits = subject_.same_bits(result_.best, settings);
    return true;
  }

  void report(const Trial& t) const {
    options_.note(str(t.change.key, " ", t.before, " → ", t.change.value, ": ",
                      t.rounds > 0 ? text(t.gain) + ", " : "",
                      t.accepted ? t.same_bits ? "taken, same bits" : "taken, other bits" : t.why));
  }

  /// Measures all accepted changes together against the start; without a gain there is no change.
  void confirm_total() {
    if (result_.best == result_.start) return;
    options_.note("all changes together against the start");
    incumbent_.reset();
    const auto base = subject_.open(result_.start), tuned = subject_.open(result_.best);
    base->block(options_.block_seconds);
    tuned->block(options_.block_seconds);
    result_.total = race([&] { return base->block(options_.block_seconds); },
                         [&] { return tuned->block(options_.block_seconds); },
                         {.min_rounds = 16, .max_rounds = 16, .worth = 0},
                         [this] { return options_.interrupted(); });
    if (result_.total.verdict == Verdict::kStopped) return;
    if (result_.total.verdict != Verdict::kFaster) {
      options_.note("together they are not faster (" + text(result_.total.gain) +
                    "); the settings stay as they were");
      for (Trial& t : result_.trials) {
        if (!t.accepted) continue;
        t.accepted = false;
        t.why = "not faster together with the other changes";
      }
      result_.best = result_.start;
      return;
    }
    result_.same_bits = subject_.same_bits(result_.start, result_.best);
  }

  Subject& subject_;
  const SearchOptions& options_;
  Clock::time_point begin_;
  Result result_;
  std::unique_ptr<Runner> incumbent_;
  Settings incumbent_settings_;
};

}  // namespace

std::string text(const Gain& gain) {
  char line[64];
  std::snprintf(line, sizeof line, "%+.1f%% (%.1f to %.1f)", 100 * gain.mean, 100 * gain.low,
                100 * gain.high);
  return line;
}

Result search(Subject& subject, const SearchOptions& options) {
  return Search(subject, options).run();
}

}  // namespace paddle::tune
