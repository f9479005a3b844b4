#include "infer/batches.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "formats/npz.h"
#include "infer/onnx_values.h"
#include "runtime/execute.h"
#include "train/config.h"
#include "train/data_config.h"

namespace paddle::infer {
namespace {

namespace fs = std::filesystem;

std::string extension(const std::string& path) {
  std::string e = fs::path(path).extension().string();
  std::transform(e.begin(), e.end(), e.begin(),
                 [](char c) { return static_cast<char>(std::tolower(c)); });
  return e;
}

std::vector<std::string> input_names(const Predictor& model) {
  std::vector<std::string> names;
  for (const auto& [name, type] : model.inputs()) names.push_back(name);
  return names;
}

std::string expected_inputs(const Predictor& model) {
  std::string out;
  for (const auto& [name, type] : model.inputs())
    out += (out.empty() ? "'" : ", '") + name + "' " + type.text();
  return out.empty() ? "no inputs" : out;
}

/// Arrays by the model's input names, all at once or in slices of the first axis.
class ArrayBatches final : public Batches {
 public:
  ArrayBatches(const Predictor& model, const std::string& path, int64_t batch)
      : model_(model), batch_(batch) {
    const formats::NpzReader reader(path);
    for (const auto& [name, type] : model.inputs()) {
      if (!reader.contains(name))
        fail(ErrorCode::kData, path, ": has no array '", name, "'; the model takes ",
             expected_inputs(model), did_you_mean(name, reader.names()));
      Array a = reader.read(name);
      if (model.onnx() && type.dtype != a.dtype && needs_cast(a.dtype, type.dtype))
        a = runtime::cast_array(a, type.dtype);
      if (a.dtype != type.dtype)
        fail(ErrorCode::kData, path, ": '", name, "' is ", text(a.dtype), str(a.shape),
             ", the model takes ", type);
      if (type.ranked && a.shape.size() != type.shape.size())
        fail(ErrorCode::kData, path, ": '", name, "' is ", text(a.dtype), str(a.shape),
             ", the model takes ", type);
      arrays_.push_back(a.contiguous());
    }
    for (const std::string& name : reader.names())
      if (!model.meaning().label_field.empty() && name == model.meaning().label_field)
        labels_ = reader.read(name);
    // Slices only where every input's first dim is the same symbol.
    // What an ONNX graph does along it is not known, so it gets all rows.
    sliced_ = !arrays_.empty() && !model.onnx();
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Shape& shape = model.inputs()[i].second.shape;
      sliced_ = sliced_ && !shape.empty() && shape[0].is_symbol() &&
                shape[0].same(model.inputs()[0].second.shape[0]) &&
                arrays_[i].shape[0] == arrays_[0].shape[0];
    }
  }

  std::optional<InputBatch> next() override {
    InputBatch out;
    if (!sliced_) {
      if (at_ > 0) return std::nullopt;
      at_ = 1;
      out.inputs = arrays_;
      out.rows = arrays_.empty() || arrays_[0].shape.empty() ? 1 : arrays_[0].shape[0];
      return out;
    }
    const int64_t rows = arrays_[0].shape[0];
    if (at_ >= rows && (at_ > 0 || rows > 0)) return std::nullopt;
    if (rows == 0) {
      if (done_) return std::nullopt;
      done_ = true;
    }
    const int64_t end = std::min(rows, at_ + batch_);
    const auto slice = [&](Array a) {
      a.offset += at_ * a.strides[0];
      a.shape[0] = end - at_;
      return a;
    };
    for (const Array& a : arrays_) out.inputs.push_back(slice(a));
    if (labels_ && !labels_->shape.empty() && labels_->shape[0] == rows)
      out.labels = slice(*labels_);
    out.rows = end - at_;
    at_ = end;
    return out;
  }

