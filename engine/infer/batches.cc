#include "infer/batches.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "data/data_config.h"
#include "formats/image.h"
#include "formats/npz.h"
#include "infer/input_batches.h"
#include "onnx/graph/value_io.h"

namespace paddle::infer {
namespace {

namespace fs = std::filesystem;

std::string extension(const std::string& path) {
  std::string e = fs::path(path).extension().string();
  std::transform(e.begin(), e.end(), e.begin(),
                 [](char c) { return static_cast<char>(std::tolower(c)); });
  return e;
}

/// The loader for predictions: each sample once, in order, whatever share of them is bad.
data::LoaderOptions prediction_loader(data::LoaderOptions loader, int64_t batch) {
  loader.epochs = 1;
  loader.shuffle = false;
  loader.batch_size = batch;
  loader.max_bad_rate = 1;
  return loader;
}

/// The values that the run fitted. Models without `fitted.json` have them in their config.
std::vector<data::Fitted> fitted_of(const program::Model& model,
                                    const std::optional<data::DataConfig>& run) {
  const program::ModelMetadata& metadata = model.metadata();
  if (!metadata.fitted.empty() || !run) return metadata.fitted;
  std::vector<data::Fitted> fitted = data::stated_fitted(run->train);
  if (std::holds_alternative<data::ImageFolderOptions>(run->train.source)) {
    data::Fitted& classes = fitted.emplace_back();
    classes.field = metadata.label_field;
    classes.tokens = metadata.classes;
  }
  return fitted;
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
  return formats::has_image_ending(*path) ||
         (is_onnx(model) && (is_npz(*path) || onnx::has_input_files(*path)));
}

std::set<std::string> provided_arrays(const std::string& model, const InputOptions& options) {
  const std::string* const path = only_path(options);
  if (!path || !is_onnx(model) || !is_npz(*path) || !file_exists(*path)) return {};
  const formats::NpzReader reader(*path);
  return {reader.names().begin(), reader.names().end()};
}

std::optional<data::DataConfig> run_data(const program::Model& model) {
  if (!model.metadata().config) return std::nullopt;
  const config::Node& document = *model.metadata().config;
  if (!document.find("data")) return std::nullopt;
  return data::read_data_section(document);
}

namespace {

/// `--data`: a section of the run's own config or of another one.
std::unique_ptr<Batches> open_section(const program::Model& model, const InputOptions& options) {
  const auto [config, part] = data::parse_data_name(options.data, {"train", "valid"});
  if (part != "train" && part != "valid")
    fail(ErrorCode::kUsage, "--data: expected 'train' or 'valid', found '", part, "'");
  const std::optional<data::DataConfig> run = run_data(model);
  const data::DataConfig data = !config.empty() ? data::read_config_data(config)
                                : run           ? *run
                                                : data::DataConfig();
  if (part == "valid" && !data.valid)
    fail(ErrorCode::kUsage, "--data: the config has no validation data");
  data::DatasetOptions source = part == "valid" ? *data.valid : data.train;
  if (run)
    data::apply_fitted(source, fitted_of(model, run));
  else if (part == "valid")  // as in a training of that config
    data::apply_fitted(source, data::make_dataset(data.train)->fitted());
  const std::vector<std::string> names = input_names(model);
  if (std::find(names.begin(), names.end(), "segments") == names.end())
    data::choose_packing(source, false);
  return dataset_batches(model, options, data::make_dataset(source),
                         prediction_loader(data.valid_loader, options.batch), source);
}

/// One NPZ file. Its arrays are read as the run's own arrays are if the run was trained on arrays
/// (npz, npy) or on scaled columns; otherwise they are what the model takes.
std::unique_ptr<Batches> open_arrays(const program::Model& model, const InputOptions& options,
                                     const std::optional<data::DataConfig>& run) {
  const std::string& path = options.paths[0];
  if (!run) return array_batches(model, path, options, {});
  std::vector<std::string> names = input_names(model);
  std::erase_if(names, [&](const std::string& name) { return is_generated(options, name); });
  const auto is_input = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const bool arrays = std::holds_alternative<data::NpzOptions>(run->train.source) ||
                      std::holds_alternative<data::NpyOptions>(run->train.source);
  std::vector<data::Fitted> scales;
  for (const data::Fitted& each : fitted_of(model, run))
    if (is_input(each.field) && (!each.shift.empty() || each.log)) scales.push_back(each);
  std::vector<data::TransformOptions> transforms;
  for (const data::TransformOptions& t : run->valid_loader.transforms) {
    data::TransformOptions own = t;
    std::erase_if(own.fields, [&](const std::string& f) { return !is_input(f); });
    if (!own.fields.empty()) transforms.push_back(own);
  }
  const formats::NpzReader reader(path);
  const bool other_types =
      std::any_of(model.inputs().begin(), model.inputs().end(), [&](const auto& input) {
        return reader.contains(input.first) &&
               reader.header(input.first).dtype != input.second.dtype;
      });
  const bool as_data =
      (arrays && !transforms.empty()) || !scales.empty() || (other_types && !transforms.empty());
  if (!as_data) {
    std::vector<std::string> warnings;
    if (!transforms.empty())
      warnings.push_back(
          str(path, ": the arrays go to the model as they are; the run's transforms ",
              "of its inputs are not applied (use --data with `kind: npz` for raw ", "data)"));
    return array_batches(model, path, options, warnings);
  }
  data::NpzOptions npz{path, {}};
  for (const std::string& name : names) {
    if (!reader.contains(name))
      fail(ErrorCode::kData, path, ": has no array '", name, "'; the model takes ",
           expected_inputs(model), reader.what_it_has(name));
    npz.arrays.emplace_back(name, name);
  }
  for (const std::string& name : names) {
    const bool scaled = data::find_fitted(scales, name) != nullptr;
    if (scaled && transforms.empty()) {
      const auto& type =
          std::find_if(model.inputs().begin(), model.inputs().end(), [&](const auto& input) {
            return input.first == name;
          })->second;
      const auto& header = reader.header(name);
      if (header.dtype != type.dtype || header.shape.size() != type.shape.size() ||
          (header.shape.size() > 1 && type.shape.back().is_constant() &&
           type.shape.back().value() != header.shape.back()))
        fail(ErrorCode::kData, path, ": '", name, "' is ", text(header.dtype), str(header.shape),
             ", the model takes ", type);
    }
  }
  const std::string label = label_field(model);
  const bool labelled = !label.empty() && !is_input(label) && reader.contains(label);
  if (labelled) npz.arrays.emplace_back(label, label);
  data::DatasetOptions source;
  source.source = npz;
  source.scales = scales;
  data::LoaderOptions loader = prediction_loader(run->valid_loader, options.batch);
  loader.transforms = transforms;
  return dataset_batches(model, options, data::make_dataset(source), loader, source);
}

data::ImageFolderOptions image_options(const program::Model& model, const InputOptions& options,
                                       const std::optional<data::DataConfig>& run) {
  data::ImageFolderOptions images;
  const auto& [name, type] = model.inputs().at(0);
  const auto* trained = run ? std::get_if<data::ImageFolderOptions>(&run->train.source) : nullptr;
  if (trained) {
    images = *trained;
    images.classes.clear();
  } else {
    const Shape& shape = type.shape;
    images.channels = shape.size() == 4 && shape[1].is_constant() && shape[1].value() == 1 ? 1 : 3;
    if (type.dtype == DType::kU16) images.dtype = DType::kU16;
    images.label_field =
        model.metadata().label_field.empty() ? "label" : model.metadata().label_field;
  }
  images.image_field = name;
  images.path.clear();
  images.files.clear();
  if (is_directory(options.paths[0]))
    images.path = options.paths[0];
  else
    images.files = options.paths;
  return images;
}

}  // namespace

std::unique_ptr<Batches> open_inputs(const program::Model& model, const InputOptions& options) {
  if (options.batch < 1)
    fail(ErrorCode::kUsage, "--batch: expected at least 1, found ", options.batch);
  if (!options.data.empty()) return open_section(model, options);
  if (options.paths.empty())
    fail(ErrorCode::kUsage, "no input is given; the model takes ", expected_inputs(model));
  const std::string& first = options.paths[0];
  for (const std::string& path : options.paths)
    if (!file_exists(path) && !is_directory(path))
      fail(ErrorCode::kUsage, path, ": there is no such file or folder");
  const std::optional<data::DataConfig> run = run_data(model);
  const auto one_file = [&] {
    if (options.paths.size() > 1)
      fail(ErrorCode::kUsage, first, ": expected one file of this kind, found ",
           options.paths.size(), " inputs");
  };
  if (is_npz(first)) {
    one_file();
    return open_arrays(model, options, run);
  }
  data::LoaderOptions loader =
      prediction_loader(run ? run->valid_loader : data::LoaderOptions(), options.batch);
  data::DatasetOptions source;
  auto names = input_names(model);
  std::erase_if(names, [&](const std::string& name) { return is_generated(options, name); });
  if (is_directory(first) || formats::has_image_ending(first)) {
    data::ImageFolderOptions images = image_options(model, options, run);
    const Shape& shape = model.inputs()[0].second.shape;
    // A model without a run has no transforms: pictures get the size that it declares.
    if (!run && shape.size() == 4 && shape[2].is_constant() && shape[3].is_constant()) {
      data::TransformOptions resize;
      resize.kind = data::TransformKind::kResize;
      resize.fields = {names[0]};
      resize.height = shape[2].value();
      resize.width = shape[3].value();
      loader.transforms.push_back(resize);
    }
    source.source = images;
  } else if (extension(first) == ".csv" || extension(first) == ".tsv" ||
             extension(first) == ".jsonl") {
    one_file();
    data::CsvFileOptions csv;
    if (run)
      if (const auto* trained = std::get_if<data::CsvFileOptions>(&run->train.source))
        csv = *trained;
    csv.path = first;
    csv.more_paths.clear();
    csv.format =
        extension(first) == ".jsonl" ? data::RecordFormat::kJsonl : data::RecordFormat::kCsv;
    source.source = csv;
  } else if (extension(first) == ".txt") {
    one_file();
    data::TextOptions t;
    if (run)
      if (const auto* trained = std::get_if<data::TextOptions>(&run->train.source)) t = *trained;
    t.path = first;
    t.more_paths.clear();
    t.documents = data::TextDocuments::kNone;
    t.windows = data::TextWindows::kConsecutive;
    source.source = t;
  } else {
    fail(ErrorCode::kUsage, first,
         ": expected .npz, .csv, .tsv, .jsonl, .txt, images or a folder of images");
  }
  data::apply_fitted(source, fitted_of(model, run));
  const data::DatasetOptions with_label = source;
  if (auto* csv = std::get_if<data::CsvFileOptions>(&source.source))
    // Only what the model takes; a file to predict need not have labels.
    std::erase_if(csv->fields, [&](const data::CsvField& f) {
      return std::find(names.begin(), names.end(), f.name) == names.end();
    });
  const data::DatasetPtr dataset = data::make_dataset(source);
  for (data::TransformOptions& t : loader.transforms)
    std::erase_if(t.fields, [&](const std::string& f) { return dataset->find_field(f) < 0; });
  std::erase_if(loader.transforms,
                [](const data::TransformOptions& t) { return t.fields.empty(); });
  return dataset_batches(model, options, dataset, loader, with_label);
}

}  // namespace paddle::infer
