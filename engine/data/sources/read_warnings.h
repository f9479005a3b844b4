#pragma once
// Warnings about the files or records of a dataset, which several threads read.

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/text.h"

namespace paddle::data {

class ReadWarnings {
 public:
  /// `what` in plural: "files".
  explicit ReadWarnings(const char* what) : what_(what) {}
  /// Keeps the first warning about each place.
  void add(const std::string& place, const std::string& warning) {
    const std::lock_guard lock(mutex_);
    warned_.emplace(place, warning);
  }
  /// One line: the first place by name, and the number of others.
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    if (warned_.empty()) return {};
    const auto& [place, warning] = *warned_.begin();
    std::string line = str(place, ": ", warning);
    if (warned_.size() > 1) line += str(" (and ", warned_.size() - 1, " more such ", what_, ")");
    return {line};
  }

 private:
  const char* what_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> warned_;  ///< by place
};

}  // namespace paddle::data
