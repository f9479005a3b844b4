#include "base/span.h"

#include <atomic>
#include <chrono>

#include "base/error.h"

namespace paddle {
namespace {

// Spans of other threads may end while a recorder is destroyed, so both happen under this mutex.
std::mutex recorder_mutex;
std::atomic<SpanRecorder*> recorder = nullptr;

thread_local int rank_of_thread = 0;

int thread_number() {
  static std::atomic<int> next = 0;
  thread_local const int number = next++;
  return number;
}

}  // namespace

int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void set_span_rank(int rank) { rank_of_thread = rank; }

int span_rank() { return rank_of_thread; }

SpanRecorder::SpanRecorder() {
  const std::lock_guard lock(recorder_mutex);
  ensure(recorder == nullptr, "there is a span recorder already");
  recorder = this;
}

SpanRecorder::~SpanRecorder() {
  const std::lock_guard lock(recorder_mutex);
  recorder = nullptr;
}

std::vector<SpanRecord> SpanRecorder::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

void SpanRecorder::add(const char* name, int64_t begin, int64_t end) {
  const int thread = thread_number();
  const std::lock_guard lock(mutex_);
  records_.push_back({name, thread, begin, end, rank_of_thread});
}

Span::Span(const char* name)
    : name_(name),
      begin_(recorder.load(std::memory_order_relaxed) != nullptr ? steady_nanoseconds() : -1) {}

Span::~Span() {
  if (begin_ < 0) return;
  const int64_t end = steady_nanoseconds();
  const std::lock_guard lock(recorder_mutex);
  if (SpanRecorder* const current = recorder) current->add(name_, begin_, end);
}

}  // namespace paddle
