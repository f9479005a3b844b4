#include "kernels/mirror/stream.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/thread_scope.h"

namespace paddle::mirror {

/// Runs the work of all streams on one thread, on request. One lock guards all queues; it is free
/// while work runs.
class Runner {
 public:
  /// Never destroyed: arrays of static lifetime may be released after it would be.
  static Runner& get() {
    static Runner* const runner = new Runner;
    return *runner;
  }

  std::mutex mutex;
  std::vector<std::weak_ptr<Stream>> streams;

  void request(const std::shared_ptr<Stream>& stream, uint64_t count,
               std::unique_lock<std::mutex>& lock) {
    if (stream->done_ >= count) return;
    if (!started_) {
      std::thread([this] { serve(); }).detach();
      started_ = true;
    }
    requests_.push_back({stream, count});
    changed_.notify_all();
    changed_.wait(lock, [&] { return stream->done_ >= count; });
  }

 private:
  struct Request {
    std::shared_ptr<Stream> stream;
    uint64_t count;
  };

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed_.wait(lock, [&] { return !requests_.empty(); });
      const Request request = std::move(requests_.front());
      requests_.pop_front();
      advance(*request.stream, request.count, lock);
      changed_.notify_all();
    }
  }

  static void advance(Stream& stream, uint64_t count, std::unique_lock<std::mutex>& lock) {
    while (stream.done_ < count) {
      Stream::Work work = std::move(stream.queue_.front());
      stream.queue_.pop_front();
      if (work.after.stream) advance(*work.after.stream, work.after.count, lock);
      if (work.run) {
        lock.unlock();
        std::optional<Error> error = run(work);
        work.run = nullptr;  // what it holds is released outside of the lock
        lock.lock();
        if (error && !stream.error_) stream.error_ = std::move(error);
      }
      ++stream.done_;
    }
  }

  /// Arguments that were valid when the kernel was prepared are invalid because of the data, so
  /// kUsage becomes kData.
  static std::optional<Error> run(const Stream::Work& work) {
    const ThreadScope threads(work.threads);
    try {
      work.run();
      return std::nullopt;
    } catch (const Error& e) {
      const ErrorCode code = e.code() == ErrorCode::kUsage ? ErrorCode::kData : e.code();
      SourceLocation location = e.location();
      if (location.file.empty()) location.file = work.location;
      return Error(code, e.message(), location);
    } catch (const std::exception& e) {
      return Error(ErrorCode::kInternal, e.what());
    }
  }

  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool started_ = false;
};

std::shared_ptr<Stream> make_stream() {
  auto stream = std::make_shared<Stream>();
  const std::lock_guard lock(Runner::get().mutex);
  auto& streams = Runner::get().streams;
  std::erase_if(streams, [](const auto& each) { return each.expired(); });
  streams.push_back(stream);
  return stream;
}

namespace {

/// The stream that this thread records; never one without a capture.
std::shared_ptr<Stream>& recorded_here() {
  thread_local std::shared_ptr<Stream> stream;
  return stream;
}

}  // namespace

bool Stream::push(std::function<void()> work, std::string location) {
  const std::lock_guard lock(Runner::get().mutex);
  if (capture_) {
    capture_->items.push_back({std::move(work), std::move(location)});
    return false;
  }
  queue_.push_back({std::move(work), {}, std::move(location)});
  ++pushed_;
  return true;
}

// --- capture ---

void Stream::spoil(const char* call) {
  SourceLocation location;
  if (!capture_->items.empty()) location.file = capture_->items.back().location;
  Error error(ErrorCode::kUsage, str("mirror: ", call, " while work is recorded"), location);
  if (!spoiled_) spoiled_ = error;
  throw error;
}

void Stream::reject_in_capture(const char* call) {
  if (capture_) spoil(call);
}

void Stream::reject_while_capturing(const char* call) {
  const std::shared_ptr<Stream>& stream = recorded_here();
  if (!stream) return;
  const std::lock_guard lock(Runner::get().mutex);
  stream->spoil(call);
}

void Stream::begin_capture() {
  reject_while_capturing("begin_capture");
  const std::lock_guard lock(Runner::get().mutex);
  reject_in_capture("begin_capture");
  capture_ = std::make_shared<Graph>();
  spoiled_.reset();
  recorded_here() = shared_from_this();
}

std::shared_ptr<Graph> Stream::end_capture() {
  if (recorded_here().get() != this)
    fail(ErrorCode::kUsage, "mirror: end_capture without begin_capture on this thread");
  recorded_here() = nullptr;
  const std::lock_guard lock(Runner::get().mutex);
  std::shared_ptr<Graph> graph = std::exchange(capture_, nullptr);
  if (!spoiled_) return graph;
  const Error error = *spoiled_;
  spoiled_.reset();
  throw error;
}

void Stream::drop_capture() {
  if (recorded_here().get() == this) recorded_here() = nullptr;
  const std::lock_guard lock(Runner::get().mutex);
  capture_ = nullptr;
  spoiled_.reset();
}

std::shared_ptr<Graph> Stream::capture() {
  const std::lock_guard lock(Runner::get().mutex);
  return capture_;
}

void Stream::launch(const std::shared_ptr<const Graph>& graph) {
  const std::lock_guard lock(Runner::get().mutex);
  reject_in_capture("launch_graph");
  for (const Graph::Item& item : graph->items) {
    queue_.push_back({[graph, &item] { item.run(); }, {}, item.location});
    ++pushed_;
  }
}

// --- events and waits ---

void Stream::record(Event& event) {
  const std::lock_guard lock(Runner::get().mutex);
  reject_in_capture("record_event");
  event.stream = shared_from_this();
  event.count = pushed_;
}

void Stream::wait(const Event& event) {
  const std::lock_guard lock(Runner::get().mutex);
  reject_in_capture("wait_event");
  if (!event.stream || event.stream.get() == this) return;
  queue_.push_back({nullptr, event, {}});
  ++pushed_;
}

void Stream::synchronize() {
  reject_while_capturing("synchronize_stream");
  std::unique_lock lock(Runner::get().mutex);
  reject_in_capture("synchronize_stream");
  Runner::get().request(shared_from_this(), pushed_, lock);
  if (!error_) return;
  const Error error = *error_;
  error_.reset();
  throw error;
}

bool Stream::reached(const Event& event) {
  const std::lock_guard lock(Runner::get().mutex);
  return !event.stream || event.stream->done_ >= event.count;
}

void Stream::synchronize(const Event& event) {
  reject_while_capturing("synchronize_event");
  std::unique_lock lock(Runner::get().mutex);
  if (event.stream) Runner::get().request(event.stream, event.count, lock);
}

uint64_t Stream::queued() {
  const std::lock_guard lock(Runner::get().mutex);
  uint64_t out = 0;
  for (const auto& each : Runner::get().streams)
    if (const auto stream = each.lock()) out += stream->pushed_ - stream->done_;
  return out;
}

void Stream::after_all(const std::function<void()>& work) {
  // The last copy of `last` to go runs the work.
  struct Last {
    std::function<void()> work;
    ~Last() { work(); }
  };
  const auto last = std::make_shared<Last>(work);
  const std::lock_guard lock(Runner::get().mutex);
  for (const auto& each : Runner::get().streams)
    if (const auto stream = each.lock(); stream && stream->done_ < stream->pushed_) {
      stream->queue_.push_back({[last] {}, {}, {}});
      ++stream->pushed_;
    }
}

}  // namespace paddle::mirror
