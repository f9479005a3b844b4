#pragma once
// The group `fuzz`: random calls of operations, whose results are compared. Each call that fails is
// made smaller while it still fails.

#include <cstdint>
#include <functional>
#include <string>

namespace paddle::conformance {

struct RandomCalls {
  std::function<void()> load;  ///< the plug-in, in the process of a call
  /// An operation, which is compared with its body on the CPU; "" for all of the engine on
  /// `device`.
  std::string operation;
  std::string device;
  std::string arguments;  ///< of `paddle op run`, to repeat a call: "--plugin acme.so"
  uint64_t seed = 1;
  size_t first = 0, count = 0;  ///< the numbers of the calls
  double timeout_seconds = 10;  ///< processor time of a call
};

/// "", or the smallest call that was found to fail, with the command that repeats it. A line that
/// begins with kNote says how many calls were compared. Runs the calls in child processes, so the
/// plug-in must not be loaded yet.
std::string check_random_calls(const RandomCalls& calls);

}  // namespace paddle::conformance
