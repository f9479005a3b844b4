#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/parallel.h"
#include "base/span.h"
#include "data/batch_timing.h"
#include "data/buffer_pool.h"
#include "data/sample_order.h"
#include "data/sample_reader.h"

namespace paddle::data {
namespace {

constexpr size_t kListedSkips = 1000;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

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

int64_t padded_length(int64_t longest, int64_t max_length) {
  int64_t step = 8;
  while (step * 8 < longest) step *= 2;
  const int64_t rounded = (std::max<int64_t>(longest, 1) + step - 1) / step * step;
  return std::max<int64_t>(longest, std::min(rounded, max_length));
}

class Loader::Impl {
 public:
  Impl(DatasetPtr dataset, LoaderOptions options)
      : dataset_(std::move(dataset)),
        options_(std::move(options)),
        reader_(dataset_, options_),
        mixing_(reader_.fields(), options_.batch_transforms) {
    if (options_.batch_size < 1)
      fail(ErrorCode::kConfig, "batch_size is ", options_.batch_size, ", at least 1 is needed");
    if (options_.workers < 0 || options_.workers > 1024)
      fail(ErrorCode::kConfig, "workers is ", options_.workers);
    if (options_.ranks < 1 || options_.rank < 0 || options_.rank >= options_.ranks ||
        options_.batch_size % options_.ranks != 0)
      fail(ErrorCode::kConfig, "a batch of ", options_.batch_size, " cannot be shared by ",
           options_.ranks, " processes");
    if (dataset_->size() == 0) fail(ErrorCode::kData, "the dataset is empty");
    if (options_.drop_last && epoch_size() < options_.batch_size)
      fail(ErrorCode::kData, "an epoch has ", epoch_size(), " samples, fewer than one batch of ",
           options_.batch_size, "; lower batch_size or set drop_last: false");
    fields_ = reader_.fields();
    for (size_t f = 0; f < reader_.fields().size(); ++f) {
      const Field& field = reader_.fields()[f];
      if (field.max_length == 0) continue;
      padded_.push_back(f);
      Field mask{.name = field.name + "_mask", .dtype = DType::kBool, .shape = {-1}};
      if (dataset_->find_field(mask.name) >= 0)
        fail(ErrorCode::kConfig, "the data has a field '", mask.name,
             "', which is the name of the mask of '", field.name, "'; rename one of them");
      mask.max_length = field.max_length;
      fields_.push_back(std::move(mask));
    }
    order_.emplace(dataset_, options_, !padded_.empty());
    for (const Field& field : fields_) {
      const bool fixed = std::find(field.shape.begin(), field.shape.end(), -1) == field.shape.end();
      if (fixed)
        batch_bytes_ += static_cast<uint64_t>(storage_bytes(
            field.dtype,
            checked_multiply(local_rows(), element_count(std::span<const int64_t>(field.shape)))));
    }
    for (std::string& reason : dataset_->left_out()) count_left_out(std::move(reason));
    start({});
  }
  ~Impl() { stop(); }

  const std::vector<Field>& fields() const { return fields_; }
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

  std::vector<Dims> sample_shapes() const {
    std::vector<Dims> shapes;
    for (const Field& field : fields()) {
      shapes.push_back(field.shape);
      if (field.max_length > 0) shapes.back()[0] = field.max_length;
    }
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
      for (size_t f = 0; f < workspace.sample.size(); ++f)
        if (open(shapes[f])) shapes[f] = workspace.sample[f].shape();
      return shapes;
    }
    fail(ErrorCode::kData, "no sample can be read; the first: ", reason);
  }

  std::optional<Refusal> examine(int64_t index, Sample& sample) const {
    Workspace workspace;
    workspace.sample = std::move(sample);
    std::optional<Refusal> refusal;
    try {
      reader_.read(index, {options_.seed, 0}, workspace);
    } catch (const BadSample& bad) {
      refusal = {bad.reason, true};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kData) throw;
      refusal = {error.what(), false};
    }
    sample = std::move(workspace.sample);
    return refusal;
  }

