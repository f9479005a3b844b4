#pragma once
// A stack of named, timed phases that records what a program is doing, for reports after a failure.
// A phase is an object on the stack of the main thread:
//
//   const Phase phase("planning memory");

#include <chrono>
#include <string>
#include <vector>

namespace paddle {

class Phase {
 public:
  explicit Phase(std::string name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  std::string name_;
  int depth_, exceptions_;
  std::chrono::steady_clock::time_point start_;
};

struct PhaseRecord {
  std::string name;
  int depth = 0;        ///< phases around it
  double seconds = 0;   ///< that it took
  bool failed = false;  ///< left by an exception
};

/// The phases that ended on this thread, in order: the first hundred, and all that failed.
const std::vector<PhaseRecord>& phase_records();

}  // namespace paddle
