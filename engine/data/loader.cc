#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/elapsed.h"
#include "base/parallel.h"
#include "base/span.h"
#include "data/loading/batch_maker.h"
#include "data/loading/batch_timing.h"

namespace paddle::data {
namespace {

constexpr size_t kListedSkips = 1000;

using Clock = std::chrono::steady_clock;

/// One batch on its way: made by one thread, taken by the consumer in order.
struct Slot : BatchPlaces {
  Batch batch;
  std::vector<SkippedSample> skipped;
  std::exception_ptr error;
  bool done = false;
};

}  // namespace

class Loader::Impl {
 public:
  Impl(DatasetPtr dataset, LoaderOptions options)
      : dataset_(std::move(dataset)), options_(std::move(options)), maker_(dataset_, options_) {
    for (std::string& reason : dataset_->left_out()) count_left_out(std::move(reason));
    start({});
  }
  ~Impl() { stop(); }

  const BatchMaker& maker() const { return maker_; }
  BatchMaker& maker() { return maker_; }
  const Dataset& dataset() const { return *dataset_; }
  int workers() const { return options_.workers; }
  int64_t samples_per_epoch() const {
    const int64_t n = epoch_size();
    return options_.drop_last ? n / options_.batch_size * options_.batch_size : n;
  }
  int64_t batches_per_epoch() const {
    return (samples_per_epoch() + options_.batch_size - 1) / options_.batch_size;
  }

  std::optional<Batch> next() {
    if (given_) {
      const std::lock_guard lock(mutex_);
      timing_.note_using(seconds_since(*given_));
    }
    std::optional<Batch> batch = next_batch();
    given_ = Clock::now();
    return batch;
  }

  std::optional<Batch> next_batch() {
    while (true) {
      std::shared_ptr<Slot> slot = options_.workers == 0 ? make_here() : take();
      if (!slot) return std::nullopt;
      if (slot->error) {
        failure_ = slot->error;
        std::rethrow_exception(slot->error);
      }
      position_ = slot->next;
      try {
        if (batch_check_ && slot->batch.samples > 0) check_rows(*slot);
        count_skips(*slot);
      } catch (...) {
        failure_ = std::current_exception();
        throw;
      }
      if (slot->batch.samples > 0) {
        empty_since_ = -1;
        return std::move(slot->batch);
      }
      // Where every sample is skipped, an endless run must end.
      if (empty_since_ < 0) empty_since_ = slot->from.epoch;
      if (slot->from.epoch > empty_since_ + 1)
        fail(ErrorCode::kData, "a whole epoch had no good sample",
             skipped_.empty() ? "" : "; the first bad one: " + skipped_[0].reason);
    }
  }

  void seek(LoaderPosition position) {
    if (position.epoch < 0 || position.sample < 0 || position.sample > epoch_size())
      fail(ErrorCode::kData, "cannot continue at sample ", position.sample, " of epoch ",
           position.epoch, ": an epoch has ", epoch_size(), " samples");
    stop();
    held_.clear();
    start(position);
  }

  void require(std::vector<ValueRange> ranges) {
    stop();
    options_.ranges = ranges;
    maker_.require(std::move(ranges));
    start(next_position());
    held_.clear();
  }

  std::unique_ptr<Loader> again() const {
    auto out = std::make_unique<Loader>(dataset_, options_);
    out->check_batches(batch_check_);
    if (maker_.wanted()) out->read_rows(maker_.wanted());
    return out;
  }

  bool read_rows(std::function<bool(int64_t, int64_t)> wanted) {
    if (!maker_.can_read_rows()) return false;
    stop();
    maker_.read_rows(std::move(wanted));
    start(next_position());
    held_.clear();
    return true;
  }

  LoaderPosition next_position() const { return held_.empty() ? position_ : held_.front().from; }

  LoaderPosition position_;
  struct Held {
    LoaderPosition from;
    Batch batch;
  };
  std::deque<Held> held_;  ///< by `peek`
  BatchCheck batch_check_;
  int64_t skipped_count_ = 0;
  std::vector<SkippedSample> skipped_;

 private:
  /// Places of an epoch, those that drop_last leaves out among them.
  int64_t epoch_size() const { return data::epoch_size(*dataset_, options_); }

  void start(LoaderPosition position) {
    const int64_t needed = options_.drop_last ? options_.batch_size : 1;
    if (position.sample + needed > samples_per_epoch()) position = {position.epoch + 1, 0};
    position_ = cursor_ = position;
    stopping_ = false;
    failure_ = nullptr;
    skips_in_epoch_ = 0;
    empty_since_ = -1;
    for (int i = 0; i < options_.workers; ++i)
      threads_.emplace_back([this, rank = span_rank()] {
        set_span_rank(rank);
        work();
      });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    slots_.clear();
  }

