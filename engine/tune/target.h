#pragma once
// The subject of tuning: a training run or a model, as a search sees it. It offers changes of its
// settings and runs under any of them.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace paddle::tune {

/// Values of settings by key; keys are those of a config ("data.workers") or, for a model, of
/// paddle-infer's options ("batch").
using Settings = std::map<std::string, std::string>;

struct Change {
  std::string key, value;
};

/// The subject under some settings, ready to run.
class Runner {
 public:
  virtual ~Runner() = default;
  /// The seconds of the first run and of one of its samples, if runs are too slow for a search to
  /// spend one on warming up; 0 otherwise.
  struct FirstRun {
    double seconds = 0, of_sample = 0;
  };
  static constexpr double kSlow = 0.5;  ///< seconds of such a run
  virtual FirstRun first_run() const { return {}; }
  /// Runs for about `seconds`, at least one step; returns the seconds for one sample.
  virtual double block(double seconds) = 0;
};

/// The time that a part of a search may take, and how it keeps what it has found so far.
struct Budget {
  double seconds = 0;
  std::function<bool()> stop = [] { return false; };  ///< the time is up, or the user interrupts
  std::function<void()> save = [] {};                 ///< state() has grown
  bool measures = true;  ///< false: name what would be tried and measure nothing
};

class TuningTarget {
 public:
  virtual ~TuningTarget() = default;
  virtual std::string name() const = 0;
  virtual std::string kind() const = 0;  ///< "training" or "inference"
  /// In the order of the search: first what gains most.
  virtual std::vector<std::string> dimensions() const = 0;
  virtual Settings start() const = 0;
  /// Changes to try in a dimension, under the settings found so far. Some are searched for, within
  /// the budget.
  virtual std::vector<Change> candidates(const std::string& dimension, const Settings& now,
                                         const Budget& budget) = 0;
  /// An Error of kDevice if the memory does not suffice, of kConfig if the settings do not fit.
  virtual std::unique_ptr<Runner> open(const Settings& settings) = 0;
  /// Why a change is not acceptable whatever its speed, such as a loss that moves; "" if it is, and
  /// nothing if the budget does not suffice to say.
  virtual std::optional<std::string> rejection_reason(const Settings& now, const Change& change,
                                                      const Budget& budget) = 0;
  /// Runs a few steps under both settings and compares their results bit for bit.
  virtual bool same_bits(const Settings& a, const Settings& b) = 0;
  /// Writes what a setting refers to, such as a table of kernels, into the folder of the results,
  /// and returns the value that a user states; "" for what holds without being stated.
  virtual std::string publish(const Change& change, const std::string& folder) = 0;
  /// The findings of searches within dimensions, as JSON, for a later process; "" for none.
  virtual std::string state() const { return ""; }
  /// Takes state() of an earlier search. kData if it is not one.
  virtual void restore(const std::string&) {}
};

}  // namespace paddle::tune
