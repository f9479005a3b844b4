#pragma once
// The started collectives of a rank: a thread computes them, or the caller of `wait`.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/host_collectives.h"

namespace paddle::comm {

/// Collectives that have begun, in their order.
class HostCollectives::Background {
 public:
  using Job = std::function<void()>;

  explicit Background(bool has_thread) {
    if (has_thread) thread_ = std::thread([this] { work(); });
  }
  ~Background() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  bool has_thread() const { return thread_.joinable(); }
  void add(Job job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return jobs_.empty();
  }
  void finish() {
    std::unique_lock lock(mutex_);
    if (!has_thread())
      for (; !jobs_.empty(); jobs_.pop_front()) jobs_.front()();
    changed_.wait(lock, [&] { return jobs_.empty(); });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
      if (ends_) return;
      const Job job = std::move(jobs_.front());
      const bool works = !failure_;
      lock.unlock();
      std::exception_ptr failure;
      try {
        if (works) job();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure) failure_ = failure;
      jobs_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  ///< the first one is being computed
  std::exception_ptr failure_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace paddle::comm