  /// The next batch to make, or null after the last epoch. Constant time: a position is enough.
  std::shared_ptr<Slot> issue() {
    if (options_.epochs > 0 && cursor_.epoch >= options_.epochs) return nullptr;
    auto slot = std::make_shared<Slot>();
    const int64_t total = samples_per_epoch();
    slot->from = cursor_;
    slot->end = std::min(cursor_.sample + options_.batch_size, total);
    // After resuming with another batch size, drop_last also holds for what is left.
    slot->last_of_epoch =
        slot->end == total || (options_.drop_last && slot->end + options_.batch_size > total);
    cursor_ = slot->last_of_epoch ? LoaderPosition{cursor_.epoch + 1, 0}
                                  : LoaderPosition{cursor_.epoch, slot->end};
    slot->next = cursor_;
    return slot;
  }

  std::shared_ptr<Slot> make_here() {
    if (failure_) std::rethrow_exception(failure_);
    auto slot = issue();
    if (slot) fill(*slot, workspace_);
    return slot;
  }

  std::shared_ptr<Slot> take() {
    std::unique_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    // Workers put slots into the queue when they start on them, so the order is the order.
    if (slots_.empty()) return make_next(lock);
    changed_.wait(lock, [&] { return slots_.front()->done; });
    auto slot = std::move(slots_.front());
    slots_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return slot;
  }

  /// Makes the next batch, on which no worker has started, in the caller's thread.
  std::shared_ptr<Slot> make_next(std::unique_lock<std::mutex>& lock) {
    auto slot = issue();
    if (!slot) return nullptr;
    lock.unlock();
    const double seconds = fill(*slot, workspace_);
    lock.lock();
    const bool workers_wait = timing_.caller_makes();
    timing_.note_making(seconds);
    const bool wakes = finished() || (workers_wait && !timing_.caller_makes());
    lock.unlock();
    if (wakes) changed_.notify_all();
    return slot;
  }

  bool finished() const { return options_.epochs > 0 && cursor_.epoch >= options_.epochs; }

  bool may_start() const {
    if (finished() || timing_.caller_makes()) return false;
    if (slots_.empty()) return true;
    const uint64_t ahead = slots_.size() + 1;
    return ahead <= static_cast<uint64_t>(options_.workers) * 2 + 2 &&
           ahead * std::max<uint64_t>(maker_.batch_bytes(), 1) <= options_.prefetch_bytes;
  }

