#pragma once
// Streams of the mirror device. A stream queues work and runs none of it before a caller waits for
// it: then a thread runs what the wait needs, and nothing else. So a result that is read without a
// wait is always missing, and a buffer that is reused too early always has the wrong contents.

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

namespace paddle::mirror {

class Stream;

/// A point of a stream: reached when the stream has done `count` pieces of work.
struct Event {
  std::shared_ptr<Stream> stream;  ///< null before the first record
  uint64_t count = 0;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  /// Queues work; `location` is that of the operation, for errors.
  void push(std::function<void()> work, std::string location = {});
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

 private:
  friend class Runner;
  struct Work {
    std::function<void()> run;  ///< null: only waits
    Event after;                ///< to be reached first
    std::string location;
  };
  uint64_t pushed_ = 0, done_ = 0;
  std::deque<Work> queue_;
  std::optional<Error> error_;
};

std::shared_ptr<Stream> make_stream();

}  // namespace paddle::mirror
