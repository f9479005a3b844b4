#include "tune/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace paddle::tune {
namespace {

/// A slow candidate whose first run takes this many times the time is rejected without a
/// comparison.
constexpr double kEarlyRejectRatio = 1.25;
/// The search proper ends at this share of the limit; comparing all changes takes the rest.
constexpr double kSearchShare = 0.85;
constexpr const char* kUndecided = "not decided within its share of the time";

using Clock = std::chrono::steady_clock;

/// Runs blocks and keeps how long the last one took.
class TimedRunner {
 public:
  TimedRunner(std::unique_ptr<Runner> runner, double block_seconds)
      : runner_(std::move(runner)), block_seconds_(block_seconds) {
    const Runner::FirstRun run = runner_->first_run();
    is_slow_ = run.seconds >= Runner::kSlow;
    seconds_ = run.seconds;
    first_ = is_slow_ ? run.of_sample : block();
  }
  double block() {
    const auto begin = Clock::now();
    const double time = runner_->block(block_seconds_);
    seconds_ = seconds_since(begin);
    return time;
  }
  bool is_slow() const { return is_slow_; }
  double first() const { return first_; }      ///< of a sample, in the first run or block
  double seconds() const { return seconds_; }  ///< of the last block

 private:
  std::unique_ptr<Runner> runner_;
  double block_seconds_, first_ = 0, seconds_ = 0;
  bool is_slow_ = false;
};

/// As many rounds of two blocks as fit into the time, between a few and `most`.
int rounds_within(double seconds, const TimedRunner& runner, int most) {
  if (!runner.is_slow()) return most;
  return std::clamp(static_cast<int>(seconds / (2 * runner.seconds())), 4, most);
}

class Search {
 public:
  Search(TuningTarget& subject, const SearchOptions& options)
      : target_(subject), options_(options), begin_(Clock::now()) {
    result_.start = result_.best = subject.start();
  }

  Result run() {
    replay();
    explore();
    constexpr int kMinRounds = 3;  // that say something
    const bool none_measured = std::ranges::all_of(result_.trials, [](const Trial& t) {
      return t.outcome == ComparisonResult::kStopped && t.rounds < kMinRounds;
    });
    if (none_measured && !result_.finished && !options_.interrupted())
      fail(ErrorCode::kUsage,
           "no time is left after warm-up: the first measurement did not end in ",
           format_double(options_.time_limit), " s; raise --time-limit");
    confirm_total();
    return std::move(result_);
  }

 private:
  enum class Outcome { kTaken, kDecided, kUndecided, kNothingLeft };

  double elapsed() const { return seconds_since(begin_); }
  double limit() const { return kSearchShare * options_.time_limit; }
  bool stop(double end) const { return options_.interrupted() || elapsed() >= end; }

  /// Part of the budget up to `end`, a time since the begin.
  Budget budget(double end) {
    return {.seconds = std::max(0.0, end - elapsed()),
            .stop = [this, end] { return stop(end); },
            .save = [this] { options_.save(result_.trials); }};
  }

  /// Takes the finished trials of an interrupted search, as far as they build on each other.
  void replay() {
    for (const Trial& trial : options_.known) {
      if (trial.outcome == ComparisonResult::kStopped || trial.base != result_.best ||
          std::count(options_.dimensions.begin(), options_.dimensions.end(), trial.dimension) == 0)
        continue;
      report(trial);
      take(trial);
    }
  }

  /// Each dimension gets a share of the time for its first candidate, so that a short search tries
  /// a bit of everything. What is left goes to the other candidates in turn.
  void explore() {
    std::vector<std::string> open = options_.dimensions;
    for (bool covered = false; !open.empty() && !stop(limit()); covered = true)
      for (size_t i = 0; i < open.size() && !stop(limit());) {
        const bool tried = !tried_[open[i]].empty();
        if (!covered && tried) {
          ++i;
          continue;
        }
        const double share = covered ? 1 : 1 / static_cast<double>(open.size() - i);
        const Outcome outcome =
            try_next(open[i], elapsed() + share * (limit() - elapsed()), covered);
        if (outcome == Outcome::kNothingLeft)
          open.erase(open.begin() + static_cast<ptrdiff_t>(i));
        else if (outcome != Outcome::kTaken || !covered)
          ++i;
      }
    const auto undecided = [](const Trial& t) { return t.outcome == ComparisonResult::kStopped; };
    result_.finished =
        open.empty() && std::none_of(result_.trials.begin(), result_.trials.end(), undecided);
  }

