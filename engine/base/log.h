#pragma once
// Messages about what a program does, by level, on standard error. Programs and libraries print
// none of them unless asked: `-v` of the tools, or the variable PADDLE_LOG.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paddle {

enum class LogLevel : uint8_t {
  kError,    ///< only errors
  kWarning,  ///< what is probably wrong
  kInfo,     ///< notes and progress
  kDebug,    ///< phases, files, passes and plans, with their times and sizes
  kTrace,    ///< each operation that runs
};

namespace detail {
extern std::atomic<LogLevel> current_log_level;
}

/// The level until which messages are printed: at first PADDLE_LOG's, kInfo without one.
inline LogLevel log_level() { return detail::current_log_level.load(std::memory_order_relaxed); }
void set_log_level(LogLevel level);
/// Whether messages of `level` are printed. Cheap: for use in running steps.
inline bool is_logged(LogLevel level) { return level <= log_level(); }

/// error, warning, info, debug or trace; nullopt for another word.
std::optional<LogLevel> parse_log_level(std::string_view word);
/// The names that `parse_log_level` takes, for messages.
std::string log_level_names();

/// Prints "LEVEL: line" to standard error if messages of `level` are printed. Control characters
/// are escaped.
void log(LogLevel level, const std::string& line);

}  // namespace paddle