  void work() {
    forbid_parallel_regions_on_this_thread();
    Workspace workspace;
    while (true) {
      std::shared_ptr<Slot> slot;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || finished() || may_start(); });
        if (stopping_) return;
        if (finished()) {
          changed_.notify_all();
          return;
        }
        slot = issue();
        slots_.push_back(slot);
      }
      const double seconds = fill(*slot, workspace);
      bool failed;
      {
        const std::lock_guard lock(mutex_);
        timing_.note_making(seconds);
        slot->done = true;
        failed = slot->error != nullptr;
      }
      changed_.notify_all();
      if (failed) return;  // nothing after an error is ever asked for
    }
  }

  /// The seconds that it took.
  double fill(Slot& slot, Workspace& workspace) {
    const auto begun = Clock::now();
    try {
      slot.batch = maker_.make(slot, workspace, slot.skipped, stopping_);
    } catch (...) {
      slot.error = std::current_exception();
    }
    return seconds_since(begun);
  }

  void check_rows(Slot& slot) {
    Batch& batch = slot.batch;
    const int64_t rows = batch.samples;
    std::vector<bool> bad(static_cast<size_t>(rows));
    for (BadRow& each : batch_check_(batch)) {
      // Rows that other ranks read have no meaning here.
      if (maker_.wanted() && !maker_.wanted()(each.row, rows)) continue;
      const int64_t index = batch.indices[static_cast<size_t>(each.row)];
      std::string reason = str(dataset_->location(index), ": ", each.reason);
      if (options_.on_bad_sample != BadSamplePolicy::kSkip) fail(ErrorCode::kData, reason);
      bad[static_cast<size_t>(each.row)] = true;
      slot.skipped.push_back({slot.from.epoch, index, std::move(reason)});
    }
    leave_out(batch, bad);
  }

  /// Moves the other rows of a batch together.
  static void leave_out(Batch& batch, const std::vector<bool>& bad) {
    int64_t kept = 0;
    for (size_t row = 0; row < bad.size(); ++row) {
      if (bad[row]) continue;
      for (const Array& array : batch.arrays) {
        const auto bytes = static_cast<size_t>(
            storage_bytes(array.dtype, element_count(std::span<const int64_t>(array.shape)) /
                                           static_cast<int64_t>(bad.size())));
        auto* data = static_cast<std::byte*>(array.raw());
        std::memmove(data + static_cast<size_t>(kept) * bytes, data + row * bytes, bytes);
      }
      batch.indices[static_cast<size_t>(kept++)] = batch.indices[row];
    }
    batch.indices.resize(static_cast<size_t>(kept));
    batch.samples = kept;
    for (Array& array : batch.arrays) array.shape[0] = kept;
  }

  /// Records that are in no sample, as the dataset found when it was opened.
  void count_left_out(std::string reason) {
    const double allowed = options_.max_bad_rate * static_cast<double>(epoch_size());
    if (static_cast<double>(++skipped_count_) > allowed)
      fail(ErrorCode::kData, skipped_count_, " records were bad, compared with ", epoch_size(),
           " samples; this is more than the rate of ", options_.max_bad_rate,
           " that max_bad_rate allows; the last: ", reason);
    if (skipped_.size() < kListedSkips) skipped_.push_back({0, -1, std::move(reason)});
  }

  /// In the order of batches, so that the limit is hit at the same place with any worker count.
  void count_skips(Slot& slot) {
    for (SkippedSample& each : slot.skipped) {
      ++skipped_count_;
      ++skips_in_epoch_;
      const double allowed = options_.max_bad_rate * static_cast<double>(epoch_size());
      if (static_cast<double>(skips_in_epoch_) > allowed)
        fail(ErrorCode::kData, skips_in_epoch_, " of ", epoch_size(),
             " samples were bad, more than the rate of ", options_.max_bad_rate,
             " that max_bad_rate allows; the last: ", each.reason);
      if (skipped_.size() < kListedSkips) skipped_.push_back(std::move(each));
    }
    if (slot.last_of_epoch) skips_in_epoch_ = 0;
  }

  DatasetPtr dataset_;
  LoaderOptions options_;
  BatchMaker maker_;
  Workspace workspace_;
  std::exception_ptr failure_;
  int64_t skips_in_epoch_ = 0;
  int64_t empty_since_ = -1;  ///< the epoch of the first batch in a row without samples
  std::optional<Clock::time_point> given_;  ///< when `next` returned

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  LoaderPosition cursor_;
  BatchTiming timing_;
  std::deque<std::shared_ptr<Slot>> slots_;
  std::atomic<bool> stopping_ = false;  ///< read without the mutex, too
  std::vector<std::thread> threads_;
};

Loader::Loader(DatasetPtr dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), std::move(options))) {}
Loader::~Loader() = default;
const std::vector<Field>& Loader::fields() const { return impl_->maker().fields(); }
const Dataset& Loader::dataset() const { return impl_->dataset(); }
int Loader::workers() const { return impl_->workers(); }
int64_t Loader::batches_per_epoch() const { return impl_->batches_per_epoch(); }
int64_t Loader::samples_per_epoch() const { return impl_->samples_per_epoch(); }
bool Loader::read_rows(std::function<bool(int64_t, int64_t)> wanted) {
  return impl_->read_rows(std::move(wanted));
}
std::optional<Batch> Loader::next() {
  if (impl_->held_.empty()) return impl_->next();
  Batch batch = std::move(impl_->held_.front().batch);
  impl_->held_.pop_front();
  return batch;
}
const Batch* Loader::peek(size_t later) {
  while (impl_->held_.size() <= later) {
    const LoaderPosition from = impl_->position_;
    std::optional<Batch> batch = impl_->next();
    if (!batch) return nullptr;
    impl_->held_.push_back({from, std::move(*batch)});
  }
  return &impl_->held_[later].batch;
}
LoaderPosition Loader::position() const { return impl_->next_position(); }
std::vector<Dims> Loader::sample_shapes() const { return impl_->maker().sample_shapes(); }
void Loader::require(std::vector<ValueRange> ranges) { impl_->require(std::move(ranges)); }
std::optional<Loader::Rejection> Loader::examine(int64_t index, Sample& sample) const {
  return impl_->maker().examine(index, sample);
}
Batch Loader::collate(const std::vector<Sample>& samples, const std::vector<int64_t>& indices) {
  return impl_->maker().collate(samples, indices);
}
void Loader::check_batches(BatchCheck check) { impl_->batch_check_ = std::move(check); }
void Loader::seek(LoaderPosition position) { impl_->seek(position); }
std::unique_ptr<Loader> Loader::again() const { return impl_->again(); }
int64_t Loader::skipped_count() const { return impl_->skipped_count_; }
const std::vector<SkippedSample>& Loader::skipped() const { return impl_->skipped_; }
uint64_t Loader::batch_bytes() const { return impl_->maker().batch_bytes(); }

}  // namespace paddle::data
