#include "infer/input_batches.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>

#include <nlohmann/json.hpp>

#include "data/target_scale.h"
#include "data/tokens.h"
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

std::string label_field(const program::Model& model, const InputOptions& options) {
  if (!options.label_field.empty()) return options.label_field;
  return model.metadata().label_field;
}

namespace {

/// Arrays by the model's input names, all at once or in slices of the first axis.
class ArrayBatches final : public Batches {
 public:
  ArrayBatches(const program::Model& model, const ArraySource& source, const InputOptions& options,
               std::vector<std::string> warnings)
      : batch_(options.batch), warnings_(std::move(warnings)) {
    const std::string& path = source.origin;
    for (const auto& [name, type] : model.inputs()) {
      is_given_.push_back(!is_generated(options, name));
      if (!is_given_.back()) continue;
      const std::optional<Array> given = source.find(name);
      if (!given)
        fail(ErrorCode::kData, path, ": has no array '", name, "'; the model takes ",
             expected_inputs(model), source.what_it_has(name));
      Array a = *given;
      if (model.onnx() && type.dtype != a.dtype && onnx::needs_cast(a.dtype, type.dtype))
        a = onnx::cast_provided(a, type.dtype, str(path, ": array '", name, "'"));
      if (a.dtype != type.dtype || (type.ranked && a.shape.size() != type.shape.size()))
        fail(ErrorCode::kData, path, ": '", name, "' is ", text(a.dtype), str(a.shape),
             ", the model takes ", type);
      arrays_.push_back(a.contiguous());
    }
    const std::string label = label_field(model, options);
    if (!label.empty())
      if (const std::optional<Array> labels = source.find(label))
        if (info(labels->dtype).has_kernels) labels_ = labels->contiguous();
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

/// A label that is one number, or what stands for more.
struct RowLabel {
  std::optional<double> number = {};
  std::optional<LabelText> text = {};
};

nlohmann::ordered_json json_number(double x) {
  if (x == std::trunc(x) && std::abs(x) < 0x1p53) return static_cast<int64_t>(x);
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json();
}

std::string dumped_label(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

LabelText list_label(const std::vector<std::string>& items) {
  return {join(items, "|"), dumped_label(nlohmann::ordered_json(items))};
}

/// Numbers [rows, columns], or a plain list of them.
LabelText numbers_label(const std::vector<double>& numbers, const Dims& shape) {
  const bool nested = shape.size() > 1 && shape.back() > 1;
  auto list = nlohmann::ordered_json::array();
  std::vector<std::string> texts;
  for (size_t i = 0; i < numbers.size(); ++i) {
    texts.push_back(format_double(numbers[i]));
    if (nested && i % static_cast<size_t>(shape.back()) == 0)
      list.push_back(nlohmann::ordered_json::array());
    (nested ? list.back() : list).push_back(json_number(numbers[i]));
  }
  return {join(texts, "|"), dumped_label(list)};
}

/// The labels of a file of records, from a dataset of the label field only: a row whose label is
/// missing or bad is predicted all the same.
class Labels {
 public:
  /// `source` is that of the inputs; none for kinds other than records, and where it has no such
  /// field.
  static std::optional<Labels> open(const data::DatasetOptions& source, const std::string& field,
                                    bool is_list) {
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
      return Labels(data::make_dataset(options), label.kind, is_list);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kData) return std::nullopt;  // the file has no such column
      throw;
    }
  }
  RowLabel read(int64_t index) {
    try {
      return label_of(index);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kData) return {};
      throw;
    }
  }

 private:
  Labels(data::DatasetPtr dataset, data::ColumnKind kind, bool is_list)
      : dataset_(std::move(dataset)), kind_(kind), is_list_(is_list) {}

