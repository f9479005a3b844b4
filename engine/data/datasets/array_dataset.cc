// Datasets that are arrays whose first axis counts samples: IDX, NPY, NPZ and HDF5 files.

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "data/datasets/sources.h"
#include "data/loader.h"
#include "data/prepared.h"
#include "formats/hdf5/reader.h"
#include "formats/idx.h"
#include "formats/npz.h"

namespace paddle::data {
namespace {

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

struct Column {
  Field field;
  Array array;         ///< contiguous, [samples, …]
  std::string origin;  ///< file, and array in it, for messages
};

/// Copies the elements of a sample. Labels of other integer types become int64; `place` is for
/// those that do not fit.
void copy_elements(const std::byte* from, DType from_type, Value& out, const std::string& place) {
  if (from_type == out.dtype()) {
    std::memcpy(out.raw(), from, out.bytes());
    return;
  }
  ensure(out.dtype() == DType::kI64, "array dataset: only labels are widened");
  visit_dtype(from_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* values = reinterpret_cast<const T*>(from);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      for (int64_t i = 0; i < out.size(); ++i) {
        if (!std::in_range<int64_t>(values[i]))
          fail(ErrorCode::kData, place, ": label ", values[i], " does not fit int64");
        out.data<int64_t>()[i] = static_cast<int64_t>(values[i]);
      }
  });
}

class ArrayDataset : public Dataset {
 public:
  ArrayDataset(std::vector<Column> columns, std::vector<std::string> paths)
      : columns_(std::move(columns)), paths_(std::move(paths)) {
    for (const Column& column : columns_) {
      if (column.array.ndim() == 0)
        fail(ErrorCode::kData, column.origin, ": an array with a first axis of samples is needed");
      if (column.array.shape[0] != columns_[0].array.shape[0])
        fail(ErrorCode::kData, column.origin, " has ", column.array.shape[0], " samples, but ",
             columns_[0].origin, " has ", columns_[0].array.shape[0]);
      fields_.push_back(column.field);
    }
  }
  int64_t size() const override { return columns_.empty() ? 0 : columns_[0].array.shape[0]; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, const ReadContext&, Sample& out) const override {
    out.resize(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Array& array = columns_[i].array;
      out[i].reset(fields_[i].dtype, fields_[i].shape);
      if (out[i].size() == 0) continue;
      const auto* from = static_cast<const std::byte*>(array.raw()) +
                         index * out[i].size() * item_size(array.dtype);
      copy_elements(from, array.dtype, out[i], columns_[i].origin);
    }
  }
  std::string location(int64_t index, int64_t field, int64_t element) const override {
    const Column& column = columns_[static_cast<size_t>(std::max<int64_t>(field, 0))];
    std::string out = str(column.origin, ": sample ", index);
    if (field >= 0) out += str(", field '", column.field.name, "'");
    if (element >= 0 && !column.field.shape.empty()) out += str(", element ", element);
    return out;
  }
  std::vector<std::string> paths() const override { return paths_; }
  std::optional<int64_t> class_of(int64_t index, int64_t field) const override {
    const Array& array = columns_[static_cast<size_t>(field)].array;
    if (array.ndim() != 1 || !is_integer(array.dtype)) return std::nullopt;
    return array.integer(index);
  }

 private:
  std::vector<Column> columns_;
  std::vector<Field> fields_;
  std::vector<std::string> paths_;
};

Dims sample_shape(const Array& array) {
  return array.ndim() == 0 ? Dims{} : Dims(array.shape.begin() + 1, array.shape.end());
}

Column plain_column(std::string name, Array array, std::string origin) {
  if (!info(array.dtype).has_kernels)
    fail(ErrorCode::kData, origin, ": type ", text(array.dtype), " cannot be trained on");
  Column column;
  column.field.name = std::move(name);
  column.field.dtype = array.dtype;
  column.field.shape = sample_shape(array);
  column.array = std::move(array);
  column.origin = std::move(origin);
  return column;
}

}  // namespace

