#pragma once
// Running many small jobs in child processes, so that one that crashes, runs out of memory or never
// ends is one failure and the rest still run.

#include <cstddef>
#include <functional>
#include <string>

namespace paddle::inspect {

struct IsolationOptions {
  int workers = 1;               ///< children at a time, each with its share of the threads
  double timeout_seconds = 120;  ///< of processor time, for one job
};

/// Runs job(i) for i in [0, count). A job returns "" or one line that says what failed; a child
/// that dies yields the line "crashed: …" for the job it was at. `report` gets each result, in
/// order. Call it before this process has started threads of its own.
void run_isolated(size_t count, const std::function<std::string(size_t)>& job,
                  const std::function<void(size_t, const std::string&)>& report,
                  const IsolationOptions& options);

}  // namespace paddle::inspect
