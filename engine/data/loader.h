#pragma once
// The loader: shuffles, reads, transforms and batches a dataset, ahead of the consumer and on
// worker threads. What it yields depends only on the dataset, the options and the position, never
// on the number of workers; any position can be resumed at once, without reading what went before.
//
// Example:
//   Loader loader(make_dataset(dataset_options), {.batch_size = 64, .shuffle = true, .workers =
//   2}); while (auto batch = loader.next()) train(batch->arrays);

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/transforms.h"
#include "data/transforms/batch_transforms.h"

namespace paddle::data {

/// Handling of samples that cannot be read or decoded.
enum class BadSamplePolicy {
  kError,
  kSkip,  ///< left out of its batch, which is then shorter, and listed
  kKeep,  ///< used as far as its dataset can (data/datasets/bad_samples.h); others are errors
};
/// Handling of NaN and infinity in a floating field of the dataset, before transforms.
enum class NanPolicy { kError, kSkip, kKeep };

/// Integers of a field, as the transforms leave it, that must lie in [low, high): labels against
/// the classes of the model.
struct ValueRange {
  std::string field = {};
  int64_t low = 0, high = 0;
  std::optional<int64_t> also = {};  ///< one further number: what marks a label to be ignored
};

struct LoaderOptions {
  int64_t batch_size = 1;  ///< of all ranks together
  bool shuffle = false;    ///< in an order that depends only on (seed, epoch)
  bool drop_last = false;  ///< leave out the samples of an epoch that fill no batch
  uint64_t seed = 0;
  int workers = 0;  ///< threads; 0: batches are made in `next`
  uint64_t prefetch_bytes = uint64_t{256}
                            << 20;  ///< at most so much is made ahead (one batch is always)
  int64_t epochs = 0;               ///< number of epochs; 0: without end
  BadSamplePolicy on_bad_sample = BadSamplePolicy::kError;
  double max_bad_rate = 0.01;  ///< skipping a larger share of an epoch is an error
  NanPolicy nan = NanPolicy::kError;
  std::vector<ValueRange> ranges = {};
  std::vector<TransformOptions> transforms = {};
  /// After them, on the samples of a batch together; with several ranks each one reads all of them.
  std::vector<BatchTransformOptions> batch_transforms = {};
  /// With shuffling and padding, each batch holds samples of similar lengths, chosen within windows
  /// of this many batches. 0: lengths play no role.
  int64_t length_window = 50;
  /// One per sample: those of an epoch, `epoch_samples` of them (0: as many as there are), are
  /// drawn independently with these weights. Empty: each sample comes once.
  std::vector<double> weights = {};
  int64_t epoch_samples = 0;
  int64_t rank = 0, ranks = 1;  ///< this process takes rows rank/ranks to (rank+1)/ranks of a batch
};

/// The length to which a batch is padded: that of its longest sample rounded up to one of a few
/// sizes (multiples of 8 up to 64, of 16 up to 128, of 32 up to 256, …), so that few plans serve
/// all of them.
int64_t padded_length(int64_t longest, int64_t max_length);

/// The next sample to read: `sample` counts places in the order of the epoch.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t sample = 0;
  bool operator==(const LoaderPosition&) const = default;
};

struct SkippedSample {
  int64_t epoch = 0;
  int64_t index = 0;        ///< in the dataset
  std::string reason = {};  ///< with the file and the row
};

struct Batch {
  std::vector<Array> arrays = {};  ///< one per field, [samples, …]
  int64_t samples = 0;             ///< in this process's part
  int64_t epoch = 0;
  int64_t first = 0;                  ///< place of the first sample in the epoch's order
  std::vector<int64_t> indices = {};  ///< of the samples, in the dataset
  bool last_of_epoch = false;
  LoaderPosition next = {};  ///< where the batch after this one starts
};

class Loader {
 public:
  /// kConfig for options that do not fit the dataset; kData if an epoch would hold no batch.
  Loader(DatasetPtr dataset, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Fields of a batch; their shapes are those of one sample. After those of the dataset, a mask
  /// for each one that is padded: `<name>_mask: bool[length]`, true where there is a value.
  const std::vector<Field>& fields() const;
  const Dataset& dataset() const;
  int workers() const;
  int64_t batches_per_epoch() const;
  int64_t samples_per_epoch() const;  ///< without those that drop_last leaves out

  /// The next batch; nullopt after the last epoch. An error met while making a batch is thrown
  /// here, when its turn comes. Batches without any good sample are passed over.
  std::optional<Batch> next();
  /// The batch that `next` will return after `later` others, which are all made now; null after the
  /// last epoch. Valid until the next call of `peek`, `next`, `seek` or `read_rows`.
  const Batch* peek(size_t later = 0);
  /// Position of the batch that `next` will return: save it in a checkpoint.
  LoaderPosition position() const;
  /// Shapes of the fields of one sample. Lengths that are padded are the longest possible ones;
  /// other sizes that differ by sample are those of the first sample that the policies accept;
  /// kData if there is none.
  std::vector<Dims> sample_shapes() const;
  /// Why a sample cannot be used, and whether a policy says to leave it out.
  struct Rejection {
    std::string reason;  ///< with the file and the row
    bool skipped = false;
  };
  /// Reads sample `index` as epoch 0 does, up to batches; nullopt if it is good. Its position and
  /// what is skipped stay as they are. May be called while batches are made.
  std::optional<Rejection> examine(int64_t index, Sample& sample) const;
  /// Samples that `examine` gave, as one batch.
  Batch collate(const std::vector<Sample>& samples, const std::vector<int64_t>& indices);
  /// A sample that only shows in a batch, by what the model makes of it, to be bad.
  struct BadRow {
    int64_t row;
    std::string reason;  ///< without its place
  };
  using BatchCheck = std::function<std::vector<BadRow>(const Batch&)>;
  /// Calls `check` with each batch that `next` is about to give, in its thread. The rows that it
  /// names, in rising order, are treated as the policy for bad samples says.
  void check_batches(BatchCheck check);
  /// Checks integers against these ranges from the current position on.
  void require(std::vector<ValueRange> ranges);
  /// Reads only the rows of a batch that `wanted(row, rows)` says; the others keep their places and
  /// have no meaning. False, and nothing changes, where batches depend on all samples: where these
  /// are padded, mixed, of several sizes, or may be skipped.
  bool read_rows(std::function<bool(int64_t row, int64_t rows)> wanted);
  /// Continues from a saved position, or from the start of an epoch.
  void seek(LoaderPosition position);
  /// Another loader of the same batches, from the first epoch on. It shares the dataset, and
  /// reading it leaves the position and the counts of this one as they are.
  std::unique_ptr<Loader> again() const;
  /// Samples skipped so far: their number, and a list of the first thousand.
  int64_t skipped_count() const;
  const std::vector<SkippedSample>& skipped() const;
  /// Bytes of a batch, from the declared shapes or, where they differ by sample, the last batch.
  uint64_t batch_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paddle::data
