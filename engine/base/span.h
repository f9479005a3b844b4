#pragma once
// Named intervals on threads, for timelines: what the loader's workers and the training loop did
// while a program was profiled. Without a recorder a span costs one load of a pointer.
//
//   const Span span("make batch");

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace paddle {

struct SpanRecord {
  const char* name;
  int thread;          ///< threads are numbered in the order of their first span
  int64_t begin, end;  ///< nanoseconds of the steady clock
  int rank = 0;        ///< as `set_span_rank` said on the thread
};

/// Records the spans of all threads while it exists; there can be one at a time.
class SpanRecorder {
 public:
  SpanRecorder();
  ~SpanRecorder();
  SpanRecorder(const SpanRecorder&) = delete;
  SpanRecorder& operator=(const SpanRecorder&) = delete;

  std::vector<SpanRecord> records() const;
  void add(const char* name, int64_t begin, int64_t end);

 private:
  mutable std::mutex mutex_;
  std::vector<SpanRecord> records_;
};

/// `name` must be a literal.
class Span {
 public:
  explicit Span(const char* name);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  int64_t begin_;  ///< -1: not recorded
};

/// Spans of this thread belong to a rank of a simulated run. Threads that it starts take over its
/// rank by hand.
void set_span_rank(int rank);
int span_rank();

/// Nanoseconds of the steady clock.
int64_t steady_nanoseconds();

}  // namespace paddle
