#include "serve/predict_inputs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/text.h"
#include "data/data_config.h"
#include "infer/input_batches.h"
#include "serve/api_error.h"

namespace paddle::serve {

namespace {

using BodyKind = PredictRequest::Kind;

constexpr const char* kRowsFile = "rows.jsonl";

/// The fields of a run's table that its model takes.
std::vector<data::CsvField> table_fields(const program::Model& model,
                                         const std::optional<data::DataConfig>& run) {
  if (!run) return {};
  const data::CsvFileOptions* table = std::get_if<data::CsvFileOptions>(&run->train.source);
  if (const auto* series = std::get_if<data::SeriesOptions>(&run->train.source))
    table = &series->file;
  if (!table) return {};
  const std::vector<std::string> inputs = infer::input_names(model);
  std::vector<data::CsvField> out;
  for (const data::CsvField& field : table->fields)
    if (std::holds_alternative<data::SeriesOptions>(run->train.source) ||
        std::find(inputs.begin(), inputs.end(), field.name) != inputs.end())
      out.push_back(field);
  return out;
}

std::vector<std::string> columns_of(const data::CsvField& field) {
  return field.columns.empty() ? std::vector{field.name} : field.columns;
}

/// Columns that name files. A request holds the files themselves: names would let it read files of
/// the server.
std::vector<std::string> file_columns(const program::Model& model, const infer::RunInputs& run) {
  std::vector<std::string> out;
  for (const data::CsvField& field : table_fields(model, run.data)) {
    if (field.kind != data::ColumnKind::kImage && field.kind != data::ColumnKind::kMask &&
        field.kind != data::ColumnKind::kAudio)
      continue;
    for (const std::string& column : columns_of(field)) out.push_back(column);
  }
  return out;
}

/// The type in which a list for an input of this type is read first: stored types come as one that
/// holds their numbers.
DType read_type(DType wanted) {
  if (info(wanted).has_kernels) return wanted;
  if (is_float(wanted)) return DType::kF32;
  return info(wanted).kind == DTypeKind::kSigned ? DType::kI8 : DType::kU8;
}

Array array_of(const NestedList& list, DType wanted, const std::string& name) {
  const DType dtype = list.dtype.value_or(wanted);
  if (is_complex(dtype) || dtype == DType::kString)
    reject("inputs", "input '", name, "' is ", text(dtype),
           ", which lists cannot give; send an NPZ file (application/x-npz)");
  return to_array(list, read_type(dtype), name);
}

std::string expected_text(const program::Model& model) {
  return str("; the model takes ", infer::expected_inputs(model));
}

}  // namespace

std::vector<std::string> table_columns(const program::Model& model, const infer::RunInputs& run) {
  std::vector<std::string> out;
  for (const data::CsvField& field : table_fields(model, run.data))
    for (const std::string& column : columns_of(field))
      if (std::find(out.begin(), out.end(), column) == out.end()) out.push_back(column);
  return out;
}

PredictInputs::PredictInputs(const program::Model& model, const PredictRequest& request,
                             infer::InputOptions options)
    : kind_(request.kind) {
  try {
    open(model, request, options);
  } catch (const Error& error) {
    reject_error(error);
  }
}

void PredictInputs::open(const program::Model& model, const PredictRequest& request,
                         infer::InputOptions& options) {
  const onnx::Session* const session = model.onnx();
  const bool takes_values = session && (onnx::needs_values(*session) || model.inputs().empty()) &&
                            (kind_ == BodyKind::kInputs || kind_ == BodyKind::kNpz);
  if (kind_ == BodyKind::kInputs && takes_values) {
    values_ = values_of(*session, request);
    return;
  }
  if (kind_ == BodyKind::kInputs) {
    add_lists(model, request);
    options.arrays = &arrays_;
    batches_ = infer::open_inputs(model, options);
    return;
  }
  if (model.inputs().empty()) reject("", "the model takes no inputs; send {\"inputs\": {}}");
  folder_.emplace();
  if (kind_ == BodyKind::kRows) {
    const std::string rows = with_files(file_columns(model, *options.run), request.rows);
    if (request.row_count == 0) reject("rows", "'rows' is empty");
    options.paths = {write(kRowsFile, rows)};
  } else if (kind_ == BodyKind::kNpz) {
    options.paths = {write("0.npz", request.files[0])};
    file_names_ = {"the NPZ file"};
  } else {
    const bool images = kind_ == BodyKind::kImages;
    if (request.files.empty())
      reject(images ? "images" : "sounds", "'", images ? "images" : "sounds", "' is empty");
    for (size_t i = 0; i < request.files.size(); ++i) {
      // Their readers look at the content, not at the ending.
      options.paths.push_back(write(str(i, images ? ".png" : ".wav"), request.files[i]));
      file_names_.push_back(str(images ? "images" : "sounds", "[", i, "]"));
    }
  }
  if (takes_values)
    values_ = onnx::read_inputs(*session, options.paths[0]);
  else
    batches_ = infer::open_inputs(model, options);
}

void PredictInputs::add_lists(const program::Model& model, const PredictRequest& request) {
  std::vector<std::string> names = infer::input_names(model);
  const std::string& label = model.metadata().label_field;
  for (const auto& [name, list] : request.inputs) {
    const auto at =
        std::find_if(model.inputs().begin(), model.inputs().end(),
                     [&, &wanted = name](const auto& each) { return each.first == wanted; });
    if (at == model.inputs().end() && name != label)
      reject("inputs", "unknown input '", printable(name), "'", did_you_mean(name, names),
             expected_text(model));
    const DType dtype = at != model.inputs().end()                 ? at->second.dtype
                        : list.kind == NestedList::Kind::kIntegers ? DType::kI64
                                                                   : DType::kF32;
    arrays_.emplace_back(name, array_of(list, dtype, name));
    if (at == model.inputs().end()) continue;
    // Sizes that a raw array keeps are checked when it is what the model takes.
    const TensorType& type = at->second;
    const Array& array = arrays_.back().second;
    if (type.ranked && array.shape.size() != type.shape.size())
      reject("inputs", "input '", name, "' is ", text(array.dtype), str(array.shape), ", expected ",
             type);
  }
}

onnx::Values PredictInputs::values_of(const onnx::Session& session,
                                      const PredictRequest& request) const {
  using Type = formats::onnx::ValueType;
  std::vector<std::string> names;
  for (const auto& input : session.inputs()) names.push_back(input.name);
  for (const auto& [name, list] : request.inputs)
    if (std::find(names.begin(), names.end(), name) == names.end())
      reject("inputs", "unknown input '", printable(name), "'", did_you_mean(name, names));
  onnx::Values out;
  for (const auto& [name, type] : session.inputs()) {
    const auto given =
        std::find_if(request.inputs.begin(), request.inputs.end(),
                     [&, &wanted = name](const auto& each) { return each.first == wanted; });
    if (given == request.inputs.end()) {
      if (type.kind != Type::Kind::kOptional)
        reject("inputs", "there is no input '", name, "', expected ", type);
      out.emplace_back();
      continue;
    }
    if (type.kind != Type::Kind::kTensor)
      reject("inputs", "input '", name, "' is ", type,
             ", which lists cannot give; send an NPZ file (application/x-npz)");
    const NestedList& list = given->second;
    if (type.dtype == DType::kString) {
      if (list.kind != NestedList::Kind::kStrings && list.kind != NestedList::Kind::kNone)
        reject("inputs", "input '", name, "' has values of other kinds than strings, expected ",
               type);
      out.push_back(onnx::Value::of_strings(list.shape, list.strings));
      continue;
    }
    Array array = array_of(list, type.dtype.value_or(DType::kF32), name);
    if (type.dtype && onnx::needs_cast(array.dtype, *type.dtype))
      array = onnx::cast_provided(array, *type.dtype, str("input '", name, "'"));
    out.emplace_back(Tensor(array));
  }
  return out;
}

std::string PredictInputs::write(const std::string& name, std::string_view content) {
  std::string path = folder_->path() + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw ApiError{503, "not enough memory for the content of the request"};
  return path;
}

/// The rows with names of files in place of their content.
std::string PredictInputs::with_files(const std::vector<std::string>& columns,
                                      const std::string& rows) {
  if (columns.empty()) return rows;
  std::string out;
  size_t row = 0;
  for (size_t at = 0; at < rows.size(); ++row) {
    const size_t end = rows.find('\n', at);
    auto object = nlohmann::ordered_json::parse(rows.substr(at, end - at));
    at = end + 1;
    for (const std::string& column : columns) {
      const auto value = object.find(column);
      if (value == object.end() || value->is_null()) continue;
      const auto bytes =
          value->is_string() ? from_base64(value->get_ref<const std::string&>()) : std::nullopt;
      file_names_.push_back(str("rows[", row, "], column '", column, "'"));
      if (!bytes)
        reject("rows", file_names_.back(), ": expected the content of the file in base64");
      *value = write(std::to_string(file_names_.size() - 1), *bytes);
    }
    out += object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  }
  return out;
}

std::string PredictInputs::named(const std::string& message) const {
  if (!folder_) return message;
  const std::string prefix = folder_->path() + "/";
  std::string out;
  for (size_t at = 0; at < message.size();) {
    const size_t found = message.find(prefix, at);
    out += message.substr(at, found - at);
    if (found == message.npos) break;
    at = found + prefix.size();
    size_t number = 0;
    const bool is_row = message.compare(at, std::string_view(kRowsFile).size(), kRowsFile) == 0;
    if (is_row) at += std::string_view(kRowsFile).size();
    const size_t digits = is_row && at < message.size() && message[at] == ':' ? at + 1 : at;
    const auto parsed =
        std::from_chars(message.data() + digits, message.data() + message.size(), number);
    if (parsed.ec != std::errc()) {
      out += "rows";
      continue;
    }
    at = static_cast<size_t>(parsed.ptr - message.data());
    if (is_row) {
      out += str("rows[", number - 1, "]");
      continue;
    }
    out += number < file_names_.size() ? file_names_[number] : "a file";
    for (const char* ending : {".png", ".wav", ".npz"})
      if (message.compare(at, 4, ending) == 0) at += 4;
  }
  return out;
}

void PredictInputs::reject_error(const Error& error) const {
  const bool is_ours = error.code() == ErrorCode::kDevice || error.code() == ErrorCode::kInternal;
  throw ApiError{is_ours ? 500 : 400, named(error.what())};
}

std::optional<infer::InputBatch> PredictInputs::next() {
  try {
    std::optional<infer::InputBatch> batch = batches_->next();
    if (!batch) return batch;
    batch->places.clear();  // the files here mean nothing to a client
    for (infer::SkippedRow& row : batch->skipped) {
      row.place = named(row.place);
      row.reason = named(row.reason);
    }
    return batch;
  } catch (const Error& error) {
    reject_error(error);
  }
}

}  // namespace paddle::serve
