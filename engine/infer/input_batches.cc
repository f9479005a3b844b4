#include "infer/input_batches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "data/target_scale.h"
#include "formats/npz.h"
#include "onnx/graph/value_io.h"

namespace paddle::infer {

std::vector<std::string> input_names(const program::Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, type] : model.inputs()) names.push_back(name);
  return names;
}

bool is_generated(const InputOptions& options, const std::string& input) {
  return std::find(options.generated.begin(), options.generated.end(), input) !=
         options.generated.end();
}

std::string expected_inputs(const program::Model& model) {
  std::string out;
  for (const auto& [name, type] : model.inputs())
    out += (out.empty() ? "'" : ", '") + name + "' " + type.text();
  return out.empty() ? "no inputs" : out;
}

std::string label_field(const program::Model& model) {
  const program::ModelMetadata& metadata = model.metadata();
  if (!metadata.label_field.empty()) return metadata.label_field;
  return metadata.targets.size() == 1 ? metadata.targets[0].field : "";
}

namespace {

/// Arrays by the model's input names, all at once or in slices of the first axis.
class ArrayBatches final : public Batches {
 public:
  ArrayBatches(const program::Model& model, const std::string& path, const InputOptions& options,
               std::vector<std::string> warnings)
      : batch_(options.batch), warnings_(std::move(warnings)) {
    const formats::NpzReader reader(path);
    for (const auto& [name, type] : model.inputs()) {
      is_given_.push_back(!is_generated(options, name));
      if (!is_given_.back()) continue;
      if (!reader.contains(name))
        fail(ErrorCode::kData, path, ": has no array '", name, "'; the model takes ",
             expected_inputs(model), reader.what_it_has(name));
      Array a = reader.read(name);
      if (model.onnx() && type.dtype != a.dtype && onnx::needs_cast(a.dtype, type.dtype))
        a = onnx::cast_provided(a, type.dtype, str(path, ": array '", name, "'"));
      if (a.dtype != type.dtype || (type.ranked && a.shape.size() != type.shape.size()))
        fail(ErrorCode::kData, path, ": '", name, "' is ", text(a.dtype), str(a.shape),
             ", the model takes ", type);
      arrays_.push_back(a.contiguous());
    }
    const std::string label = label_field(model);
    if (!label.empty() && reader.contains(label)) {
      Array labels = reader.read(label);
      if (info(labels.dtype).has_kernels) labels_ = labels.contiguous();
    }
    if (!model.onnx() || !options.rows_are_samples)
      cut_all(model);
    else
      cut_samples(model);
    const bool one_each = sliced_ && labels_ && !labels_->shape.empty() &&
                          labels_->shape[0] == arrays_[first_cut_].shape[0] &&
                          labels_->size() == labels_->shape[0];
    if (!one_each) labels_.reset();
  }
  bool has_labels() const override { return labels_.has_value(); }
  std::vector<std::string> warnings() const override { return warnings_; }

  std::optional<InputBatch> next() override {
    InputBatch out;
    if (!sliced_) {
      if (at_ > 0) return std::nullopt;
      at_ = 1;
      out.inputs = with_generated(arrays_);
      out.rows = arrays_.empty() || arrays_[0].shape.empty() ? 1 : arrays_[0].shape[0];
      for (int64_t i = 0; i < out.rows; ++i) out.indices.push_back(i);
      return out;
    }
    const int64_t rows = arrays_[first_cut_].shape[0];
    if (at_ >= rows && (at_ > 0 || rows > 0)) return std::nullopt;
    if (rows == 0) {
      if (done_) return std::nullopt;
      done_ = true;
    }
    const int64_t end = std::min(rows, at_ + batch_);
    for (size_t i = 0; i < arrays_.size(); ++i) {
      Array a = arrays_[i];
      if (!is_cut_.empty() && !is_cut_[i]) {
        out.inputs.push_back(std::move(a));
        continue;
      }
      a.offset += at_ * a.strides[0];
      a.shape[0] = end - at_;
      out.inputs.push_back(std::move(a));
    }
    out.inputs = with_generated(std::move(out.inputs));
    for (int64_t i = at_; i < end; ++i) {
      out.indices.push_back(i);
      if (labels_) out.labels.push_back(labels_->number(i));
    }
    out.rows = end - at_;
    at_ = end;
    return out;
  }

 private:
  /// Slices only where every input's first dim is the same symbol; none of an ONNX graph.
  void cut_all(const program::Model& model) {
    sliced_ = !arrays_.empty() && !model.onnx();
    std::optional<Dim> rows;
    for (size_t i = 0, given = 0; i < is_given_.size(); ++i) {
      if (!is_given_[i]) continue;
      const Shape& shape = model.inputs()[i].second.shape;
      if (!rows && !shape.empty()) rows = shape[0];
      sliced_ = sliced_ && !shape.empty() && shape[0].is_symbol() && shape[0].same(*rows) &&
                arrays_[given].shape[0] == arrays_[0].shape[0];
      ++given;
    }
  }

