#pragma once
// Training runs as child processes, for commands that try settings.

#include <string>
#include <vector>

namespace paddle::cli {

/// The config that the arguments name; kUsage with the command's name unless there is one.
std::string only_config(const std::vector<std::string>& arguments, const char* command);

/// Runs the paddle-train next to this program, its output appended to the file `log`; the exit
/// status, or 128 and the signal.
int run_trainer(const std::vector<std::string>& arguments, const std::string& log);

/// The last line of a log: the error of a run that failed.
std::string last_line(const std::string& log);

}  // namespace paddle::cli
