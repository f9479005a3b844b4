#include "infer/batches.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "data/data_config.h"
#include "formats/image.h"
#include "formats/npz.h"
#include "formats/sound/sound.h"
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
data::LoaderOptions prediction_loader(data::LoaderOptions loader, const InputOptions& options) {
  loader.epochs = 1;
  loader.shuffle = false;
  loader.batch_size = options.batch;
  loader.max_bad_rate = 1;
  if (options.no_workers) loader.workers = 0;
  return loader;
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
  return program::run_data(model.metadata());
}

RunInputs::RunInputs(const program::Model& model, const std::vector<std::string>& generated)
    : data(run_data(model)), units(model, generated) {}

namespace {

/// `--data`: a section of the run's own config or of another one.
std::unique_ptr<Batches> open_section(const program::Model& model, const InputOptions& options) {
  const std::vector<std::string> parts = {"train", "valid", "test"};
  const auto [config, part] = data::parse_data_name(options.data, parts);
  if (std::find(parts.begin(), parts.end(), part) == parts.end())
    fail(ErrorCode::kUsage, "--data: expected train, valid or test, found '", part, "'",
         did_you_mean(part, parts));
  const std::optional<data::DataConfig>& run = options.run->data;
  if (config.empty() && !run)
    fail(ErrorCode::kUsage,
         "--data: this model has no data of its own; give --data CONFIG.yaml:", part);
  const data::DataConfig data = !config.empty() ? data::read_config_data(config)
                                : run           ? *run
                                                : data::DataConfig();
  if (part == "valid" && !data.valid)
    fail(ErrorCode::kUsage, "--data: the config has no validation data");
  if (part == "test" && !data.test) fail(ErrorCode::kUsage, "--data: the config has no data.test");
  data::DatasetOptions source = part == "valid"  ? *data.valid
                                : part == "test" ? *data.test
                                                 : data.train;
  if (run)
    data::apply_fitted(source, program::fitted_of(model.metadata(), run));
  else if (part != "train")  // as in a training of that config
    data::apply_fitted(source, data::make_dataset(data.train)->fitted());
  const std::vector<std::string> names = input_names(model);
  if (std::find(names.begin(), names.end(), "segments") == names.end())
    data::choose_packing(source, false);
  return dataset_batches(model, options, data::make_dataset(source),
                         prediction_loader(data.valid_loader, options), source);
}

/// Whether rows of the arrays, which are what the model takes, are NaN or infinite somewhere, and
/// the run has a policy for them.
bool has_bad_rows(const program::Model& model, const data::LoaderOptions& policies,
                  const InputOptions& options, const formats::NpzReader& reader) {
  if (policies.nan == data::NanPolicy::kKeep) return false;
  bool any = false;
  std::optional<Dim> rows;
  int64_t count = -1;
  for (const auto& [name, type] : model.inputs()) {
    if (is_generated(options, name)) continue;
    if (!reader.contains(name) || type.shape.empty() || !type.shape[0].is_symbol()) return false;
    if (!rows) rows = type.shape[0];
    const auto& header = reader.header(name);
    if (header.dtype != type.dtype || header.shape.size() != type.shape.size() ||
        !type.shape[0].same(*rows) || (count >= 0 && header.shape[0] != count))
      return false;
    count = header.shape[0];
    if (!is_float(type.dtype)) continue;
    const Array array = reader.read(name).contiguous();
    for (int64_t i = 0; i < array.size() && !any; ++i) any = !std::isfinite(array.number(i));
  }
  return any;
}

/// kData for raw data of a scaled field that is not what the model takes but for the scale. What
/// transforms change is checked after them.
void check_scaled(const program::Model& model, const program::InputUnits& units,
                  const std::string& name, DType dtype, const Dims& shape,
                  const std::string& origin) {
  const bool changes =
      std::any_of(units.transforms().begin(), units.transforms().end(), [&](const auto& each) {
        return std::find(each.fields.begin(), each.fields.end(), name) != each.fields.end();
      });
  if (changes || !data::find_fitted(units.scales(), name)) return;
  const auto& type =
      std::find_if(model.inputs().begin(), model.inputs().end(), [&](const auto& input) {
        return input.first == name;
      })->second;
  if (dtype != type.dtype || shape.size() != type.shape.size() ||
      (shape.size() > 1 && type.shape.back().is_constant() &&
       type.shape.back().value() != shape.back()))
    fail(ErrorCode::kData, origin, ": '", name, "' is ", text(dtype), str(shape),
         ", the model takes ", type);
}

/// Arrays in memory: brought to what the model takes where they are raw data, as those of a file.
std::unique_ptr<Batches> open_given_arrays(const program::Model& model,
                                           const InputOptions& options) {
  formats::NamedArrays arrays = *options.arrays;
  const auto find = [&](const std::string& name) {
    return std::find_if(arrays.begin(), arrays.end(),
                        [&](const auto& each) { return each.first == name; });
  };
  const program::InputUnits& units = options.run->units;
  const bool is_raw = units.are_raw([&](const std::string& name) -> std::optional<DType> {
    const auto at = find(name);
    return at == arrays.end() ? std::nullopt : std::optional(at->second.dtype);
  });
  std::vector<size_t> places;
  std::vector<Array> raw;
  for (const std::string& name : input_names(model)) {
    const auto at = find(name);
    if (!is_raw || is_generated(options, name) || at == arrays.end()) continue;
    const Array& array = at->second;
    if (array.shape.empty() || array.shape[0] == 0 ||
        (!raw.empty() && array.shape[0] != raw[0].shape[0]))
      fail(ErrorCode::kData, "input '", name, "' is ", text(array.dtype), str(array.shape),
           ", expected a first axis of at least one row, as long for all inputs");
    check_scaled(model, units, name, array.dtype, array.shape, "inputs");
    places.push_back(static_cast<size_t>(at - arrays.begin()));
    raw.push_back(array);
  }
  const size_t wanted = model.inputs().size() - options.generated.size();
  if (is_raw && raw.size() == wanted) {  // otherwise array_batches says what is missing
    const std::vector<Array> prepared = units.prepared(raw);
    for (size_t i = 0; i < places.size(); ++i) arrays[places[i]].second = prepared[i];
  }
  return array_batches(model,
                       {.origin = "inputs",
                        .find = [&](const std::string& name) -> std::optional<Array> {
                          const auto at = find(name);
                          return at == arrays.end() ? std::nullopt : std::optional(at->second);
                        },
                        .what_it_has = [](const std::string&) { return std::string(); }},
                       options, {});
}

/// The arrays of an NPZ file, as array_batches takes them.
ArraySource source_of(const formats::NpzReader& reader) {
  return {.origin = reader.path(),
          .find = [&](const std::string& name) -> std::optional<Array> {
            if (!reader.contains(name)) return std::nullopt;
            return reader.read(name);
          },
          .what_it_has = [&](const std::string& wanted) { return reader.what_it_has(wanted); }};
}

/// One NPZ file. Its arrays are read as the run's own arrays are if they are raw data
/// (program/model_units.h); otherwise they are what the model takes.
std::unique_ptr<Batches> open_arrays(const program::Model& model, const InputOptions& options) {
  const std::optional<data::DataConfig>& run = options.run->data;
  const std::string& path = options.paths[0];
  const formats::NpzReader reader(path);
  if (!run) return array_batches(model, source_of(reader), options, {});
  std::vector<std::string> names = input_names(model);
  std::erase_if(names, [&](const std::string& name) { return is_generated(options, name); });
  const auto is_input = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const program::InputUnits& units = options.run->units;
  const std::vector<data::Fitted>& scales = units.scales();
  const std::vector<data::TransformOptions>& transforms = units.transforms();
  const bool as_data = units.are_raw([&](const std::string& name) -> std::optional<DType> {
    if (!reader.contains(name)) return std::nullopt;
    return reader.header(name).dtype;
  });
  if (!as_data && !has_bad_rows(model, run->valid_loader, options, reader)) {
    std::vector<std::string> warnings;
    if (!transforms.empty())
      warnings.push_back(
          str(path, ": the arrays go to the model as they are; the run's transforms ",
              "of its inputs are not applied (use --data with `kind: npz` for raw ", "data)"));
    return array_batches(model, source_of(reader), options, warnings);
  }
  data::NpzOptions npz{path, {}};
  for (const std::string& name : names) {
    if (!reader.contains(name))
      fail(ErrorCode::kData, path, ": has no array '", name, "'; the model takes ",
           expected_inputs(model), reader.what_it_has(name));
    npz.arrays.emplace_back(name, name);
  }
  for (const std::string& name : names) {
    const auto& header = reader.header(name);
    check_scaled(model, units, name, header.dtype, header.shape, path);
  }
  const std::string label = label_field(model, options);
  const bool labelled = !label.empty() && !is_input(label) && reader.contains(label);
  if (labelled) npz.arrays.emplace_back(label, label);
  data::DatasetOptions source;
  source.source = npz;
  source.scales = scales;
  data::LoaderOptions loader = prediction_loader(run->valid_loader, options);
  if (as_data)
    loader.transforms = transforms;
  else
    loader.transforms.clear();
  return dataset_batches(model, options, data::make_dataset(source), loader, source);
}

/// Whether a folder is read as training reads one: images only, or folders whose names are classes
/// of the model and so labels.
bool is_plain_folder(const program::Model& model, const std::string& path) {
  if (!is_directory(path)) return false;
  const auto& classes = model.metadata().classes;
  bool has_images = false, has_folders = false;
  for (const std::string& name : list_directory(path)) {
    if (name.starts_with('.')) continue;
    const bool is_folder = is_directory(join_path(path, name));
    has_images = has_images || (!is_folder && formats::has_image_ending(name));
    has_folders = has_folders || is_folder;
    if (is_folder && std::find(classes.begin(), classes.end(), name) == classes.end()) return false;
  }
  return !(has_images && has_folders);
}

/// The files of a folder and of those in it that `is_wanted` is true of.
void add_files(const std::string& folder, int depth, bool (*is_wanted)(const std::string&),
               std::vector<std::string>& out) {
  constexpr int kMaxNested = 32;
  if (depth > kMaxNested)
    fail(ErrorCode::kData, folder, ": more than ", kMaxNested, " folders inside each other");
  for (const std::string& name : list_directory(folder)) {
    if (name.starts_with('.')) continue;
    const std::string path = join_path(folder, name);
    if (is_directory(path))
      add_files(path, depth + 1, is_wanted, out);
    else if (is_wanted(name))
      out.push_back(path);
  }
}

/// The columns that the inputs are made of.
std::vector<std::string> input_columns(const data::DataConfig& run,
                                       const std::vector<std::string>& inputs) {
  std::vector<std::string> out;
  for (const data::CsvField& field : std::get<data::CsvFileOptions>(run.train.source).fields) {
    if (std::find(inputs.begin(), inputs.end(), field.name) == inputs.end()) continue;
    for (const std::string& column :
         field.columns.empty() ? std::vector{field.name} : field.columns)
      out.push_back("'" + column + "'");
  }
  return out;
}

bool is_image(const std::string& name) { return formats::has_image_ending(name); }
bool is_sound(const std::string& name) { return formats::has_sound_ending(name); }

/// Sounds as records of the run, if the run reads sounds from a table and the inputs are sounds or
/// a folder.
std::optional<data::CsvFileOptions> sound_options(const InputOptions& options,
                                                  const std::optional<data::DataConfig>& run,
                                                  const std::vector<std::string>& names) {
  const auto* trained = run ? std::get_if<data::CsvFileOptions>(&run->train.source) : nullptr;
  const std::string& first = options.paths[0];
  if (!trained || !(is_sound(first) || is_directory(first))) return std::nullopt;
  const auto field =
      std::find_if(trained->fields.begin(), trained->fields.end(), [&](const data::CsvField& each) {
        return each.kind == data::ColumnKind::kAudio &&
               std::find(names.begin(), names.end(), each.name) != names.end();
      });
  if (field == trained->fields.end()) return std::nullopt;
  data::CsvFileOptions out = *trained;
  out.more_paths.clear();
  out.line_files.clear();
  out.more_columns.clear();
  out.listed_column = field->columns.empty() ? field->name : field->columns[0];
  for (const std::string& path : options.paths)
    if (is_directory(path))
      add_files(path, 0, is_sound, out.listed_files);
    else
      out.listed_files.push_back(path);
  if (out.listed_files.empty())
    fail(ErrorCode::kData, first, ": has no audio files (.wav, .flac, .ogg, .mp3 and others)");
  out.path = out.listed_files[0];
  return out;
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
  if (options.paths.size() == 1 && is_plain_folder(model, options.paths[0])) {
    images.path = options.paths[0];
    return images;
  }
  for (const std::string& path : options.paths)
    if (is_directory(path))
      add_files(path, 0, is_image, images.files);
    else
      images.files.push_back(path);
  if (images.files.empty())
    fail(ErrorCode::kData, options.paths[0], ": has no images (", formats::kImageEndings, ")");
  return images;
}

}  // namespace