  /// Tries the next change of a dimension, up to `end`. One that could not be decided is tried
  /// again later, unless this is the `last` time.
  Outcome try_next(const std::string& dimension, double end, bool last) {
    const double half = elapsed() + (end - elapsed()) / 2;
    const std::vector<Change> candidates =
        target_.candidates(dimension, result_.best, budget(half));
    auto& tried = tried_[dimension];
    const auto next = std::find_if(candidates.begin(), candidates.end(), [&](const Change& c) {
      return !tried.contains({c.key, c.value});
    });
    if (next == candidates.end()) return stop(end) ? Outcome::kUndecided : Outcome::kNothingLeft;
    Trial trial;
    trial.dimension = dimension;
    trial.change = *next;
    trial.before = result_.best[next->key];
    trial.base = result_.best;
    measure(trial, end);
    report(trial);
    const bool decided = trial.outcome != ComparisonResult::kStopped;
    const bool accepted = trial.accepted;
    if (last) tried.insert({next->key, next->value});
    take(std::move(trial));
    options_.save(result_.trials);
    return accepted ? Outcome::kTaken : decided ? Outcome::kDecided : Outcome::kUndecided;
  }

  /// Adds a trial, in place of an undecided one of the same change.
  void take(Trial trial) {
    std::erase_if(result_.trials, [&](const Trial& t) {
      return t.outcome == ComparisonResult::kStopped && t.dimension == trial.dimension &&
             t.change.key == trial.change.key && t.change.value == trial.change.value;
    });
    if (trial.outcome != ComparisonResult::kStopped)
      tried_[trial.dimension].insert({trial.change.key, trial.change.value});
    if (trial.accepted) {
      tried_[trial.dimension].insert({trial.change.key, trial.before});  // which has just lost
      result_.best[trial.change.key] = trial.change.value;
    }
    result_.trials.push_back(std::move(trial));
  }

  std::unique_ptr<TimedRunner> open(const Settings& settings) {
    return std::make_unique<TimedRunner>(target_.open(settings), options_.block_seconds);
  }

  /// The runner of the best settings so far, kept between trials.
  TimedRunner& incumbent() {
    if (!incumbent_ || incumbent_settings_ != result_.best) {
      incumbent_.reset();
      incumbent_ = open(result_.best);
      incumbent_settings_ = result_.best;
    }
    return *incumbent_;
  }

