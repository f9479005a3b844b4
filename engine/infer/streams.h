#pragma once
// Streams: several runners over one loaded model, each on a thread of its own with a part of the
// machine's threads. Small models use many cores better by running several batches in
// parallel than by splitting each batch over all cores.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "infer/batches.h"
#include "program/model.h"

namespace paddle::infer {

class Streams {
 public:
  static constexpr int64_t kMax = 128;

  /// `count` clones of the model, which share `threads` threads as evenly as possible; each has at
  /// least one. What the model has compiled so far is shared, so run it once before. kUsage for
  /// models that have no clones.
  Streams(const program::Model& model, int64_t count, int threads);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  size_t size() const { return streams_.size(); }
  /// For use while no work runs, or by the work of that stream.
  program::Model& model(size_t stream) { return *streams_[stream].model; }
  int threads(size_t stream) const { return streams_[stream].threads; }

  /// Calls `work(stream)` on the thread of every stream; `wait` must follow.
  void start(std::function<void(size_t stream)> work);
  /// Waits for the work of all streams and rethrows the first error in it.
  void wait();
  void run(std::function<void(size_t stream)> work) {
    start(std::move(work));
    wait();
  }

 private:
  struct Stream {
    std::unique_ptr<program::Model> model;
    int threads = 1;
    std::thread thread;
  };
  void serve(size_t stream);

  std::vector<Stream> streams_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(size_t)> work_;
  uint64_t round_ = 0;  ///< of work
  size_t running_ = 0;
  bool ends_ = false;
  std::exception_ptr failure_;
};

/// Threads of the stream of this number, of `streams` that share `threads`.
int threads_of_stream(int threads, int64_t stream, int64_t streams);

/// Whether a model runs on the batch: not where all of its rows were skipped.
inline bool runs_on(const InputBatch& batch) { return batch.rows > 0 || batch.skipped.empty(); }

/// Batches on their way through streams, delivered in the order in which they came. Use
/// predict_batches.
template <class Result>
class Pipeline {
 public:
  /// `next` gives a batch, or none at the end, and `done` takes it with its result and says whether
  /// there is more to do; both are called on the thread of `run`. `work` is called on the streams'
  /// threads.
  struct Steps {
    std::function<std::optional<InputBatch>()> next;
    std::function<Result(size_t stream, int64_t number, const InputBatch& batch)> work;
    std::function<bool(const InputBatch& batch, Result& result)> done;
  };
  /// Runs all batches; `number` counts those that models run on, from `first`. Errors of a batch
  /// are rethrown in its turn.
  static void run(Streams& streams, int64_t first, const Steps& steps);

 private:
  struct Job {
    int64_t number = 0;
    InputBatch batch;
    Result result = {};
    std::exception_ptr failure;
    bool taken = false, done = false;
  };
  void work_on(size_t stream, const Steps& steps);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  ///< addresses of elements stay valid
  bool ends_ = false;
};

template <class Result>
void Pipeline<Result>::work_on(size_t stream, const Steps& steps) {
  std::unique_lock lock(mutex_);
  while (true) {
    Job* job = nullptr;
    changed_.wait(lock, [&] {
      for (Job& each : jobs_)
        if (!each.taken) {
          job = &each;
          return true;
        }
      return ends_;
    });
    if (!job) return;
    job->taken = true;
    lock.unlock();
    try {
      job->result = steps.work(stream, job->number, job->batch);
    } catch (...) {
      job->failure = std::current_exception();
    }
    lock.lock();
    job->done = true;
    changed_.notify_all();
  }
}

template <class Result>
void Pipeline<Result>::run(Streams& streams, int64_t first, const Steps& steps) {
  Pipeline self;
  // Ends the work also where `next` or `done` throws: batches that no stream has begun are dropped.
  struct End {
    Pipeline& self;
    Streams& streams;
    ~End() {
      {
        const std::lock_guard lock(self.mutex_);
        for (Job& job : self.jobs_) job.taken = true;
        self.ends_ = true;
      }
      self.changed_.notify_all();
      streams.wait();
    }
  };
  streams.start([&](size_t stream) { self.work_on(stream, steps); });
  const End end{self, streams};
  const size_t window = 2 * streams.size();
  bool is_last = false;
  while (true) {
    while (!is_last && self.jobs_.size() < window) {
      std::optional<InputBatch> batch = steps.next();
      is_last = !batch;
      if (is_last) break;
      const std::lock_guard lock(self.mutex_);
      const int64_t number = first;
      first += runs_on(*batch);
      Job& job = self.jobs_.emplace_back();
      job.number = number;
      job.batch = std::move(*batch);
      self.changed_.notify_all();
    }
    if (self.jobs_.empty()) return;
    Job& job = self.jobs_.front();
    {
      std::unique_lock lock(self.mutex_);
      self.changed_.wait(lock, [&] { return job.done; });
    }
    if (job.failure) std::rethrow_exception(job.failure);
    if (!steps.done(job.batch, job.result)) return;
    const std::lock_guard lock(self.mutex_);
    self.jobs_.pop_front();
  }
}

/// The work of predict_batches on a batch.
template <class Result>
struct Prediction {
  /// The result of a batch that models run on. `runner` is 0 on the thread of the caller and 1 to
  /// `streams` on those of streams; results must not refer to memory of the model.
  std::function<Result(size_t runner, program::Model& model, const InputBatch& batch)> run;
  /// Takes results in the order of the input, on the thread of the caller; false ends the
  /// prediction. The result of other batches is empty.
  std::function<bool(const InputBatch& batch, Result& result)> done;
};

/// Predicts all batches with this number of streams that share `threads` threads. The model runs
/// the first batch itself, and all of them if there is one stream. False if `done` ended it.
template <class Result>
bool predict_batches(program::Model& model, Batches& batches, int64_t streams, int threads,
                     const Prediction<Result>& prediction) {
  int64_t runs = 0;
  while (streams == 1 || runs == 0) {
    const std::optional<InputBatch> batch = batches.next();
    if (!batch) return true;
    const bool has_run = runs_on(*batch);
    Result result = has_run ? prediction.run(0, model, *batch) : Result();
    runs += has_run;
    if (!prediction.done(*batch, result)) return false;
  }
  Streams runners(model, streams, threads);
  bool completed = true;
  Pipeline<Result>::run(
      runners, runs,
      {.next = [&] { return batches.next(); },
       .work =
           [&](size_t stream, int64_t number, const InputBatch& batch) {
             if (!runs_on(batch)) return Result();
             program::Model& own = runners.model(stream);
             own.set_run(number);
             return prediction.run(stream + 1, own, batch);
           },
       .done = [&](const InputBatch& batch,
                   Result& result) { return completed = prediction.done(batch, result); }});
  return completed;
}

}  // namespace paddle::infer