  Batch collate(const std::vector<Sample>& samples, const std::vector<int64_t>& indices) {
    Batch batch;
    batch.indices = indices;
    store_together(batch, samples);
    return batch;
  }

  void seek(LoaderPosition position) {
    if (position.epoch < 0 || position.sample < 0 || position.sample > epoch_size())
      fail(ErrorCode::kData, "cannot continue at sample ", position.sample, " of epoch ",
           position.epoch, ": an epoch has ", epoch_size(), " samples");
    stop();
    start(position);
  }

  void require(std::vector<ValueRange> ranges) {
    stop();
    options_.ranges = ranges;
    reader_.require(std::move(ranges));
    start(position_);
  }

  std::unique_ptr<Loader> again() const {
    auto out = std::make_unique<Loader>(dataset_, options_);
    out->check_batches(batch_check_);
    if (wanted_) out->read_rows(wanted_);
    return out;
  }

  bool read_rows(std::function<bool(int64_t, int64_t)> wanted) {
    const bool fixed = std::all_of(fields_.begin(), fields_.end(), [](const Field& field) {
      return std::find(field.shape.begin(), field.shape.end(), -1) == field.shape.end();
    });
    if (!fixed || !mixing_.empty() || options_.on_bad_sample == BadSamplePolicy::kSkip ||
        options_.nan == NanPolicy::kSkip)
      return false;
    stop();
    wanted_ = std::move(wanted);
    start(position_);
    return true;
  }

  LoaderPosition position_;
  BatchCheck batch_check_;
  int64_t skipped_count_ = 0;
  std::vector<SkippedSample> skipped_;
  uint64_t batch_bytes() {
    const std::lock_guard lock(mutex_);
    return batch_bytes_;
  }

 private:
  /// Places of an epoch, those that drop_last leaves out among them.
  int64_t epoch_size() const { return data::epoch_size(*dataset_, options_); }

  int64_t local_rows() const { return options_.batch_size / options_.ranks; }

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

  bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  /// The seconds that it took.
  double fill(Slot& slot, Workspace& workspace) {
    const auto begun = Clock::now();
    try {
      make_batch(slot, workspace);
    } catch (...) {
      slot.error = std::current_exception();
    }
    return seconds_since(begun);
  }

  void make_batch(Slot& slot, Workspace& workspace) {
    const Span span("make batch");
    const ReadContext context{options_.seed, static_cast<uint64_t>(slot.from.epoch)};
    const int64_t count = slot.end - slot.from.sample;
    const int64_t begin = slot.from.sample + count * options_.rank / options_.ranks;
    const int64_t end = slot.from.sample + count * (options_.rank + 1) / options_.ranks;
    if (!mixing_.empty()) return make_mixed_batch(slot, workspace, context, begin, end);
    Batch& batch = slot.batch;
    start_batch(slot);
    std::vector<Sample> samples;  // of a batch that is padded
    const int64_t rows = end - begin;
    const std::vector<int64_t> all = order_->indices(slot.from.epoch, begin, end);
    const bool has_own = !wanted_ || is_any_wanted(rows);
    for (const int64_t index : all) {
      if (options_.workers > 0 && stopping()) return;
      // A batch has the shapes of a sample, so that one is read in any case.
      const int64_t row = batch.samples;
      if (wanted_ && !wanted_(row, rows) && (has_own || row > 0)) {
        batch.indices.push_back(index);
        ++batch.samples;
        continue;
      }
      try {
        reader_.read(index, context, workspace);
      } catch (const BadSample& bad) {
        slot.skipped.push_back({slot.from.epoch, index, bad.reason});
        continue;
      }
      batch.indices.push_back(index);
      if (!padded_.empty()) {
        samples.push_back(std::move(workspace.sample));
        workspace.sample = {};
        continue;
      }
      if (batch.arrays.empty()) allocate(batch, workspace.sample, rows);
      store(batch, workspace.sample, index);
    }
    if (!samples.empty()) store_together(batch, samples);
    for (Array& array : batch.arrays) array.shape[0] = batch.samples;
  }

