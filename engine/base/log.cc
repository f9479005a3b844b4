#include "base/log.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace paddle {
namespace {

constexpr std::array<const char*, 5> kNames = {"error", "warning", "info", "debug", "trace"};

/// Libraries ignore a word that is not a level; tools report it.
LogLevel level_of_environment() {
  const char* const word = std::getenv("PADDLE_LOG");
  return word ? parse_log_level(word).value_or(LogLevel::kInfo) : LogLevel::kInfo;
}

}  // namespace

namespace detail {
std::atomic<LogLevel> current_log_level = level_of_environment();
}

void set_log_level(LogLevel level) { detail::current_log_level = level; }

std::optional<LogLevel> parse_log_level(std::string_view word) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (word == kNames[i]) return static_cast<LogLevel>(i);
  return std::nullopt;
}

std::string log_level_names() { return "error, warning, info, debug or trace"; }

void log(LogLevel level, const std::string& line) {
  if (!is_logged(level)) return;
  const std::string text =
      str(kNames[static_cast<size_t>(level)], ": ", printable(line, "\t"), "\n");
  std::fputs(text.c_str(), stderr);
}

}  // namespace paddle
