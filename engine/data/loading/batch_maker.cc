#include "data/loading/batch_maker.h"

#include <algorithm>
#include <cstring>

#include "base/span.h"
#include "graph/sampling.h"

namespace paddle::data {
namespace {

bool is_open(const Dims& shape) { return std::find(shape.begin(), shape.end(), -1) != shape.end(); }

void check_options(const Dataset& dataset, const LoaderOptions& options) {
  if (options.batch_size < 1)
    fail(ErrorCode::kConfig, "batch_size is ", options.batch_size, ", at least 1 is needed");
  if (options.workers < 0 || options.workers > 1024)
    fail(ErrorCode::kConfig, "workers is ", options.workers);
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks ||
      options.batch_size % options.ranks != 0)
    fail(ErrorCode::kConfig, "a batch of ", options.batch_size, " cannot be shared by ",
         options.ranks, " processes");
  if (dataset.size() == 0) fail(ErrorCode::kData, "the dataset is empty");
  if (options.drop_last && epoch_size(dataset, options) < options.batch_size)
    fail(ErrorCode::kData, "an epoch has ", epoch_size(dataset, options),
         " samples, fewer than one batch of ", options.batch_size,
         "; lower batch_size or set drop_last: false");
}

void raise_to(std::atomic<uint64_t>& value, uint64_t least) {
  for (uint64_t before = value; before < least && !value.compare_exchange_weak(before, least);) {
  }
}

}  // namespace

int64_t padded_length(int64_t longest, int64_t max_length) {
  int64_t step = 8;
  while (step * 8 < longest) step *= 2;
  const int64_t rounded = (std::max<int64_t>(longest, 1) + step - 1) / step * step;
  return std::max<int64_t>(longest, std::min(rounded, max_length));
}

BatchMaker::BatchMaker(DatasetPtr dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      reader_(dataset_, options_),
      mixing_(reader_.fields(), options_.batch_transforms),
      fields_(reader_.fields()) {
  check_options(*dataset_, options_);
  add_masks();
  order_.emplace(dataset_, options_, !padded_.empty());
  uint64_t bytes = 0;
  for (const Field& field : fields_)
    if (!is_open(field.shape))
      bytes += static_cast<uint64_t>(storage_bytes(
          field.dtype, checked_multiply(options_.batch_size / options_.ranks,
                                        element_count(std::span<const int64_t>(field.shape)))));
  batch_bytes_ = bytes;
}

void BatchMaker::add_masks() {
  for (size_t f = 0; f < reader_.fields().size(); ++f) {
    const Field& field = reader_.fields()[f];
    if (field.max_length == 0) continue;
    padded_.push_back(f);
    if (field.fill) continue;
    masked_.push_back(f);
    Field mask{.name = field.name + "_mask", .dtype = DType::kBool, .shape = {-1}};
    if (dataset_->find_field(mask.name) >= 0)
      fail(ErrorCode::kConfig, "the data has a field '", mask.name,
           "', which is the name of the mask of '", field.name, "'; rename one of them");
    mask.max_length = field.max_length;
    fields_.push_back(std::move(mask));
  }
}

std::vector<Dims> BatchMaker::sample_shapes() const {
  std::vector<Dims> shapes;
  for (const Field& field : fields()) {
    shapes.push_back(field.shape);
    if (field.max_length > 0) shapes.back()[0] = field.max_length;
  }
  if (std::none_of(shapes.begin(), shapes.end(), is_open)) return shapes;
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
      if (is_open(shapes[f])) shapes[f] = workspace.sample[f].shape();
    return shapes;
  }
  fail(ErrorCode::kData, "no sample can be read; the first: ", reason);
}

std::optional<Loader::Rejection> BatchMaker::examine(int64_t index, Sample& sample) const {
  Workspace workspace;
  workspace.sample = std::move(sample);
  std::optional<Loader::Rejection> rejection;
  try {
    reader_.read(index, {options_.seed, 0}, workspace);
  } catch (const BadSample& bad) {
    rejection = {bad.reason, true};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData) throw;
    rejection = {error.what(), false};
  }
  sample = std::move(workspace.sample);
  return rejection;
}

Batch BatchMaker::collate(const std::vector<Sample>& samples, const std::vector<int64_t>& indices) {
  Batch batch;
  batch.indices = indices;
  store_together(batch, samples);
  return batch;
}

void BatchMaker::require(std::vector<ValueRange> ranges) { reader_.require(std::move(ranges)); }

bool BatchMaker::can_read_rows() const {
  return std::none_of(fields_.begin(), fields_.end(),
                      [](const Field& field) { return is_open(field.shape); }) &&
         mixing_.empty() && options_.on_bad_sample != BadSamplePolicy::kSkip &&
         options_.nan != NanPolicy::kSkip;
}

void BatchMaker::read_rows(std::function<bool(int64_t, int64_t)> wanted) {
  wanted_ = std::move(wanted);
}

