#pragma once
// Training runs as child processes, for commands that try settings.

#include <string>
#include <vector>

namespace paddle::cli {

/// Runs the paddle-train beside this program, its output appended to the file `log`; the exit
/// status, or 128 and the signal.
int run_trainer(const std::vector<std::string>& arguments, const std::string& log);

/// The last line of a log: the error of a run that failed.
std::string last_line(const std::string& log);

}  // namespace paddle::cli
