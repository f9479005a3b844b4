#include "common_progress.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "common.h"
#include "common_table.h"

namespace paddle::cli {
namespace {

constexpr auto kMaxSilence = std::chrono::seconds(30);

/// At most `size` bytes, without a part of a character at the end.
std::string cut(const std::string& text, size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

int percent_of(double share) { return static_cast<int>(100 * std::clamp(share, 0.0, 1.0) + 1e-9); }

}  // namespace

std::string bar_line(double share, const std::string& text, int columns) {
  const int percent = percent_of(share);
  std::string line = str(percent, "%  ", text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  // A terminal wraps a line that fills its last column.
  const auto most = static_cast<size_t>(std::max(2, columns) - 1);
  const size_t width = most > line.size() + 3 ? std::min<size_t>(28, most - line.size() - 3) : 0;
  if (width >= 6) {
    std::string bar(width * static_cast<size_t>(percent) / 100, '#');
    bar.resize(width, '.');
    line = "[" + bar + "] " + line;
  }
  return cut(line, most);
}

ProgressBar::ProgressBar() : on_terminal_(stderr_is_terminal()) {}

bool ProgressBar::is_on_terminal() const { return on_terminal_ && !is_quiet(); }

void ProgressBar::draw(double share, const std::string& text) {
  if (!is_on_terminal()) return;
  const std::string line = bar_line(share, text, terminal_columns());
  if (line == shown_) return;
  std::fputs(("\r" + line + "\033[K").c_str(), stderr);
  std::fflush(stderr);
  shown_ = line;
}

void ProgressBar::clear() {
  if (shown_.empty()) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_.clear();
}

void StepProgress::show(const std::string& what, int64_t done, int64_t total) {
  if (total <= 0) {
    last_done_ = -1;
    print_line(what);
    return;
  }
  const std::optional<double> left = seconds_left(done, total);
  const std::string time = left ? short_duration(*left) + " left" : "";
  const double share = static_cast<double>(done) / static_cast<double>(total);
  if (bar_.is_on_terminal())
    bar_.draw(share, time.empty() ? what : time + "  " + what);
  else if (what != last_what_)
    print_line(what);
  else if (Clock::now() - last_line_ > kMaxSilence)
    print_line(str(what, ": ", percent_of(share), "%", time.empty() ? "" : ", ", time));
  last_what_ = what;
}

std::optional<double> StepProgress::seconds_left(int64_t done, int64_t total) {
  const auto now = Clock::now();
  if (done == 0 || done < last_done_ || last_done_ < 0) {
    begun_ = now;
    first_done_ = done;
  }
  last_done_ = done;
  if (done <= first_done_) return std::nullopt;
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  return seconds / static_cast<double>(done - first_done_) *
         static_cast<double>(std::max<int64_t>(0, total - done));
}

void StepProgress::print_line(const std::string& line) {
  if (is_quiet()) return;
  bar_.clear();
  print_error(line);
  last_what_ = line;
  last_line_ = Clock::now();
}

}  // namespace paddle::cli