  RowLabel label_of(int64_t index) {
    const data::Field& field = dataset_->fields()[0];
    using Kind = data::ColumnKind;
    if (kind_ == Kind::kText || kind_ == Kind::kMask || kind_ == Kind::kImage ||
        kind_ == Kind::kAudio) {
      const auto text = dataset_->key_of(index, field.name);
      if (!text || trim(*text).empty()) return {};
      if (!is_list_) return {.text = LabelText{*text, dumped_label(*text)}};
      std::vector<std::string> words;
      for (const std::string_view word :
           data::split_tokens(*text, data::TokenKind::kSpaces, std::ssize(*text)))
        words.emplace_back(word);
      return {.text = LabelText{*text, dumped_label(nlohmann::ordered_json(words))}};
    }
    dataset_->read(index, {}, sample_);
    const data::Value& value = sample_[0];
    std::vector<double> numbers;
    for (int64_t i = 0; i < value.size(); ++i) numbers.push_back(value.number(i));
    if (kind_ == Kind::kMultiLabel) {
      std::vector<std::string> names;
      for (size_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] != 0) names.push_back(field.classes.at(i));
      return {.text = list_label(names)};
    }
    if (numbers.size() == 1)
      return std::isnan(numbers[0]) ? RowLabel() : RowLabel{.number = numbers[0]};
    return {.text = numbers_label(numbers, value.shape())};
  }

  data::DatasetPtr dataset_;
  data::ColumnKind kind_;
  bool is_list_;
  data::Sample sample_;
};

/// A dataset that notes the sizes of the images that are read from it, and their boxes.
class MeasuredImages final : public data::Subset {
 public:
  struct Measured {
    int64_t height = 0, width = 0;
    std::optional<LabelText> boxes = {};
  };
  explicit MeasuredImages(const data::DatasetPtr& base) : Subset(base, 0, base->size()) {
    for (size_t f = 0; f < base->fields().size(); ++f) {
      const data::FieldKind kind = base->fields()[f].kind;
      int64_t& place = kind == data::FieldKind::kImage    ? image_
                       : kind == data::FieldKind::kBoxes  ? boxes_
                       : kind == data::FieldKind::kPerBox ? box_classes_
                                                          : other_;
      if (place < 0) place = static_cast<int64_t>(f);
    }
  }
  bool has_boxes() const { return image_ >= 0 && boxes_ >= 0 && box_classes_ >= 0; }
  void read(int64_t index, const data::ReadContext& context, data::Sample& out) const override {
    Subset::read(index, context, out);
    if (image_ < 0) return;
    const Dims& shape = out[static_cast<size_t>(image_)].shape();
    Measured measured{shape[shape.size() - 2], shape.back()};
    if (has_boxes())
      measured.boxes =
          label_of(out[static_cast<size_t>(boxes_)], out[static_cast<size_t>(box_classes_)]);
    const std::lock_guard lock(mutex_);
    measured_[index] = std::move(measured);
  }
  /// Of a sample's first image; it is then forgotten.
  std::optional<Measured> take(int64_t index) const {
    const std::lock_guard lock(mutex_);
    auto node = measured_.extract(index);
    return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
  }

 private:
  LabelText label_of(const data::Value& boxes, const data::Value& classes) const {
    const auto& names = fields()[static_cast<size_t>(box_classes_)].classes;
    auto list = nlohmann::ordered_json::array();
    std::vector<std::string> shown;
    for (int64_t b = 0; b < classes.size(); ++b) {
      const auto number = static_cast<int64_t>(classes.number(b));
      const bool named = number >= 0 && number < std::ssize(names);
      const std::string name = named ? names[static_cast<size_t>(number)] : str(number);
      std::vector<double> corners;
      std::vector<std::string> texts;
      for (int64_t i = 0; i < 4; ++i) {
        corners.push_back(std::round(boxes.number(4 * b + i) * 100) / 100);
        texts.push_back(format_double(corners.back()));
      }
      nlohmann::ordered_json each;
      each["class"] = name;
      each["box"] = corners;
      list.push_back(std::move(each));
      shown.push_back(str(name, " [", join(texts, ", "), "]"));
    }
    return {join(shown, ", "), dumped_label(list)};
  }

