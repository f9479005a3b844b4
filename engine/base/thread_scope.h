#pragma once
// Threads of parallel regions by the thread that opens them.

namespace paddle {

/// While it lives, parallel regions that this thread opens use `threads` threads (at least one),
/// including those of libraries, whatever set_thread_count says. Several threads may have one each,
/// and their regions then run in parallel. Work that is too small to be worth waking threads
/// runs in a scope of one.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace paddle
