#pragma once
// What all tools share: running a body with the documented exit statuses, thread counts, and
// quiet ends when standard output is closed.

#include <functional>
#include <string>
#include <vector>

namespace paddle::cli {

/// Runs `body`; prints one line for an Error and gives its status. `--debug` is handled here: with
/// it, notes beyond the first lines are shown.
int run_tool(const std::function<int()>& body);

/// Options that every tool has.
struct CommonOptions {
  int threads = 0;  ///< 0: the number of cores
  bool debug = false;
  void apply() const;
};

/// Writes to standard output; exits quietly with 141 if nobody reads any more.
void print(const std::string& text);
/// Writes a line to standard error.
void print_error(const std::string& line);
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Splits arguments that look like `a.b=value` from the others.
std::vector<std::string> take_overrides(std::vector<std::string>& arguments);

}  // namespace paddle::cli
