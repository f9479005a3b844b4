#pragma once
// Which operation runs, so that a crash inside its kernel names it.

#include <atomic>
#include <csignal>

namespace paddle {

/// The signals of crashes.
inline constexpr int kCrashSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

namespace detail {
struct RunningOperation {
  std::atomic<const char*> name = nullptr;
  std::atomic<const char*> location = nullptr;
};
extern RunningOperation running_operation;
}  // namespace detail

/// The operation that starts on any thread, or null where it ended. Kernels compute on several
/// threads, so the last one that started is kept, for the whole process. `location` is its place in
/// a model, "" if it is not known. Both outlive the operation.
inline void set_running_operation(const char* name, const char* location = "") {
  detail::running_operation.location.store(location, std::memory_order_relaxed);
  detail::running_operation.name.store(name, std::memory_order_relaxed);
}

inline bool is_operation_running() {
  return detail::running_operation.name.load(std::memory_order_relaxed) != nullptr;
}

/// Writes a line that names the signal, and the operation and its place if one runs, to standard
/// error; only calls what a signal handler may call.
void write_crash(int signal);

/// Handles signals that end the process: they first write a line with the operation that runs. The
/// exit status stays that of the signal. For programs, not for libraries.
void report_crashes();
/// Ends that: for child processes whose crashes the parent reports. Handlers of others stay.
void leave_crashes_to_parent();

}  // namespace paddle
