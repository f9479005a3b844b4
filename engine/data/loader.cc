#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/parallel.h"
#include "base/span.h"
#include "data/buffer_pool.h"
#include "data/sample_reader.h"

namespace paddle::data {
namespace {

constexpr size_t kListedSkips = 1000;

/// One batch on its way: made by one thread, taken by the consumer in order.
struct Slot {
  LoaderPosition from, next;
  int64_t end = 0;  ///< place after the last sample
  bool last_of_epoch = false;
  Batch batch;
  std::vector<SkippedSample> skipped;
  std::exception_ptr error;
  bool done = false;
};

}  // namespace

class Loader::Impl {
 public:
  Impl(DatasetPtr dataset, LoaderOptions options)
      : dataset_(std::move(dataset)), options_(std::move(options)), reader_(dataset_, options_) {
    if (options_.batch_size < 1)
      fail(ErrorCode::kConfig, "batch_size is ", options_.batch_size, ", at least 1 is needed");
    if (options_.workers < 0 || options_.workers > 1024)
      fail(ErrorCode::kConfig, "workers is ", options_.workers);
    if (options_.ranks < 1 || options_.rank < 0 || options_.rank >= options_.ranks ||
        options_.batch_size % options_.ranks != 0)
      fail(ErrorCode::kConfig, "a batch of ", options_.batch_size, " cannot be shared by ",
           options_.ranks, " processes");
    if (dataset_->size() == 0) fail(ErrorCode::kData, "the dataset is empty");
    if (options_.drop_last && dataset_->size() < options_.batch_size)
      fail(ErrorCode::kData, "the dataset has ", dataset_->size(),
           " samples, fewer than one batch of ", options_.batch_size,
           "; lower batch_size or set drop_last: false");
    for (const Field& field : reader_.fields()) {
      const bool fixed = std::find(field.shape.begin(), field.shape.end(), -1) == field.shape.end();
      if (fixed)
        batch_bytes_ += static_cast<uint64_t>(storage_bytes(
            field.dtype,
            checked_multiply(local_rows(), element_count(std::span<const int64_t>(field.shape)))));
    }
    start({});
  }
  ~Impl() { stop(); }

  const std::vector<Field>& fields() const { return reader_.fields(); }
  const Dataset& dataset() const { return *dataset_; }
  int64_t samples_per_epoch() const {
    const int64_t n = dataset_->size();
    return options_.drop_last ? n / options_.batch_size * options_.batch_size : n;
  }
  int64_t batches_per_epoch() const {
    return (samples_per_epoch() + options_.batch_size - 1) / options_.batch_size;
  }

