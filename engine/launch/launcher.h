#pragma once
// Starts the ranks of a run as processes of this machine, lets them find each other, watches them,
// and ends them together: none outlives the launcher.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace paddle::launch {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> command;  ///< program and arguments, the same for each rank
  std::string logs;                  ///< folder for rank-N.log; "": none
  /// A rank that has been stopped (SIGSTOP) longer than this counts as lost.
  std::chrono::milliseconds dead_after = std::chrono::seconds(10);
  /// Time for the other ranks to end by themselves after one has failed.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  /// Called with the output of rank 0, standard output or standard error.
  std::function<void(const std::string& bytes, bool is_error)> output;
};

struct LaunchResult {
  int status = 0;  ///< exit status of the run
  /// The first failure, in one line that names the rank; "" after success.
  std::string error;
};

/// Runs the command on all ranks. A rank that fails by itself decides the status, with its own
/// message; kPeer (7) if a rank was killed or stopped. SIGINT and SIGTERM go to all ranks once; a
/// second one kills them.
LaunchResult launch(const LaunchOptions& options);

}  // namespace paddle::launch
