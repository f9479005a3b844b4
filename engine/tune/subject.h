#pragma once
// The subject of tuning: a training run or a model, as a search sees it. It offers changes of its
// settings and runs under any of them.

#include <map>
#include <memory>
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
  /// Runs for about `seconds`, at least one step; returns the seconds for one sample.
  virtual double block(double seconds) = 0;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::string name() const = 0;
  virtual std::string kind() const = 0;  ///< "training" or "inference"
  virtual std::vector<std::string> dimensions() const = 0;
  virtual Settings start() const = 0;
  /// Changes to try in a dimension, under the settings found so far.
  virtual std::vector<Change> candidates(const std::string& dimension, const Settings& now) = 0;
  /// An Error of kDevice if the memory does not suffice, of kConfig if the settings do not fit.
  virtual std::unique_ptr<Runner> open(const Settings& settings) = 0;
  /// Why a change is not acceptable whatever its speed, such as a loss that moves; "" if it is.
  virtual std::string objection(const Settings& now, const Change& change) = 0;
  /// Runs a few steps under both settings and compares their results bit for bit.
  virtual bool same_bits(const Settings& a, const Settings& b) = 0;
  /// Writes what a setting refers to, such as a table of kernels, into the folder of the results,
  /// and returns the value that a user states; "" for what holds without being stated.
  virtual std::string publish(const Change& change, const std::string& folder) = 0;
};

}  // namespace paddle::tune