  int64_t image_ = -1, boxes_ = -1, box_classes_ = -1, other_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, Measured> measured_;
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
    const std::string label = label_field(model, input);
    const auto at = std::find(names.begin(), names.end(), label);
    if (labels_ || label.empty() || at == names.end()) return;
    const auto place = static_cast<size_t>(at - names.begin());
    const data::Field& field = loader_.fields()[place];
    shows_boxes_ = dataset_->has_boxes() && field.kind != data::FieldKind::kPlain;
    is_list_ = is_float(field.dtype) && field.shape.size() < 3 && field.max_length == 0 &&
               std::find(field.shape.begin(), field.shape.end(), -1) == field.shape.end();
    const bool is_number = field.shape.empty() || field.shape == Dims{1};
    if (field.kind != data::FieldKind::kPlain || (!is_number && !is_list_)) return;
    label_ = static_cast<int>(place);
    is_list_ = is_list_ && !is_number;
    is_multi_label_ = model.metadata().is_multi_label && !field.classes.empty();
    label_scale_.emplace(label, dataset->fitted(), options.transforms);
  }
  bool may_skip() const override { return may_skip_; }
  bool has_labels() const override { return labels_ || label_ >= 0 || shows_boxes_; }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> out = dataset_->skipped_files();
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
      if (labels_) {
        RowLabel label = labels_->read(index);
        out.labels.push_back(label.number);
        out.label_texts.push_back(std::move(label.text));
      } else if (label_ >= 0) {
        add_label(batch->arrays[static_cast<size_t>(label_)], row, out);
      }
    }
    return out;
  }

 private:
  void add_label(const Array& labels, int64_t row, InputBatch& out) const {
    const data::Field& field = loader_.fields()[static_cast<size_t>(label_)];
    if (!is_list_) {
      out.labels.push_back(label_scale_->restored(labels.number(row), 0));
      return;
    }
    const int64_t count = element_count(std::span<const int64_t>(field.shape));
    std::vector<double> numbers;
    std::vector<std::string> names;
    for (int64_t i = 0; i < count; ++i) {
      const double number = labels.number(row * count + i);
      const auto column = static_cast<size_t>(i % field.shape.back());
      double restored = label_scale_->restored(number, column);
      // As a cell has it, without the digits that the scaling has left.
      if (labels.dtype == DType::kF32)
        restored = std::strtod(format_float(static_cast<float>(restored)).c_str(), nullptr);
      numbers.push_back(restored);
      if (is_multi_label_ && number != 0) names.push_back(field.classes.at(column));
    }
    out.labels.emplace_back();
    out.label_texts.push_back(is_multi_label_ ? list_label(names)
                                              : numbers_label(numbers, field.shape));
  }
  void add_source(int64_t index, InputBatch& out) const {
    if (!text_field_.empty())
      if (auto text = dataset_->key_of(index, text_field_)) out.texts.push_back(std::move(*text));
    auto measured = dataset_->take(index);
    if (shows_boxes_)
      out.label_texts.push_back(measured ? std::move(measured->boxes) : std::nullopt);
    if (!measured) return;
    const auto placement = moves_.placement(measured->height, measured->width);
    if (placement) out.images.push_back({measured->height, measured->width, *placement});
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
  bool is_list_ = false, is_multi_label_ = false, shows_boxes_ = false;
  std::optional<data::TargetScale> label_scale_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Batches> array_batches(const program::Model& model, const ArraySource& source,
                                       const InputOptions& options,
                                       std::vector<std::string> warnings) {
  return std::make_unique<ArrayBatches>(model, source, options, std::move(warnings));
}

std::unique_ptr<Batches> dataset_batches(const program::Model& model, const InputOptions& options,
                                         data::DatasetPtr dataset,
                                         const data::LoaderOptions& loader,
                                         const data::DatasetOptions& source) {
  return std::make_unique<DatasetBatches>(
      model, options, dataset, loader,
      Labels::open(source, label_field(model, options), options.label_is_list));
}

}  // namespace paddle::infer
