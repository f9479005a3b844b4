#pragma once
// A rank as a child process with its output in pipes.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paddle::launch {

class Process {
 public:
  /// Starts a program, which is looked for next to this one first, then in PATH. kUsage if it
  /// cannot be started. The child dies with this process. `input`: all that it reads from its
  /// standard input, at most 4 KiB.
  Process(const std::vector<std::string>& command,
          const std::vector<std::pair<std::string, std::string>>& environment,
          const std::string& input = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  /// Ends of the pipes of its standard output and error; -1 once they are closed.
  int output() const { return output_; }
  int error() const { return error_; }
  /// Reads the bytes that are in a pipe now, up to a buffer; closes it at its end.
  std::string read_output() { return read(output_); }
  std::string read_error() { return read(error_); }
  void signal(int number) const;
  /// Asks the system how the process is, without waiting.
  void update();
  /// Exit status, or 128 + signal, once it has ended.
  const std::optional<int>& status() const { return status_; }
  int killed_by() const { return killed_by_; }  ///< a signal, or 0
  /// Since when the process is stopped.
  const std::optional<std::chrono::steady_clock::time_point>& stopped_since() const {
    return stopped_since_;
  }

 private:
  std::string read(int& pipe);
  pid_t id_ = -1;
  int output_ = -1, error_ = -1;
  std::optional<int> status_;
  int killed_by_ = 0;
  std::optional<std::chrono::steady_clock::time_point> stopped_since_;
};

}  // namespace paddle::launch
