#include "infer/streams.h"

#include <algorithm>

#include "base/thread_scope.h"

namespace paddle::infer {

int threads_of_stream(int threads, int64_t stream, int64_t streams) {
  const int64_t all = threads;
  return static_cast<int>(
      std::max<int64_t>(1, all * (stream + 1) / streams - all * stream / streams));
}

Streams::Streams(const program::Model& model, int64_t count, int threads)
    : streams_(static_cast<size_t>(count)) {
  for (size_t i = 0; i < streams_.size(); ++i) {
    streams_[i].model = model.clone();
    streams_[i].threads = threads_of_stream(threads, static_cast<int64_t>(i), count);
  }
  for (size_t i = 0; i < streams_.size(); ++i)
    streams_[i].thread = std::thread([this, i] { serve(i); });
}

Streams::~Streams() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (Stream& stream : streams_)
    if (stream.thread.joinable()) stream.thread.join();
}

void Streams::start(std::function<void(size_t)> work) {
  const std::lock_guard lock(mutex_);
  work_ = std::move(work);
  running_ = streams_.size();
  failure_ = nullptr;
  ++round_;
  changed_.notify_all();
}

void Streams::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Streams::serve(size_t stream) {
  const ThreadScope threads(streams_[stream].threads);
  std::unique_lock lock(mutex_);
  for (uint64_t served = 0;;) {
    changed_.wait(lock, [&] { return ends_ || round_ != served; });
    if (ends_) return;
    served = round_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work_(stream);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--running_ == 0) changed_.notify_all();
  }
}

}  // namespace paddle::infer