  bool is_any_wanted(int64_t rows) const {
    for (int64_t row = 0; row < rows; ++row)
      if (wanted_(row, rows)) return true;
    return false;
  }

  static void start_batch(Slot& slot) {
    slot.batch.epoch = slot.from.epoch;
    slot.batch.first = slot.from.sample;
    slot.batch.last_of_epoch = slot.last_of_epoch;
    slot.batch.next = slot.next;
  }

  /// A batch whose samples are mixed: all of them are read, also those of other ranks.
  void make_mixed_batch(Slot& slot, Workspace& workspace, const ReadContext& context, int64_t begin,
                        int64_t end) {
    start_batch(slot);
    std::vector<Sample> samples;
    std::vector<int64_t> numbers, places;
    int64_t place = slot.from.sample;
    for (const int64_t index : order_->indices(slot.from.epoch, slot.from.sample, slot.end)) {
      const int64_t at = place++;
      if (options_.workers > 0 && stopping()) return;
      try {
        reader_.read(index, context, workspace);
      } catch (const BadSample& bad) {
        if (at >= begin && at < end) slot.skipped.push_back({slot.from.epoch, index, bad.reason});
        continue;
      }
      samples.push_back(std::move(workspace.sample));
      workspace.sample = {};
      numbers.push_back(index);
      places.push_back(at);
    }
    mixing_.apply(samples, numbers, context, slot.from.sample);
    std::vector<Sample> own;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (places[i] < begin || places[i] >= end) continue;
      own.push_back(std::move(samples[i]));
      slot.batch.indices.push_back(numbers[i]);
    }
    if (!own.empty()) store_together(slot.batch, own);
  }

  /// Puts samples into arrays. Fields that are padded become as long as the longest of them, zeros
  /// behind shorter ones, and get their masks.
  void store_together(Batch& batch, const std::vector<Sample>& samples) {
    const auto rows = static_cast<int64_t>(samples.size());
    std::vector<Dims> shapes;
    for (const Value& value : samples[0]) shapes.push_back(value.shape());
    std::vector<int64_t> lengths;
    for (const size_t f : padded_) {
      int64_t longest = 0;
      for (const Sample& sample : samples) longest = std::max(longest, sample[f].shape()[0]);
      shapes[f][0] = lengths.emplace_back(padded_length(longest, fields_[f].max_length));
    }
    for (size_t f = 0; f < shapes.size(); ++f) {
      shapes[f].insert(shapes[f].begin(), rows);
      batch.arrays.push_back(pool_->array(samples[0][f].dtype(), shapes[f]));
    }
    for (const int64_t length : lengths)
      batch.arrays.push_back(pool_->array(DType::kBool, {rows, length}));
    for (size_t row = 0; row < samples.size(); ++row) {
      for (size_t f = 0; f < samples[row].size(); ++f)
        store_row(batch.arrays[f], samples[row][f], f, batch.samples, batch.indices[row]);
      for (size_t p = 0; p < padded_.size(); ++p) {
        const auto length = static_cast<size_t>(lengths[p]);
        const auto filled = static_cast<size_t>(samples[row][padded_[p]].shape()[0]);
        auto* mask = static_cast<std::byte*>(batch.arrays[shapes.size() + p].raw()) + row * length;
        std::memset(mask, 1, filled);
        std::memset(mask + filled, 0, length - filled);
      }
      ++batch.samples;
    }
    uint64_t bytes = 0;
    for (const Array& array : batch.arrays) bytes += array.storage->bytes();
    const std::lock_guard lock(mutex_);
    batch_bytes_ = std::max(batch_bytes_, bytes);
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
    for (size_t f = 0; f < sample.size(); ++f)
      store_row(batch.arrays[f], sample[f], f, batch.samples, index);
    ++batch.samples;
  }

  /// Copies a value to a row of its array; zeros follow where it is padded.
  void store_row(Array& array, const Value& value, size_t field, int64_t row, int64_t index) const {
    const Dims& shape = value.shape();
    const size_t same_from = fields_[field].max_length > 0 ? 1 : 0;
    if (shape.size() + 1 != array.shape.size() ||
        !std::equal(shape.begin() + static_cast<ptrdiff_t>(same_from), shape.end(),
                    array.shape.begin() + 1 + static_cast<ptrdiff_t>(same_from))) {
      const Dims first(array.shape.begin() + 1, array.shape.end());
      fail(ErrorCode::kData, dataset_->location(index), ": field '", fields()[field].name,
           "' has shape ", str(shape), ", others of its batch have ", str(first),
           "; give all the same size (transform resize, crop or pad)");
    }
    const int64_t elements = element_count(std::span<const int64_t>(array.shape).subspan(1));
    const auto row_bytes = static_cast<size_t>(storage_bytes(array.dtype, elements));
    std::byte* to = static_cast<std::byte*>(array.raw()) + static_cast<size_t>(row) * row_bytes;
    if (value.bytes() > 0) std::memcpy(to, value.raw(), value.bytes());
    std::memset(to + value.bytes(), 0, row_bytes - value.bytes());
  }

  void check_rows(Slot& slot) {
    Batch& batch = slot.batch;
    const int64_t rows = batch.samples;
    std::vector<bool> bad(static_cast<size_t>(rows));
    for (BadRow& each : batch_check_(batch)) {
      // Rows that other ranks read have no meaning here.
      if (wanted_ && !wanted_(each.row, rows)) continue;
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
      fail(ErrorCode::kData, skipped_count_, " records were bad, beside ", epoch_size(),
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
  SampleReader reader_;
  std::optional<SampleOrder> order_;
  BatchPipeline mixing_;
  std::vector<Field> fields_;                     ///< of the reader, then the masks
  std::vector<size_t> padded_;                    ///< fields that are padded
  std::function<bool(int64_t, int64_t)> wanted_;  ///< rows of a batch; empty: all
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
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
  uint64_t batch_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

Loader::Loader(DatasetPtr dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), std::move(options))) {}
Loader::~Loader() = default;
const std::vector<Field>& Loader::fields() const { return impl_->fields(); }
const Dataset& Loader::dataset() const { return impl_->dataset(); }
int Loader::workers() const { return impl_->workers(); }
int64_t Loader::batches_per_epoch() const { return impl_->batches_per_epoch(); }
int64_t Loader::samples_per_epoch() const { return impl_->samples_per_epoch(); }
bool Loader::read_rows(std::function<bool(int64_t, int64_t)> wanted) {
  return impl_->read_rows(std::move(wanted));
}
std::optional<Batch> Loader::next() { return impl_->next(); }
LoaderPosition Loader::position() const { return impl_->position_; }
std::vector<Dims> Loader::sample_shapes() const { return impl_->sample_shapes(); }
void Loader::require(std::vector<ValueRange> ranges) { impl_->require(std::move(ranges)); }
std::optional<Loader::Refusal> Loader::examine(int64_t index, Sample& sample) const {
  return impl_->examine(index, sample);
}
Batch Loader::collate(const std::vector<Sample>& samples, const std::vector<int64_t>& indices) {
  return impl_->collate(samples, indices);
}
void Loader::check_batches(BatchCheck check) { impl_->batch_check_ = std::move(check); }
void Loader::seek(LoaderPosition position) { impl_->seek(position); }
std::unique_ptr<Loader> Loader::again() const { return impl_->again(); }
int64_t Loader::skipped_count() const { return impl_->skipped_count_; }
const std::vector<SkippedSample>& Loader::skipped() const { return impl_->skipped_; }
uint64_t Loader::batch_bytes() const { return impl_->batch_bytes(); }

}  // namespace paddle::data