  /// Sets the outcome of a trial; it stays kStopped if there was no time to finish.
  void measure(Trial& trial, double end) {
    trial.why = kUndecided;
    Settings settings = result_.best;
    settings[trial.change.key] = trial.change.value;
    TimedRunner& base = incumbent();
    std::unique_ptr<TimedRunner> candidate;
    try {
      candidate = open(settings);
    } catch (const Error& e) {
      // A candidate that does not fit must not end the search.
      if (e.code() != ErrorCode::kDevice && e.code() != ErrorCode::kConfig &&
          e.code() != ErrorCode::kData)
        throw;
      trial.outcome = ComparisonResult::kSame;
      trial.why = e.message();
      return;
    }
    const bool slow = base.is_slow();
    if (slow && candidate->is_slow() && candidate->first() > kEarlyRejectRatio * base.first()) {
      const double gain = base.first() / candidate->first() - 1;
      trial.gain = {gain, gain, gain};
      trial.rounds = 1;
      trial.outcome = ComparisonResult::kSlower;
      trial.why = "slower in its first run";
      return;
    }
    const auto stopped = [this, end] { return stop(end); };
    const auto run_base = [&] { return base.block(); };
    const auto run_candidate = [&] { return candidate->block(); };
    const Comparison first = compare(
        run_base, run_candidate, {.min_rounds = slow ? 3 : 5, .worth = options_.worth}, stopped);
    trial.gain = first.gain;
    trial.rounds = first.rounds;
    if (first.outcome == ComparisonResult::kStopped) return;
    if (first.outcome != ComparisonResult::kFaster) {
      trial.outcome = first.outcome;
      trial.why = first.outcome == ComparisonResult::kSlower ? "slower" : "no gain above noise";
      return;
    }
    const auto rejection_reason = target_.rejection_reason(result_.best, trial.change, budget(end));
    if (!rejection_reason) {
      trial.why = "faster, but no time was left to compare its results";
      return;
    }
    if (!rejection_reason->empty()) {
      trial.outcome = first.outcome;
      trial.why = *rejection_reason;
      return;
    }
    // The winner of a comparison was partly lucky: the claimed gain is measured again, with a fixed
    // number of rounds.
    const int rounds = rounds_within(end - elapsed(), base, 12);
    const Comparison second = compare(
        run_base, run_candidate, {.min_rounds = rounds, .max_rounds = rounds, .worth = 0}, stopped);
    trial.rounds += second.rounds;
    if (second.outcome == ComparisonResult::kStopped) return;
    trial.gain = second.gain;
    trial.outcome = second.outcome;
    trial.accepted = second.outcome == ComparisonResult::kFaster;
    trial.why = trial.accepted ? "" : "a second measurement did not confirm the gain";
    if (!trial.accepted) return;
    candidate.reset();
    trial.same_bits = target_.same_bits(result_.best, settings);
  }

  void report(const Trial& t) const {
    options_.note(str(t.change.key, " ", t.before.empty() ? "none" : t.before, " → ",
                      t.change.value, ": ", t.rounds > 1 ? text(t.gain) + ", " : "",
                      t.accepted ? t.same_bits ? "taken, same bits" : "taken, other bits" : t.why));
  }

  /// Measures all accepted changes together against the start; without a gain there is no change.
  void confirm_total() {
    std::vector<const Trial*> accepted;
    for (const Trial& t : result_.trials)
      if (t.accepted) accepted.push_back(&t);
    if (accepted.empty()) return;
    if (accepted.size() == 1) {  // it was measured against the start
      result_.total = {accepted[0]->gain, accepted[0]->rounds, ComparisonResult::kFaster};
      result_.same_bits = accepted[0]->same_bits;
      return;
    }
    options_.note("all changes together against the start");
    incumbent_.reset();
    const auto base = open(result_.start), tuned = open(result_.best);
    const int rounds = rounds_within((1 - kSearchShare) * options_.time_limit, *base, 16);
    result_.total = compare([&] { return base->block(); }, [&] { return tuned->block(); },
                            {.min_rounds = rounds, .max_rounds = rounds, .worth = 0},
                            [this] { return options_.interrupted(); });
    if (result_.total.outcome == ComparisonResult::kStopped) return;
    if (result_.total.outcome != ComparisonResult::kFaster) {
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
    result_.same_bits = target_.same_bits(result_.start, result_.best);
  }

  TuningTarget& target_;
  const SearchOptions& options_;
  Clock::time_point begin_;
  Result result_;
  /// Changes that are not tried again, by dimension.
  std::map<std::string, std::set<std::pair<std::string, std::string>>> tried_;
  std::unique_ptr<TimedRunner> incumbent_;
  Settings incumbent_settings_;
};

}  // namespace

std::string text(const Gain& gain) {
  return fmt::format("{:+.1f}% ({:.1f} to {:.1f})", 100 * gain.mean, 100 * gain.low,
                     100 * gain.high);
}

Result search(TuningTarget& subject, const SearchOptions& options) {
  return Search(subject, options).run();
}

}  // namespace paddle::tune
