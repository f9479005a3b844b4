#pragma once
// A dataset: numbered samples of named fields. `make_dataset` (data/options.h) builds the kinds
// that configs name; the loader (data/loader.h) shuffles, transforms and batches any of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/fitted.h"
#include "data/vocabulary.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

namespace paddle::data {

/// The meaning of a field, so that transforms treat it as such.
enum class FieldKind {
  kPlain,
  kImage,   ///< [channels, height, width]
  kMask,    ///< a class number per pixel, [height, width]
  kBoxes,   ///< [n, 4]: left, top, right and bottom in pixels
  kPerBox,  ///< one value per box: its class, for example
};

/// A field as it is known before any sample is read.
struct Field {
  std::string name = {};
  DType dtype = DType::kF32;
  Dims shape = {};          ///< of one sample; -1 for sizes that differ by sample
  int64_t class_count = 0;  ///< values are 0 … class_count - 1; 0 if it is not a class
  std::vector<std::string> classes = {};  ///< their names, if they have any
  /// Above 0: samples are of different lengths along the first axis, at most so long. The loader
  /// pads them with zeros to the longest of a batch and adds a field `<name>_mask`.
  int64_t max_length = 0;
  /// With `max_length`: samples are padded with this number instead, to one of the few sizes of
  /// graph::size_class, and have no mask.
  std::optional<int64_t> fill = {};
  FieldKind kind = FieldKind::kPlain;
  bool may_be_nan = false;   ///< NaN stands for a missing value, whatever the policy for NaN is
  std::string text() const;  ///< "image: uint8[1, 28, 28]"
};

/// One field of one sample: packed elements in a buffer that is kept from sample to sample.
class Value {
 public:
  /// Sets type and shape; the elements are then undefined.
  void reset(DType dtype, std::span<const int64_t> shape);
  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  int64_t size() const { return size_; }
  size_t bytes() const { return static_cast<size_t>(size_ * item_size(dtype_)); }
  std::byte* raw() { return buffer_.data(); }
  const std::byte* raw() const { return buffer_.data(); }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(buffer_.data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(buffer_.data());
  }
  double number(int64_t at) const;
  Array array() const;  ///< a copy

 private:
  DType dtype_ = DType::kF32;
  Dims shape_;
  int64_t size_ = 0;
  std::vector<std::byte> buffer_;
};

using Sample = std::vector<Value>;  ///< one value per field

/// Besides the index, what random samples (windows, augmentation) are a function of.
struct ReadContext {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual const std::vector<Field>& fields() const = 0;
  /// Reads sample `index`, one value per field. Called from many threads at once. A bad sample is
  /// an Error (kData) that names the file and the place in it.
  virtual void read(int64_t index, const ReadContext& context, Sample& out) const = 0;
  /// Rejects, as `read` would, a sample whose fault shows without decoding files: an empty cell, a
  /// file that is not there, a box outside of the image.
  virtual void check(int64_t /*index*/) const {}
  /// Records that were left out when the data was opened, with file, row and reason.
  virtual std::vector<std::string> left_out() const { return {}; }
  /// Where sample `index` comes from, for messages: "train.csv:17". With a field and an element of
  /// it, that too: "train.csv:17, column 'price'".
  virtual std::string location(int64_t index, int64_t field = -1, int64_t element = -1) const = 0;
  /// Resolved paths of the files that are read.
  virtual std::vector<std::string> paths() const { return {}; }
  /// The vocabulary of a field of tokens or categories, or null.
  virtual const Vocabulary* vocabulary(int64_t /*field*/) const { return nullptr; }
  virtual std::vector<Fitted> fitted() const { return {}; }
  /// The number of a sample in the files; another one where only some of them are used.
  virtual int64_t source_index(int64_t index) const { return index; }
  /// Where samples come from: two datasets of the same source have the same samples at the same
  /// source index. The paths, for files.
  virtual std::string source() const { return join(paths(), ", "); }
  /// Differs for other data, where the contents of `paths` do not say so; "" where they do.
  virtual std::string fingerprint() const { return ""; }
  /// The samples of the source that are in use, by source index.
  virtual std::vector<bool> used_sources() const;
  /// An integer of a scalar field, where it is known without decoding the whole sample; for the
  /// counts per class of `--check-data`.
  virtual std::optional<int64_t> class_of(int64_t /*index*/, int64_t /*field*/) const {
    return std::nullopt;
  }
  /// The key by which a split sorts samples: the text of a column, or the class of a field.
  /// nullopt if there is no such column or field.
  virtual std::optional<std::string> key_of(int64_t index, const std::string& column) const;
  /// The length of a sample along the axis that is padded, for batches of similar lengths; cheaper
  /// than reading it. 0 where it is not known.
  virtual int64_t length_of(int64_t /*index*/) const { return 0; }
  /// Files that are not read although they lie where the data is: one line for each kind of file.
  virtual std::vector<std::string> skipped_files() const { return {}; }
  /// Warnings about the samples read so far: one line each.
  virtual std::vector<std::string> warnings() const { return {}; }
  /// Further facts for `--check-data`, as (name, value).
  virtual std::vector<std::pair<std::string, std::string>> facts() const { return {}; }