DatasetPtr make_idx(const IdxOptions& options) {
  std::vector<Column> columns;
  std::vector<std::string> paths = {absolute(options.images)};
  Array images = formats::read_idx(options.images);
  if (images.ndim() == 3) {  // one channel
    images.shape.insert(images.shape.begin() + 1, 1);
    images.strides = contiguous_strides(images.shape);
  }
  const bool is_image = images.ndim() == 4;
  columns.push_back(plain_column(options.image_field, std::move(images), options.images));
  if (is_image) columns.back().field.kind = FieldKind::kImage;
  if (!options.labels.empty()) {
    paths.push_back(absolute(options.labels));
    Column column =
        plain_column(options.label_field, formats::read_idx(options.labels), options.labels);
    if (!is_integer(column.array.dtype) || column.array.ndim() != 1)
      fail(ErrorCode::kData, options.labels, ": labels are a list of integers, this file has ",
           text(column.array.dtype), str(column.array.shape));
    int64_t largest = -1;
    for (int64_t i = 0; i < column.array.size(); ++i)
      largest = std::max(largest, column.array.integer(i));
    column.field.dtype = DType::kI64;
    column.field.classes = options.classes;
    column.field.class_count =
        options.classes.empty() ? largest + 1 : static_cast<int64_t>(options.classes.size());
    columns.push_back(std::move(column));
  }
  return std::make_shared<ArrayDataset>(std::move(columns), std::move(paths));
}

DatasetPtr make_npz(const NpzOptions& options) {
  const formats::NpzReader reader(options.path);
  auto arrays = options.arrays;
  if (arrays.empty())
    for (const std::string& name : reader.names()) arrays.emplace_back(name, name);
  std::vector<Column> columns;
  for (const auto& [field, name] : arrays)
    columns.push_back(
        plain_column(field, reader.read(name), str(options.path, ": array '", name, "'")));
  return std::make_shared<ArrayDataset>(std::move(columns),
                                        std::vector<std::string>{absolute(options.path)});
}

DatasetPtr make_hdf5(const Hdf5Options& options) {
  const formats::Hdf5Reader reader(options.path);
  std::vector<std::string> names;
  for (const formats::Hdf5Dataset& each : reader.datasets()) names.push_back(each.name);
  auto arrays = options.arrays;
  if (arrays.empty())
    for (const std::string& name : names) arrays.emplace_back(name, name);
  std::vector<Column> columns;
  for (const auto& [field, name] : arrays) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      fail(ErrorCode::kData, options.path, ": no dataset of numbers '", name, "'",
           did_you_mean(name, names), "; there are: ", join(names, ", "));
    columns.push_back(plain_column(field, reader.read(static_cast<size_t>(at - names.begin())),
                                   str(options.path, ": dataset '", name, "'")));
  }
  if (columns.empty()) fail(ErrorCode::kData, options.path, ": holds no datasets of numbers");
  return std::make_shared<ArrayDataset>(std::move(columns),
                                        std::vector<std::string>{absolute(options.path)});
}

DatasetPtr make_npy(const NpyOptions& options) {
  std::vector<Column> columns;
  std::vector<std::string> paths;
  for (const auto& [field, path] : options.files) {
    columns.push_back(plain_column(field, formats::read_npy(path), path));
    paths.push_back(absolute(path));
  }
  return std::make_shared<ArrayDataset>(std::move(columns), std::move(paths));
}

std::vector<Array> prepared_arrays(std::vector<std::pair<std::string, Array>> arrays,
                                   const std::vector<Fitted>& scales,
                                   const std::vector<TransformOptions>& transforms) {
  std::vector<Column> columns;
  for (auto& [name, array] : arrays)
    columns.push_back(plain_column(name, array.contiguous(), str("array '", name, "'")));
  DatasetPtr dataset =
      std::make_shared<ArrayDataset>(std::move(columns), std::vector<std::string>());
  if (!scales.empty()) dataset = make_scaled(dataset, scales);
  LoaderOptions options{.batch_size = std::max<int64_t>(dataset->size(), 1), .epochs = 1};
  options.nan = NanPolicy::kKeep;
  options.transforms = transforms;
  Loader loader(dataset, options);
  return loader.next()->arrays;
}

}  // namespace paddle::data