 private:
  const Predictor& model_;
  int64_t batch_, at_ = 0;
  bool sliced_ = false, done_ = false;
  std::vector<Array> arrays_;
  std::optional<Array> labels_;
};

/// Batches of a dataset with the run's transforms.
class DatasetBatches final : public Batches {
 public:
  DatasetBatches(const Predictor& model, data::DatasetPtr dataset, data::LoaderOptions options)
      : dataset_(dataset), loader_(dataset, options) {
    std::vector<std::string> names;
    for (const data::Field& f : loader_.fields()) names.push_back(f.name);
    for (const auto& [name, type] : model.inputs()) {
      const auto it = std::find(names.begin(), names.end(), name);
      if (it == names.end())
        fail(ErrorCode::kData, "the data has no field '", name, "' but ", join(names, ", "),
             "; the model takes ", expected_inputs(model), did_you_mean(name, names));
      fields_.push_back(static_cast<size_t>(it - names.begin()));
      const data::Field& f = loader_.fields()[fields_.back()];
      if (f.dtype != type.dtype)
        fail(ErrorCode::kData, "the data's field ", f, " does not fit the model's input '", name,
             "' ", type);
    }
    const auto label = std::find(names.begin(), names.end(), model.meaning().label_field);
    if (!model.meaning().label_field.empty() && label != names.end())
      label_ = static_cast<int>(label - names.begin());
  }
  std::optional<InputBatch> next() override {
    auto batch = loader_.next();
    if (!batch) return std::nullopt;
    InputBatch out;
    for (const size_t f : fields_) out.inputs.push_back(batch->arrays[f]);
    if (label_ >= 0) out.labels = batch->arrays[static_cast<size_t>(label_)];
    out.rows = batch->samples;
    for (const int64_t index : batch->indices) out.places.push_back(dataset_->place(index));
    return out;
  }

 private:
  data::DatasetPtr dataset_;
  data::Loader loader_;
  std::vector<size_t> fields_;
  int label_ = -1;
};

/// The data section of the run's own config, or of the one named.
train::DataConfig data_section(const Predictor& model, const std::string& config_path) {
  if (!config_path.empty()) return train::read_config(config_path, {}).data;
  if (!model.meaning().config) return {};
  model::Node document = *model.meaning().config;
  model::Diagnostics diagnostics;
  model::Node* section = document.find("data");
  if (!section) return {};
  train::data_schema().resolve(*section, "data", diagnostics);
  diagnostics.raise();
  train::DataConfig data = train::read_data(model::Section(*section), 0, diagnostics);
  diagnostics.raise();
  return data;
}

bool is_image(const std::string& path) {
  const std::string e = extension(path);
  return e == ".png" || e == ".jpg" || e == ".jpeg";
}

bool is_npz(const std::string& path) { return extension(path) == ".npz"; }
bool is_onnx(const std::string& model) { return extension(model) == ".onnx"; }

/// The file or folder that all inputs come from; null where there are several, or a dataset.
const std::string* only_path(const InputOptions& options) {
  return options.data.empty() && options.paths.size() == 1 ? &options.paths[0] : nullptr;
}

}  // namespace

bool is_one_batch(const std::string& model, const InputOptions& options) {
  const std::string* const path = only_path(options);
  if (!path) return false;
  return is_image(*path) || (is_onnx(model) && (is_npz(*path) || has_onnx_inputs(*path)));
}

std::set<std::string> given_arrays(const std::string& model, const InputOptions& options) {
  const std::string* const path = only_path(options);
  if (!path || !is_onnx(model) || !is_npz(*path) || !file_exists(*path)) return {};
  const formats::NpzReader reader(*path);
  return {reader.names().begin(), reader.names().end()};
}

