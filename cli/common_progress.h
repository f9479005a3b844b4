#pragma once
// How far long work is: a bar on the last line of a terminal, plain lines elsewhere.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace paddle::cli {

/// "[####......] 40%  TEXT" in less than `columns` columns: the bar gets what the text leaves, and
/// the text is cut. `share` is between 0 and 1. Control characters become '?'.
std::string bar_line(double share, const std::string& text, int columns);

/// One line on the terminal of standard error, redrawn in place; nothing if that is none, or with
/// `--quiet`.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool is_on_terminal() const;
  void draw(double share, const std::string& text);
  /// Removes the line, so that others can be printed in its place.
  void clear();

 private:
  bool on_terminal_;
  std::string shown_;  ///< empty if no bar is
};

/// The steps of several stages, with the time left by the rate since the stage began. On a terminal
/// a bar; elsewhere a line for each new text, and one at least every half minute. Nothing with
/// `--quiet`.
class StepProgress {
 public:
  /// `done` of `total` steps; `done` is 0 where a stage begins. A line if `total` is 0.
  void show(const std::string& what, int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<double> seconds_left(int64_t done, int64_t total);
  void print_line(const std::string& line);

  ProgressBar bar_;
  std::string last_what_;
  Clock::time_point last_line_ = Clock::now(), begun_;
  int64_t first_done_ = 0, last_done_ = -1;  ///< last: -1 outside of a stage with steps
};

}  // namespace paddle::cli
