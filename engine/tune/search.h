#pragma once
// The search: each change is compared with the best settings so far. A change that wins is measured
// again, and only the second measurement counts. Every dimension tries a first change before any
// tries a second one.

#include <functional>
#include <string>
#include <vector>

#include "tune/comparison.h"
#include "tune/target.h"

namespace paddle::tune {

struct Trial {
  std::string dimension;
  Change change;
  std::string before;  ///< the value that the change replaces
  Settings base;       ///< against which it raced
  ComparisonResult outcome = ComparisonResult::kStopped;
  bool accepted = false;
  bool same_bits = false;  ///< of an accepted change: a few steps with and without it agree
  Gain gain;               ///< of the second measurement if there was one
  int rounds = 0;          ///< of all comparisons
  std::string why;         ///< it was not accepted; kStopped: not decided
};

struct SearchOptions {
  std::vector<std::string> dimensions;
  double time_limit = 300;     ///< seconds
  double block_seconds = 0.1;  ///< of a block of a comparison
  double worth = 0.01;         ///< smallest gain that counts
  std::vector<Trial> known;    ///< finished trials of an interrupted search
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const std::string& line)> note = [](const std::string&) {};
  /// Called after each trial with all so far, to save them.
  std::function<void(const std::vector<Trial>&)> save = [](const std::vector<Trial>&) {};
};

struct Result {
  Settings start, best;
  std::vector<Trial> trials;
  Comparison total;        ///< of `best` against `start`
  bool finished = false;   ///< all candidates were tried and decided
  bool same_bits = false;  ///< a few steps under both gave the same bits
};

/// kUsage if the time limit passes before anything was measured.
Result search(TuningTarget& subject, const SearchOptions& options);

/// "+5.2% (4.1 to 6.3)"
std::string text(const Gain& gain);

}  // namespace paddle::tune