std::unique_ptr<Batches> open_inputs(const Predictor& model, const InputOptions& options) {
  if (options.batch < 1)
    fail(ErrorCode::kUsage, "--batch: expected at least 1, found ", options.batch);
  if (!options.data.empty()) {
    std::string config = options.data, part = "valid";
    if (config == "train" || config == "valid") {
      part = config;
      config.clear();
    } else if (const size_t colon = config.rfind(':'); colon != std::string::npos && colon > 1) {
      part = config.substr(colon + 1);
      config.resize(colon);
    }
    if (part != "train" && part != "valid")
      fail(ErrorCode::kUsage, "--data: expected 'train' or 'valid', found '", part, "'");
    train::DataConfig data = data_section(model, config);
    data::LoaderOptions loader = data.valid_loader;
    loader.batch_size = options.batch;
    loader.epochs = 1;
    if (part == "valid" && !data.valid)
      fail(ErrorCode::kUsage, "--data: the config has no validation data");
    return std::make_unique<DatasetBatches>(
        model, data::make_dataset(part == "valid" ? *data.valid : data.train), loader);
  }
  if (options.paths.empty())
    fail(ErrorCode::kUsage, "no input is given; the model takes ", expected_inputs(model));
  const std::string& first = options.paths[0];
  for (const std::string& path : options.paths)
    if (!file_exists(path) && !is_directory(path))
      fail(ErrorCode::kUsage, path, ": there is no such file or folder");
  if (is_npz(first)) {
    if (options.paths.size() > 1)
      fail(ErrorCode::kUsage, "one .npz file is expected, found ", options.paths.size(), " inputs");
    return std::make_unique<ArrayBatches>(model, first, options.batch);
  }
  const train::DataConfig run = data_section(model, "");
  data::LoaderOptions loader = run.valid_loader;
  loader.epochs = 1;
  loader.shuffle = false;
  loader.batch_size = options.batch;
  data::DatasetOptions source;
  const auto names = input_names(model);
  if (is_directory(first) || is_image(first)) {
    data::ImageFolderOptions images;
    if (is_directory(first))
      images.path = first;
    else
      images.files = options.paths;
    images.image_field = names.at(0);
    images.label_field =
        model.meaning().label_field.empty() ? "label" : model.meaning().label_field;
    images.classes = model.meaning().classes;
    images.inherited_classes = !images.classes.empty();
    const Shape& shape = model.inputs()[0].second.shape;
    images.channels = shape.size() == 4 && shape[1].is_constant() && shape[1].value() == 1 ? 1 : 3;
    source.source = images;
    // Grey or colour pictures of any size come to the size that the model declares.
    if (shape.size() == 4 && shape[2].is_constant() && shape[3].is_constant()) {
      data::TransformOptions resize;
      resize.kind = data::TransformKind::kResize;
      resize.fields = {names[0]};
      resize.height = shape[2].value();
      resize.width = shape[3].value();
      loader.transforms.insert(loader.transforms.begin(), resize);
    }
    std::erase_if(loader.transforms, [&](const data::TransformOptions& t) {
      return std::find(t.fields.begin(), t.fields.end(), images.image_field) == t.fields.end();
    });
  } else if (extension(first) == ".csv" || extension(first) == ".tsv") {
    data::CsvFileOptions csv;
    if (const auto* trained = std::get_if<data::CsvFileOptions>(&run.train.source)) {
      csv = *trained;
      // Only what the model takes; a file to predict need not have labels.
      std::erase_if(csv.fields, [&](const data::CsvField& f) {
        return std::find(names.begin(), names.end(), f.name) == names.end();
      });
    }
    csv.path = first;
    source.source = csv;
  } else if (extension(first) == ".txt") {
    data::TextOptions t;
    if (const auto* trained = std::get_if<data::TextOptions>(&run.train.source)) t = *trained;
    t.path = first;
    t.windows = data::TextWindows::kConsecutive;
    if (model.meaning().vocabulary) t.vocabulary = model.meaning().vocabulary->tokens();
    source.source = t;
  } else {
    fail(ErrorCode::kUsage, first,
         ": expected .npz, .csv, .tsv, .txt, images or a folder of images");
  }
  return std::make_unique<DatasetBatches>(model, data::make_dataset(source), loader);
}

}  // namespace paddle::infer
