#pragma once
// Shared by all tools: reading the command line, running a body with the documented exit statuses,
// thread counts, and quiet ends when standard output is closed.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace paddle::cli {

class App;

/// Runs `body`; prints an Error and returns its exit status. One line for each thing that is wrong;
/// with
/// `--debug` also what the tool was doing and how long it took.
int run_tool(const std::function<int()>& body);

/// Adds the options that every tool has (`--threads`, `--verbose`, …), reads the command line and
/// applies them. The status to end with where help was asked for; a kUsage Error for a command
/// line that does not fit. The hidden `--describe` prints the command line as JSON
/// (common_describe.h).
std::optional<int> read_command_line(App& app, int argc, char** argv);

/// The version, and the devices and instruction sets that this build supports.
std::string version_text();
/// Columns of the terminal of standard error, 80 if they are not known.
int terminal_columns();
/// Sets the threads of a config (0: none stated), unless `--threads` was given.
void use_config_threads(int threads);
/// Whether `--debug` was given.
bool debug_requested();
/// Whether only results, warnings and errors are printed: `--quiet`, or PADDLE_LOG=warning.
bool is_quiet();

/// Writes a report to standard output, in which control characters other than line breaks and tabs
/// are escaped (base/text.h, printable). Exits quietly with 141 if the reader has closed the pipe.
void print(const std::string& text);
/// Writes one line to standard output; line breaks within it are escaped, too.
void print_line(const std::string& line);
/// Writes data as it is (generated text, the output of other programs), escaped on a terminal only.
void print_data(const std::string& data);
/// Writes a line to standard error, escaped as `print` does.
void print_error(const std::string& line);
/// "warning: LINE" on standard error, unless PADDLE_LOG=error.
void print_warning(const std::string& line);
/// "note: LINE" on standard error, unless `--quiet`.
void print_note(const std::string& line);
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Adds `--overwrite`.
void add_overwrite(App& app, bool& overwrite);
/// kUsage if a file or a folder with entries is at `output`, unless it may be replaced. A folder
/// with the file `own`, which this tool wrote, may be replaced in any case.
void check_output(const std::string& output, bool overwrite, const std::string& own = "");

/// Splits arguments that look like `a.b=value` from the others.
std::vector<std::string> take_overrides(std::vector<std::string>& arguments);

}  // namespace paddle::cli
