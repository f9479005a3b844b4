#include "inspect/isolate.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <new>
#include <optional>
#include <vector>

#include "base/crash_report.h"
#include "base/elapsed.h"
#include "base/error.h"
#include "base/parallel.h"

namespace paddle::inspect {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kChunk = 32;
constexpr size_t kMaxLine = 4000;
/// The wall time of a job that waits or shares the processor, in units of its limit.
constexpr double kMaxWallTime = 5;

struct Range {
  size_t begin, end;
};

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  size_t next = 0, end = 0;   ///< the job it is at, and the end of its jobs
  Clock::time_point started;  ///< the job
  double cpu_started = 0;     ///< processor seconds of the child then
  std::string buffer;
  bool timed_out = false;
};

/// Processor time that a process has taken.
double cpu_seconds(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void write_all(int descriptor, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    done += static_cast<size_t>(n);
  }
}

std::string run_job(const std::function<std::string(size_t)>& job, size_t i) {
  try {
    return job(i);
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// One line per job, in order; the parent counts them.
[[noreturn]] void serve(int descriptor, Range range, int threads,
                        const std::function<std::string(size_t)>& job) {
  set_thread_count(threads);
  for (size_t i = range.begin; i < range.end; ++i) {
    std::string line = run_job(job, i).substr(0, kMaxLine);
    std::replace(line.begin(), line.end(), '\n', ' ');
    write_all(descriptor, line + "\n");
  }
  _exit(0);
}

class Supervisor {
 public:
  Supervisor(size_t count, const std::function<std::string(size_t)>& job,
             const std::function<void(size_t, const std::string&)>& report,
             const IsolationOptions& options)
      : job_(job), report_(report), options_(options), results_(count) {
    for (size_t i = 0; i < count; i += kChunk) waiting_.push_back({i, std::min(count, i + kChunk)});
  }
  ~Supervisor() {
    for (const Child& c : children_) {
      ::kill(c.pid, SIGKILL);
      ::waitpid(c.pid, nullptr, 0);
      ::close(c.pipe);
    }
  }

  void run() {
    while (!waiting_.empty() || !children_.empty()) {
      while (!waiting_.empty() && children_.size() < static_cast<size_t>(options_.workers)) start();
      wait();
    }
  }

 private:
  void start() {
    const Range range = waiting_.front();
    waiting_.pop_front();
    int ends[2];
    if (::pipe(ends) != 0) fail(ErrorCode::kDevice, "pipe: ", std::strerror(errno));
    const pid_t pid = ::fork();
    if (pid < 0) fail(ErrorCode::kDevice, "fork: ", std::strerror(errno));
    if (pid == 0) {
      leave_crashes_to_parent();
      ::close(ends[0]);
      serve(ends[1], range, std::max(1, thread_count() / options_.workers), job_);
    }
    ::close(ends[1]);
    children_.push_back({pid, ends[0], range.begin, range.end, Clock::now(), 0, "", false});
  }

  void wait() {
    std::vector<pollfd> fds;
    for (const Child& c : children_) fds.push_back({c.pipe, POLLIN, 0});
    if (::poll(fds.data(), fds.size(), 200) < 0 && errno != EINTR)
      fail(ErrorCode::kDevice, "poll: ", std::strerror(errno));
    size_t i = 0;
    for (auto it = children_.begin(); it != children_.end(); ++i) {
      const bool open = (fds[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || read_some(*it);
      if (open && is_late(*it)) {
        ::kill(it->pid, SIGKILL);
        it->timed_out = true;
      }
      it = open ? std::next(it) : finish(it);
    }
  }

  bool is_late(const Child& child) const {
    return seconds_since(child.started) > kMaxWallTime * options_.timeout_seconds ||
           cpu_seconds(child.pid) - child.cpu_started > options_.timeout_seconds;
  }

  /// False at the end of the pipe.
  bool read_some(Child& child) {
    char bytes[1 << 14];
    const ssize_t n = ::read(child.pipe, bytes, sizeof bytes);
    if (n < 0) return errno == EINTR;
    child.buffer.append(bytes, static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end; (end = child.buffer.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (child.next < child.end) put(child.next++, child.buffer.substr(begin, end - begin));
      child.started = Clock::now();
      child.cpu_started = cpu_seconds(child.pid);
    }
    child.buffer.erase(0, begin);
    return n > 0;
  }

  std::list<Child>::iterator finish(std::list<Child>::iterator it) {
    int status = 0;
    ::waitpid(it->pid, &status, 0);
    ::close(it->pipe);
    if (it->next < it->end) {
      std::string how = str("exit status ", WIFEXITED(status) ? WEXITSTATUS(status) : 0);
      if (WIFSIGNALED(status)) how = ::strsignal(WTERMSIG(status));
      if (it->timed_out)
        put(it->next, str("not done after ", options_.timeout_seconds, " seconds"));
      else
        put(it->next, "crashed: " + how);
      if (it->next + 1 < it->end) waiting_.push_front({it->next + 1, it->end});
    }
    return children_.erase(it);
  }

  void put(size_t i, std::string line) {
    results_[i] = std::move(line);
    for (; reported_ < results_.size() && results_[reported_]; ++reported_)
      report_(reported_, *results_[reported_]);
  }

  const std::function<std::string(size_t)>& job_;
  const std::function<void(size_t, const std::string&)>& report_;
  IsolationOptions options_;
  std::deque<Range> waiting_;
  std::list<Child> children_;
  std::vector<std::optional<std::string>> results_;
  size_t reported_ = 0;
};

}  // namespace

void run_isolated(size_t count, const std::function<std::string(size_t)>& job,
                  const std::function<void(size_t, const std::string&)>& report,
                  const IsolationOptions& options) {
  Supervisor(count, job, report, options).run();
}

}  // namespace paddle::inspect