  /// Slices of the inputs whose first size is free, or fixed and smaller than that of their arrays;
  /// others are given whole. Arrays of several lengths are not cut.
  void cut_samples(const program::Model& model) {
    std::optional<int64_t> fixed;
    for (size_t i = 0, given = 0; i < is_given_.size(); ++i) {
      if (!is_given_[i]) continue;
      const TensorType& type = model.inputs()[i].second;
      const Array& array = arrays_[given++];
      const bool ranked = type.ranked && !type.shape.empty() && array.ndim() > 0;
      const auto size = ranked ? type.shape[0].constant() : std::nullopt;
      const bool cut =
          ranked && (!size || (*size > 0 && array.shape[0] > *size && array.shape[0] % *size == 0));
      is_cut_.push_back(cut);
      if (!cut) continue;
      if (!sliced_) first_cut_ = given - 1;
      sliced_ = true;
      if (array.shape[0] != arrays_[first_cut_].shape[0] || (fixed && size && *fixed != *size)) {
        sliced_ = false;
        return is_cut_.clear();
      }
      if (size) fixed = size;
    }
    if (fixed) batch_ = *fixed;
    if (!sliced_) is_cut_.clear();
  }

  /// One array per input of the model.
  std::vector<Array> with_generated(std::vector<Array> given) const {
    if (given.size() == is_given_.size()) return given;
    std::vector<Array> out(is_given_.size());
    for (size_t i = 0, next = 0; i < out.size(); ++i)
      if (is_given_[i]) out[i] = std::move(given[next++]);
    return out;
  }

  int64_t batch_, at_ = 0;
  bool sliced_ = false, done_ = false;
  size_t first_cut_ = 0;
  std::vector<bool> is_cut_;    ///< per array; empty: all
  std::vector<bool> is_given_;  ///< per input of the model
  std::vector<Array> arrays_;
  std::optional<Array> labels_;
  std::vector<std::string> warnings_;
};

/// The labels of a CSV file, from a dataset of the label field alone: a row whose label is missing
/// or bad is predicted all the same.
class Labels {
 public:
  /// `source` is that of the inputs; none for kinds other than CSV, and where it has no such field.
  static std::optional<Labels> open(const data::DatasetOptions& source, const std::string& field) {
    const auto* csv = std::get_if<data::CsvFileOptions>(&source.source);
    if (!csv || field.empty()) return std::nullopt;
    data::DatasetOptions options = source;
    auto& fields = std::get<data::CsvFileOptions>(options.source).fields;
    std::erase_if(fields, [&](const data::CsvField& f) { return f.name != field; });
    if (fields.empty()) return std::nullopt;
    data::CsvField& label = fields[0];
    if (label.kind == data::ColumnKind::kNumeric) {  // in the units of the file
      label.scaling = data::Scaling::kNone;
      label.shift.clear(), label.factor.clear();
      label.log = false;
      if (!label.dtype || is_float(*label.dtype)) label.dtype = DType::kF64;
    }
    try {
      return Labels(data::make_dataset(options));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kData) return std::nullopt;  // the file has no such column
      throw;
    }
  }
  std::optional<double> read(int64_t index) {
    try {
      dataset_->read(index, {}, sample_);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kData) return std::nullopt;
      throw;
    }
    if (sample_[0].size() != 1 || std::isnan(sample_[0].number(0))) return std::nullopt;
    return sample_[0].number(0);
  }

 private:
  explicit Labels(data::DatasetPtr dataset) : dataset_(std::move(dataset)) {}
  data::DatasetPtr dataset_;
  data::Sample sample_;
};

/// A dataset that notes the sizes of the images that are read from it.
class MeasuredImages final : public data::Subset {
 public:
  explicit MeasuredImages(const data::DatasetPtr& base) : Subset(base, 0, base->size()) {
    for (const data::Field& field : base->fields())
      if (field.kind == data::FieldKind::kImage && image_ < 0)
        image_ = base->find_field(field.name);
  }
  void read(int64_t index, const data::ReadContext& context, data::Sample& out) const override {
    Subset::read(index, context, out);
    if (image_ < 0) return;
    const Dims& shape = out[static_cast<size_t>(image_)].shape();
    const std::lock_guard lock(mutex_);
    sizes_[index] = {shape[shape.size() - 2], shape.back()};
  }
  /// Height and width of a sample's first image; it is then forgotten.
  std::optional<std::pair<int64_t, int64_t>> take(int64_t index) const {
    const std::lock_guard lock(mutex_);
    const auto node = sizes_.extract(index);
    return node.empty() ? std::nullopt : std::optional(node.mapped());
  }

 private:
  int64_t image_ = -1;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, std::pair<int64_t, int64_t>> sizes_;
};

