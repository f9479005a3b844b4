#pragma once
// Streams of the mirror device. A stream queues work and runs none of it before a caller waits for
// it: then a thread runs what the wait needs, and nothing else. So a result that is read without a
// wait is always missing, and a buffer that is reused too early always has the wrong contents.
//
// A stream can also record work instead of queueing it, and queue the record again and again.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "tensor/device_counts.h"

namespace paddle::mirror {

class Stream;

/// A point of a stream: reached when the stream has done `count` pieces of work.
struct Event {
  std::shared_ptr<Stream> stream;  ///< null before the first record
  uint64_t count = 0;
};

/// Recorded work.
struct Graph {
  struct Item {
    std::function<void()> run;
    std::string location;
  };
  std::vector<Item> items;
  std::vector<std::shared_ptr<void>> memory;  ///< allocated while recording
  CopyCounts copies;                          ///< of a launch
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  /// Queues or records work; `location` is that of the operation, for errors. False: recorded.
  bool push(std::function<void()> work, std::string location = {});
  void record(Event& event);
  /// Work that is queued from now on waits for the event.
  void wait(const Event& event);
  /// Has the thread run all work that is queued now. Throws the stream's first error since the last
  /// call.
  void synchronize();
  /// Queues work on all streams that are not idle; it runs when the last of them gets there.
  static void after_all(const std::function<void()>& work);
  /// Pieces of work that are queued on all streams.
  static uint64_t queued();
  /// Has the thread run the work before the event.
  static void synchronize(const Event& event);
  static bool reached(const Event& event);

  /// Work is recorded from now on. kUsage if a capture is going on here or on this thread.
  void begin_capture();
  /// The record, or the error of the first wrong call since `begin_capture`.
  std::shared_ptr<Graph> end_capture();
  /// Ends a capture of this stream, if there is one, without a record.
  void drop_capture();
  /// The record that is being made; null if none is.
  std::shared_ptr<Graph> capture();
  void launch(const std::shared_ptr<const Graph>& graph);
  /// Throws kUsage, with the location of what was recorded last, if this thread records work:
  /// `call` is not possible then.
  static void reject_while_capturing(const char* call);

 private:
  friend class Runner;
  struct Work {
    std::function<void()> run;  ///< null: only waits
    Event after;                ///< to be reached first
    std::string location;
    int threads = thread_count();  ///< of the thread that queues it, which kernels divide sums by
  };
  /// The same for calls on this stream; any thread. The lock is held.
  void reject_in_capture(const char* call);
  [[noreturn]] void spoil(const char* call);

  uint64_t pushed_ = 0, done_ = 0;
  std::deque<Work> queue_;
  std::optional<Error> error_;
  std::shared_ptr<Graph> capture_;
  std::optional<Error> spoiled_;  ///< of the first wrong call during the capture
};

std::shared_ptr<Stream> make_stream();

}  // namespace paddle::mirror