  /// Of a stream, whose samples are read nearly in order: a place from which `go_to`, of the same
  /// data in a later process, reaches sample `index` of the epoch soon; "" where the beginning is
  /// as good.
  virtual std::string place_before(int64_t /*epoch*/, int64_t /*index*/) const { return ""; }
  /// kData if this data has no such place.
  virtual void go_to(const std::string& /*place*/) const {}

  /// The number of a field; -1 if there is none.
  int64_t find_field(const std::string& name) const;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// Samples of another dataset, chosen by number: [begin, end), those places of a permutation, or a
/// list.
class Subset : public Dataset {
 public:
  Subset(DatasetPtr base, int64_t begin, int64_t end);
  /// Elements [begin, end) of the permutation of `seed`.
  Subset(DatasetPtr base, int64_t begin, int64_t end, uint64_t seed);
  /// These samples; `how` says for `facts` what chose them.
  Subset(DatasetPtr base, std::vector<int64_t> chosen, std::string how);
  int64_t size() const override { return end_ - begin_; }
  const std::vector<Field>& fields() const override { return base_->fields(); }
  void read(int64_t index, const ReadContext& context, Sample& out) const override {
    base_->read(at(index), context, out);
  }
  void check(int64_t index) const override { base_->check(at(index)); }
  std::vector<std::string> left_out() const override { return base_->left_out(); }
  std::string location(int64_t index, int64_t field, int64_t element) const override {
    return base_->location(at(index), field, element);
  }
  std::vector<std::string> paths() const override { return base_->paths(); }
  const Vocabulary* vocabulary(int64_t field) const override { return base_->vocabulary(field); }
  std::vector<Fitted> fitted() const override { return base_->fitted(); }
  int64_t source_index(int64_t index) const override { return base_->source_index(at(index)); }
  std::string source() const override { return base_->source(); }
  std::string fingerprint() const override { return base_->fingerprint(); }
  std::vector<bool> used_sources() const override;
  std::optional<int64_t> class_of(int64_t index, int64_t field) const override {
    return base_->class_of(at(index), field);
  }
  std::optional<std::string> key_of(int64_t index, const std::string& column) const override {
    return base_->key_of(at(index), column);
  }
  int64_t length_of(int64_t index) const override { return base_->length_of(at(index)); }
  std::vector<std::string> skipped_files() const override { return base_->skipped_files(); }
  std::vector<std::string> warnings() const override { return base_->warnings(); }
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  int64_t at(int64_t index) const;
  DatasetPtr base_;
  int64_t begin_, end_;
  std::optional<Permutation> order_;
  std::vector<int64_t> chosen_;
  std::string how_;
};

}  // namespace paddle::data
