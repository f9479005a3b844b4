#include "base/crash_report.h"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <mutex>

namespace paddle {
namespace {

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "segmentation fault";
    case SIGBUS:
      return "bus error";
    case SIGFPE:
      return "arithmetic fault";
    case SIGILL:
      return "illegal instruction";
    default:
      return "abort";
  }
}

void on_crash(int signal) {
  write_crash(signal);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

namespace detail {
constinit RunningOperation running_operation;
}

void write_crash(int signal) {
  write_text("internal error: ");
  write_text(name_of(signal));
  if (const char* const name = detail::running_operation.name.load(std::memory_order_relaxed)) {
    write_text(" in operation '");
    write_text(name);
    write_text("'");
  }
  const char* const location = detail::running_operation.location.load(std::memory_order_relaxed);
  if (location && *location) {
    write_text(" at ");
    write_text(location);
  }
  write_text("\n");
}

void leave_crashes_to_parent() {
  for (const int signal : kCrashSignals) {
    struct sigaction present {};
    if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler == on_crash)
      std::signal(signal, SIG_DFL);
  }
}

void report_crashes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // the sanitizer says more
#endif
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int signal : kCrashSignals) {
      struct sigaction action {};
      action.sa_handler = on_crash;
      action.sa_flags = SA_NODEFER;
      sigaction(signal, &action, nullptr);
    }
  });
}

}  // namespace paddle