  std::optional<Batch> next() {
    while (true) {
      std::shared_ptr<Slot> slot = options_.workers == 0 ? make_here() : take();
      if (!slot) return std::nullopt;
      if (slot->error) {
        failure_ = slot->error;
        std::rethrow_exception(slot->error);
      }
      position_ = slot->next;
      try {
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

  std::vector<Dims> sample_shapes() const {
    std::vector<Dims> shapes;
    for (const Field& field : fields()) shapes.push_back(field.shape);
    const auto open = [](const Dims& shape) {
      return std::find(shape.begin(), shape.end(), -1) != shape.end();
    };
    if (std::none_of(shapes.begin(), shapes.end(), open)) return shapes;
    Workspace workspace;
    std::string reason;
    for (int64_t index = 0; index < dataset_->size(); ++index) {
      try {
        reader_.read(index, {options_.seed, 0}, workspace);
      } catch (const BadSample& bad) {
        if (reason.empty()) reason = bad.reason;
        continue;
      }
      for (size_t f = 0; f < shapes.size(); ++f) shapes[f] = workspace.sample[f].shape();
      return shapes;
    }
    fail(ErrorCode::kData, "no sample can be read; the first: ", reason);
  }

  void seek(LoaderPosition position) {
    if (position.epoch < 0 || position.sample < 0 || position.sample > dataset_->size())
      fail(ErrorCode::kData, "cannot continue at sample ", position.sample, " of epoch ",
           position.epoch, ": the dataset has ", dataset_->size(), " samples");
    stop();
    start(position);
  }

  void require(std::vector<ValueRange> ranges) {
    stop();
    reader_.require(std::move(ranges));
    start(position_);
  }

  LoaderPosition position_;
  int64_t skipped_count_ = 0;
  std::vector<SkippedSample> skipped_;
  uint64_t batch_bytes() {
    const std::lock_guard lock(mutex_);
    return batch_bytes_;
  }

 private:
  int64_t local_rows() const { return options_.batch_size / options_.ranks; }

  void start(LoaderPosition position) {
    const int64_t needed = options_.drop_last ? options_.batch_size : 1;
    if (position.sample + needed > samples_per_epoch()) position = {position.epoch + 1, 0};
    position_ = cursor_ = position;
    stopping_ = false;
    failure_ = nullptr;
    skips_in_epoch_ = 0;
    empty_since_ = -1;
    for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { work(); });
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
    changed_.wait(lock, [&] { return slots_.empty() ? finished() : slots_.front()->done; });
    if (slots_.empty()) return nullptr;
    auto slot = std::move(slots_.front());
    slots_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return slot;
  }

  bool finished() const { return options_.epochs > 0 && cursor_.epoch >= options_.epochs; }

  bool may_start() const {
    if (finished()) return false;
    if (slots_.empty()) return true;
    const uint64_t ahead = slots_.size() + 1;
    return ahead <= static_cast<uint64_t>(options_.workers) * 2 + 2 &&
           ahead * std::max<uint64_t>(batch_bytes_, 1) <= options_.prefetch_bytes;
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
      fill(*slot, workspace);
      bool failed;
      {
        const std::lock_guard lock(mutex_);
        slot->done = true;
        failed = slot->error != nullptr;
      }
      changed_.notify_all();
      if (failed) return;  // nothing after an error is ever asked for
    }
  }

  bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  void fill(Slot& slot, Workspace& workspace) {
    try {
      make_batch(slot, workspace);
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  void make_batch(Slot& slot, Workspace& workspace) {
    const Span span("make batch");
    const ReadContext context{options_.seed, static_cast<uint64_t>(slot.from.epoch)};
    const auto n = static_cast<uint64_t>(dataset_->size());
    const Permutation order(n, options_.seed, stream_of("shuffle"), context.epoch);
    const int64_t count = slot.end - slot.from.sample;
    const int64_t begin = slot.from.sample + count * options_.rank / options_.ranks;
    const int64_t end = slot.from.sample + count * (options_.rank + 1) / options_.ranks;
    Batch& batch = slot.batch;
    batch.epoch = slot.from.epoch;
    batch.first = slot.from.sample;
    batch.last_of_epoch = slot.last_of_epoch;
    batch.next = slot.next;
    for (int64_t at = begin; at < end; ++at) {
      if (options_.workers > 0 && stopping()) return;
      const int64_t index =
          options_.shuffle ? static_cast<int64_t>(order(static_cast<uint64_t>(at))) : at;
      try {
        reader_.read(index, context, workspace);
      } catch (const BadSample& bad) {
        slot.skipped.push_back({slot.from.epoch, index, bad.reason});
        continue;
      }
      if (batch.arrays.empty()) allocate(batch, workspace.sample, end - begin);
      store(batch, workspace.sample, index);
      batch.indices.push_back(index);
    }
    for (Array& array : batch.arrays) array.shape[0] = batch.samples;
  }

  void allocate(Batch& batch, const Sample& sample, int64_t rows) {
    uint64_t bytes = 0;
    for (const Value& value : sample) {
      Dims shape = {rows};
      shape.insert(shape.end(), value.shape().begin(), value.shape().end());
      batch.arrays.push_back(pool_->array(value.dtype(), std::move(shape)));
      bytes += batch.arrays.back().storage->bytes();
    }
    const std::lock_guard lock(mutex_);
    batch_bytes_ = std::max(batch_bytes_, bytes);
  }

  void store(Batch& batch, const Sample& sample, int64_t index) const {
    for (size_t f = 0; f < sample.size(); ++f) {
      Array& array = batch.arrays[f];
      const Dims& shape = sample[f].shape();
      if (!std::equal(shape.begin(), shape.end(), array.shape.begin() + 1, array.shape.end())) {
        const Dims first(array.shape.begin() + 1, array.shape.end());
        fail(ErrorCode::kData, dataset_->location(index), ": field '", fields()[f].name,
             "' has shape ", str(shape), ", others of its batch have ", str(first),
             "; give all the same size (transform resize, crop or pad)");
      }
      if (sample[f].bytes() > 0)
        std::memcpy(static_cast<std::byte*>(array.raw()) +
                        static_cast<size_t>(batch.samples) * sample[f].bytes(),
                    sample[f].raw(), sample[f].bytes());
    }
    ++batch.samples;
  }

  /// In the order of batches, so that the limit is hit at the same place with any worker count.
  void count_skips(Slot& slot) {
    for (SkippedSample& each : slot.skipped) {
      ++skipped_count_;
      ++skips_in_epoch_;
      const double allowed = options_.max_bad_rate * static_cast<double>(dataset_->size());
      if (static_cast<double>(skips_in_epoch_) > allowed)
        fail(ErrorCode::kData, skips_in_epoch_, " of ", dataset_->size(),
             " samples were bad, more than the rate of ", options_.max_bad_rate,
             " that max_bad_rate allows; the last: ", each.reason);
      if (skipped_.size() < kListedSkips) skipped_.push_back(std::move(each));
    }
    if (slot.last_of_epoch) skips_in_epoch_ = 0;
  }

  DatasetPtr dataset_;
  LoaderOptions options_;
  SampleReader reader_;
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  Workspace workspace_;
  std::exception_ptr failure_;
  int64_t skips_in_epoch_ = 0;
  int64_t empty_since_ = -1;  ///< the epoch of the first batch in a row without samples

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  LoaderPosition cursor_;
  std::deque<std::shared_ptr<Slot>> slots_;
  uint64_t batch_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

Loader::Loader(DatasetPtr dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), std::move(options))) {}
Loader::~Loader() = default;
const std::vector<Field>& Loader::fields() const { return impl_->fields(); }
const Dataset& Loader::dataset() const { return impl_->dataset(); }
int64_t Loader::batches_per_epoch() const { return impl_->batches_per_epoch(); }
int64_t Loader::samples_per_epoch() const { return impl_->samples_per_epoch(); }
std::optional<Batch> Loader::next() { return impl_->next(); }
LoaderPosition Loader::position() const { return impl_->position_; }
std::vector<Dims> Loader::sample_shapes() const { return impl_->sample_shapes(); }
void Loader::require(std::vector<ValueRange> ranges) { impl_->require(std::move(ranges)); }
void Loader::seek(LoaderPosition position) { impl_->seek(position); }
int64_t Loader::skipped_count() const { return impl_->skipped_count_; }
const std::vector<SkippedSample>& Loader::skipped() const { return impl_->skipped_; }
uint64_t Loader::batch_bytes() const { return impl_->batch_bytes(); }

}  // namespace paddle::data
