#pragma once
// Batches of samples: read, transformed, mixed, padded and put together. What a batch holds depends
// on the dataset, the options and its place in the epoch only. Used by many threads at once.

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "data/loading/buffer_pool.h"
#include "data/loading/sample_order.h"
#include "data/loading/sample_reader.h"

namespace paddle::data {

/// The places of a batch in the order of an epoch.
struct BatchPlaces {
  LoaderPosition from, next;  ///< of its first sample, and of the batch after it
  int64_t end = 0;            ///< place after the last sample
  bool last_of_epoch = false;
};

class BatchMaker {
 public:
  /// kConfig for options that do not fit the dataset.
  BatchMaker(DatasetPtr dataset, const LoaderOptions& options);

  /// Those of the dataset after the transforms, then the masks of fields that are padded.
  const std::vector<Field>& fields() const { return fields_; }
  /// As the functions of Loader (data/loader.h). `require` and `read_rows`: not while batches are
  /// made.
  std::vector<Dims> sample_shapes() const;
  std::optional<Loader::Rejection> examine(int64_t index, Sample& sample) const;
  Batch collate(const std::vector<Sample>& samples, const std::vector<int64_t>& indices);
  void require(std::vector<ValueRange> ranges);
  void read_rows(std::function<bool(int64_t, int64_t)> wanted);
  bool can_read_rows() const;
  const std::function<bool(int64_t, int64_t)>& wanted() const { return wanted_; }

  /// This process's part of the batch, and the samples that were left out. Ends early, with a batch
  /// that must not be used, once `stop` is set.
  Batch make(const BatchPlaces& places, Workspace& workspace, std::vector<SkippedSample>& skipped,
             const std::atomic<bool>& stop);
  /// Bytes of a batch, from the declared shapes or, where they differ by sample, the largest so
  /// far.
  uint64_t batch_bytes() const { return batch_bytes_; }

 private:
  void add_masks();
  bool is_any_wanted(int64_t rows) const;
  void make_mixed(Batch& batch, const BatchPlaces& places, Workspace& workspace,
                  std::vector<SkippedSample>& skipped, int64_t begin, int64_t end,
                  const std::atomic<bool>& stop);
  void store_together(Batch& batch, const std::vector<Sample>& samples);
  void allocate(Batch& batch, const Sample& sample, int64_t rows);
  void store(Batch& batch, const Sample& sample, int64_t index) const;
  void store_row(Array& array, const Value& value, size_t field, int64_t row, int64_t index) const;
  void note_bytes(const Batch& batch);

  DatasetPtr dataset_;
  LoaderOptions options_;
  SampleReader reader_;
  BatchPipeline mixing_;
  std::vector<Field> fields_;
  std::vector<size_t> padded_;  ///< fields that are padded
  std::vector<size_t> masked_;  ///< those of them that have masks
  std::optional<SampleOrder> order_;
  std::function<bool(int64_t, int64_t)> wanted_;  ///< rows of a batch; empty: all
  std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
  std::atomic<uint64_t> batch_bytes_ = 0;
};

}  // namespace paddle::data