/// Batches of a dataset with the run's transforms.
class DatasetBatches final : public Batches {
 public:
  DatasetBatches(const program::Model& model, const InputOptions& input,
                 const data::DatasetPtr& dataset, const data::LoaderOptions& options,
                 std::optional<Labels> labels)
      : dataset_(std::make_shared<MeasuredImages>(dataset)),
        moves_(dataset->fields(), options.transforms),
        text_field_(input.text_field),
        labels_(std::move(labels)),
        may_skip_(options.on_bad_sample == data::BadSamplePolicy::kSkip ||
                  options.nan == data::NanPolicy::kSkip),
        loader_(dataset_, options) {
    std::vector<std::string> names;
    for (const data::Field& f : loader_.fields()) names.push_back(f.name);
    for (const auto& [name, type] : model.inputs()) {
      if (is_generated(input, name)) {
        fields_.push_back(std::nullopt);
        widened_.push_back(false);
        continue;
      }
      const auto it = std::find(names.begin(), names.end(), name);
      if (it == names.end())
        fail(ErrorCode::kData, "the data has no field '", name, "' but ", join(names, ", "),
             "; the model takes ", expected_inputs(model), did_you_mean(name, names));
      fields_.push_back(static_cast<size_t>(it - names.begin()));
      const data::Field& f = loader_.fields()[*fields_.back()];
      // A model that was trained in float64 reads its data's float32 as training did.
      widened_.push_back(f.dtype == DType::kF32 && type.dtype == DType::kF64);
      if (f.dtype != type.dtype && !widened_.back())
        fail(ErrorCode::kData, "the data's field ", f, " does not fit the model's input '", name,
             "' ", type);
    }
    const std::string label = label_field(model);
    const auto at = std::find(names.begin(), names.end(), label);
    if (labels_ || label.empty() || at == names.end()) return;
    const data::Field& field = loader_.fields()[static_cast<size_t>(at - names.begin())];
    if (field.shape.empty() || field.shape == Dims{1}) {
      label_ = static_cast<int>(at - names.begin());
      label_scale_.emplace(label, model.metadata().fitted, options.transforms);
    }
  }
  bool may_skip() const override { return may_skip_; }
  bool has_labels() const override { return labels_ || label_ >= 0; }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> out = dataset_->passed_over();
    for (std::string& line : dataset_->warnings()) out.push_back(std::move(line));
    return out;
  }
  std::optional<InputBatch> next() override {
    InputBatch out;
    const auto batch = loader_.next();
    if (!batch) {
      add_skipped(dataset_->size(), out);
      if (out.skipped.empty()) return std::nullopt;
      return out;
    }
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i]) {
        out.inputs.emplace_back();
        continue;
      }
      const Array& field = batch->arrays[*fields_[i]];
      out.inputs.push_back(widened_[i] ? field.cast(DType::kF64) : field);
    }
    out.rows = batch->samples;
    out.indices = batch->indices;
    for (int64_t row = 0; row < out.rows; ++row) {
      const int64_t index = batch->indices[static_cast<size_t>(row)];
      add_skipped(index, out);
      ++next_;
      out.places.push_back(dataset_->location(index, -1, -1));
      add_source(index, out);
      if (labels_)
        out.labels.push_back(labels_->read(index));
      else if (label_ >= 0)
        out.labels.push_back(
            label_scale_->restored(batch->arrays[static_cast<size_t>(label_)].number(row), 0));
    }
    return out;
  }

 private:
  void add_source(int64_t index, InputBatch& out) const {
    if (!text_field_.empty())
      if (auto text = dataset_->key_of(index, text_field_)) out.texts.push_back(std::move(*text));
    const auto size = dataset_->take(index);
    if (!size) return;
    const auto placement = moves_.placement(size->first, size->second);
    if (placement) out.images.push_back({size->first, size->second, *placement});
  }
  /// Samples come in order, so those between the last row and `end` were skipped.
  void add_skipped(int64_t end, InputBatch& out) {
    for (; next_ < end; ++next_) {
      const auto& listed = loader_.skipped();
      const auto it = std::find_if(listed.begin(), listed.end(),
                                   [&](const auto& each) { return each.index == next_; });
      out.skipped.push_back({next_, dataset_->location(next_, -1, -1),
                             it == listed.end() ? "the sample cannot be read" : it->reason});
    }
  }

  std::shared_ptr<const MeasuredImages> dataset_;
  data::Pipeline moves_;
  std::string text_field_;
  std::optional<Labels> labels_;
  bool may_skip_;
  data::Loader loader_;
  std::vector<std::optional<size_t>> fields_;  ///< per input; none for generated ones
  std::vector<bool> widened_;
  int label_ = -1;
  std::optional<data::TargetScale> label_scale_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Batches> array_batches(const program::Model& model, const std::string& path,
                                       const InputOptions& options,
                                       std::vector<std::string> warnings) {
  return std::make_unique<ArrayBatches>(model, path, options, std::move(warnings));
}

std::unique_ptr<Batches> dataset_batches(const program::Model& model, const InputOptions& options,
                                         data::DatasetPtr dataset,
                                         const data::LoaderOptions& loader,
                                         const data::DatasetOptions& source) {
  return std::make_unique<DatasetBatches>(model, options, dataset, loader,
                                          Labels::open(source, label_field(model)));
}

}  // namespace paddle::infer