Batch BatchMaker::make(const BatchPlaces& places, Workspace& workspace,
                       std::vector<SkippedSample>& skipped, const std::atomic<bool>& stop) {
  const Span span("make batch");
  const ReadContext context{options_.seed, static_cast<uint64_t>(places.from.epoch)};
  const int64_t count = places.end - places.from.sample;
  const int64_t begin = places.from.sample + count * options_.rank / options_.ranks;
  const int64_t end = places.from.sample + count * (options_.rank + 1) / options_.ranks;
  Batch batch;
  batch.epoch = places.from.epoch;
  batch.first = places.from.sample;
  batch.last_of_epoch = places.last_of_epoch;
  batch.next = places.next;
  if (!mixing_.empty()) {
    make_mixed(batch, places, workspace, skipped, begin, end, stop);
    return batch;
  }
  std::vector<Sample> samples;  // of a batch that is padded
  const int64_t rows = end - begin;
  const std::vector<int64_t> all = order_->indices(places.from.epoch, begin, end);
  const bool has_own = !wanted_ || is_any_wanted(rows);
  for (const int64_t index : all) {
    if (stop) return batch;
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
      skipped.push_back({places.from.epoch, index, bad.reason});
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
  return batch;
}

bool BatchMaker::is_any_wanted(int64_t rows) const {
  for (int64_t row = 0; row < rows; ++row)
    if (wanted_(row, rows)) return true;
  return false;
}

/// A batch whose samples are mixed: all of them are read, also those of other ranks.
void BatchMaker::make_mixed(Batch& batch, const BatchPlaces& places, Workspace& workspace,
                            std::vector<SkippedSample>& skipped, int64_t begin, int64_t end,
                            const std::atomic<bool>& stop) {
  const ReadContext context{options_.seed, static_cast<uint64_t>(places.from.epoch)};
  std::vector<Sample> samples;
  std::vector<int64_t> numbers, spots;
  int64_t place = places.from.sample;
  for (const int64_t index : order_->indices(places.from.epoch, places.from.sample, places.end)) {
    const int64_t at = place++;
    if (stop) return;
    try {
      reader_.read(index, context, workspace);
    } catch (const BadSample& bad) {
      if (at >= begin && at < end) skipped.push_back({places.from.epoch, index, bad.reason});
      continue;
    }
    samples.push_back(std::move(workspace.sample));
    workspace.sample = {};
    numbers.push_back(index);
    spots.push_back(at);
  }
  mixing_.apply(samples, numbers, context, places.from.sample);
  std::vector<Sample> own;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (spots[i] < begin || spots[i] >= end) continue;
    own.push_back(std::move(samples[i]));
    batch.indices.push_back(numbers[i]);
  }
  if (!own.empty()) store_together(batch, own);
}

/// Puts samples into arrays. Fields that are padded become as long as the longest of them, zeros
/// after shorter ones, and get their masks.
void BatchMaker::store_together(Batch& batch, const std::vector<Sample>& samples) {
  const auto rows = static_cast<int64_t>(samples.size());
  std::vector<Dims> shapes;
  for (const Value& value : samples[0]) shapes.push_back(value.shape());
  for (const size_t f : padded_) {
    int64_t longest = 0;
    for (const Sample& sample : samples) longest = std::max(longest, sample[f].shape()[0]);
    shapes[f][0] = fields_[f].fill ? graph::size_class(longest)
                                   : padded_length(longest, fields_[f].max_length);
  }
  std::vector<int64_t> lengths;
  for (const size_t f : masked_) lengths.push_back(shapes[f][0]);
  for (size_t f = 0; f < shapes.size(); ++f) {
    shapes[f].insert(shapes[f].begin(), rows);
    batch.arrays.push_back(pool_->array(samples[0][f].dtype(), shapes[f]));
  }
  for (const int64_t length : lengths)
    batch.arrays.push_back(pool_->array(DType::kBool, {rows, length}));
  for (size_t row = 0; row < samples.size(); ++row) {
    for (size_t f = 0; f < samples[row].size(); ++f)
      store_row(batch.arrays[f], samples[row][f], f, batch.samples, batch.indices[row]);
    for (size_t p = 0; p < masked_.size(); ++p) {
      const auto length = static_cast<size_t>(lengths[p]);
      const auto filled = static_cast<size_t>(samples[row][masked_[p]].shape()[0]);
      auto* mask = static_cast<std::byte*>(batch.arrays[shapes.size() + p].raw()) + row * length;
      std::memset(mask, 1, filled);
      std::memset(mask + filled, 0, length - filled);
    }
    ++batch.samples;
  }
  note_bytes(batch);
}

void BatchMaker::note_bytes(const Batch& batch) {
  uint64_t bytes = 0;
  for (const Array& array : batch.arrays) bytes += array.storage->bytes();
  raise_to(batch_bytes_, bytes);
}

void BatchMaker::allocate(Batch& batch, const Sample& sample, int64_t rows) {
  for (const Value& value : sample) {
    Dims shape = {rows};
    shape.insert(shape.end(), value.shape().begin(), value.shape().end());
    batch.arrays.push_back(pool_->array(value.dtype(), std::move(shape)));
  }
  note_bytes(batch);
}

void BatchMaker::store(Batch& batch, const Sample& sample, int64_t index) const {
  for (size_t f = 0; f < sample.size(); ++f)
    store_row(batch.arrays[f], sample[f], f, batch.samples, index);
  ++batch.samples;
}

/// Copies a value to a row of its array; zeros follow where it is padded.
void BatchMaker::store_row(Array& array, const Value& value, size_t field, int64_t row,
                           int64_t index) const {
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
  if (const int64_t fill = fields_[field].fill.value_or(0); fill != 0)
    visit_dtype(array.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        std::fill(reinterpret_cast<T*>(to) + value.size(), reinterpret_cast<T*>(to) + elements,
                  static_cast<T>(fill));
    });
}

}  // namespace paddle::data