std::unique_ptr<Batches> open_inputs(const program::Model& model, const InputOptions& given) {
  InputOptions options = given;
  if (!options.run) options.run = std::make_shared<RunInputs>(model, options.generated);
  if (options.batch < 1)
    fail(ErrorCode::kUsage, "--batch: expected at least 1, found ", options.batch);
  if (options.arrays) return open_given_arrays(model, options);
  if (!options.data.empty()) return open_section(model, options);
  if (options.paths.empty())
    fail(ErrorCode::kUsage, "no input is given; the model takes ", expected_inputs(model));
  const std::string& first = options.paths[0];
  for (const std::string& path : options.paths)
    if (!file_exists(path) && !is_directory(path))
      fail(ErrorCode::kUsage, path, ": no such file or folder");
  const std::optional<data::DataConfig>& run = options.run->data;
  const auto one_file = [&] {
    if (options.paths.size() > 1)
      fail(ErrorCode::kUsage, first, ": expected one file of this kind, found ",
           options.paths.size(), " inputs");
  };
  if (is_npz(first)) {
    one_file();
    return open_arrays(model, options);
  }
  data::LoaderOptions loader =
      prediction_loader(run ? run->valid_loader : data::LoaderOptions(), options);
  data::DatasetOptions source;
  auto names = input_names(model);
  std::erase_if(names, [&](const std::string& name) { return is_generated(options, name); });
  if (const auto sounds = sound_options(options, run, names)) {
    // One bad sound does not keep the others from being predicted: it is named.
    if (sounds->listed_files.size() > 1) loader.on_bad_sample = data::BadSamplePolicy::kSkip;
    source.source = *sounds;
  } else if (is_directory(first) || formats::has_image_ending(first)) {
    data::ImageFolderOptions images = image_options(model, options, run);
    // One bad picture does not keep the others from being predicted: it is named.
    if (images.files.size() != 1) loader.on_bad_sample = data::BadSamplePolicy::kSkip;
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
    const auto format = extension(first) == ".jsonl" ? "jsonl" : "csv";
    if (run && std::holds_alternative<data::SeriesOptions>(run->train.source)) {
      data::SeriesOptions series = std::get<data::SeriesOptions>(run->train.source);
      series.file.path = first;
      series.file.more_paths.clear();
      series.file.format = format;
      series.forecasts = true;
      source.source = series;
    } else {
      data::CsvFileOptions csv;
      if (run)
        if (const auto* trained = std::get_if<data::CsvFileOptions>(&run->train.source))
          csv = *trained;
      csv.path = first;
      csv.more_paths.clear();
      csv.format = format;
      source.source = csv;
    }
  } else if (extension(first) == ".txt") {
    one_file();
    if (run && std::holds_alternative<data::CsvFileOptions>(run->train.source))
      fail(ErrorCode::kUsage, first, ": the model was trained on a table; give a .csv, .tsv or ",
           ".jsonl file with the column ", join(input_columns(*run, names), ", "));
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
         ": expected .npz, .csv, .tsv, .jsonl, .txt, images, audio or a folder of them");
  }
  data::apply_fitted(source, program::fitted_of(model.metadata(), run));
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
