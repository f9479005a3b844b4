#include "formats/paddle_params.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "formats/paddle_program.h"
#include "formats/protobuf.h"

namespace paddle::formats {
namespace {

/// Calls `use` for each field of a message.
void for_each_field(std::string_view text, const std::string& file,
                    const std::function<void(const ProtobufReader::Field&)>& use) {
  const ProtobufReader::Reject reject = [&](size_t) {
    fail(ErrorCode::kModel, file, ": damaged protobuf");
  };
  ProtobufReader message(text, reject);
  for (ProtobufReader::Field field; message.next(field);) use(field);
}

}  // namespace

PaddleParams::PaddleParams(const std::string& path)
    : file_(MappedFile::open(path, ErrorCode::kModel)) {
  read_tensors();
  const std::string stem = path.substr(0, path.rfind('.'));
  for (const std::string ending : {".pdmodel", ".json"})
    if (!has_names_ && file_exists(stem + ending))
      take_names(read_paddle_program(stem + ending).parameters(), stem + ending);
  const size_t name_at = path.rfind('/') + 1;  // 0 if there is no folder
  const std::string program = path.substr(0, name_at) + "__model__";
  if (has_names_ || !file_exists(program)) return;
  const std::vector<std::string> names = read_paddle_program(program).parameters();
  if (std::ranges::count(names, path.substr(name_at)) > 0)
    take_names({path.substr(name_at)}, program);
  else
    take_names(names, program);
}

std::vector<std::string> paddle_parameter_files(const std::string& program) {
  if (!is_paddle_folder_program(program)) {
    const std::string stem = program.substr(0, program.rfind('.')), path = stem + ".pdiparams";
    // paddle.static.save writes a pickle.
    if (!file_exists(path) && file_exists(stem + ".pdparams")) return {stem + ".pdparams"};
    if (!file_exists(path))
      fail(ErrorCode::kModel, path, ": no such file; it has the parameters of ", program);
    return {path};
  }
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  std::vector<std::string> each;
  for (const std::string& name : read_paddle_program(program).parameters())
    if (name.find('/') == std::string::npos && file_exists(folder + name))
      each.push_back(folder + name);
    else if (!each.empty())
      fail(ErrorCode::kModel, program, ": no file next to it has the parameter '", name, "'");
    else
      break;
  if (!each.empty()) return each;
  if (file_exists(folder + "__params__")) return {folder + "__params__"};
  for (const std::string& name : list_directory(folder.empty() ? "." : folder, ErrorCode::kModel))
    if (folder + name != program && !is_directory(folder + name)) each.push_back(folder + name);
  if (each.size() != 1)
    fail(ErrorCode::kModel, program, ": no file next to it has its parameters (__params__, or one ",
         "of the name of each parameter)");
  return each;
}

/// A tensor is: version (0), number of levels of detail and their bounds, version (0), the size of
/// a TensorDesc (data_type = 1, dims = 2), the TensorDesc, the elements.
void PaddleParams::read_tensors() {
  const std::string_view bytes = file_->view();
  size_t at = 0;
  const auto take = [&](uint64_t count) {
    if (count > bytes.size() - at)
      fail(ErrorCode::kModel, file_->path(), ": parameter ", parameters_.size(), " ends early");
    const std::string_view out = bytes.substr(at, static_cast<size_t>(count));
    at += static_cast<size_t>(count);
    return out;
  };
  const auto number = [&](size_t size) {
    uint64_t out = 0;
    std::memcpy(&out, take(size).data(), size);
    return out;
  };
  const auto bad = [&](const auto&... why) {
    fail(ErrorCode::kModel, file_->path(), ": parameter ", parameters_.size(), " ", why...);
  };
  while (at < bytes.size()) {
    if (number(4) != 0) bad("has an unknown version");
    const uint64_t levels = number(8);
    if (levels > 8) bad("has ", levels, " levels of detail");
    for (uint64_t i = 0; i < levels; ++i) take(number(8));
    if (number(4) != 0) bad("has an unknown version");
    const std::string_view description = take(number(4));
    PaddleParameter parameter;
    uint64_t type = 0;
    for_each_field(description, file_->path(), [&](const ProtobufReader::Field& field) {
      if (field.number == 1) type = field.integer;
      if (field.number == 2) parameter.shape.push_back(static_cast<int64_t>(field.integer));
    });
    const auto dtype = paddle_dtype(static_cast<int64_t>(type));
    if (!dtype) bad("has the type ", type, ", which is not supported");
    parameter.dtype = *dtype;
    int64_t count = 1;
    for (const int64_t size : parameter.shape)
      if (size < 0 || __builtin_mul_overflow(count, size, &count)) bad("has an impossible shape");
    parameter.name = std::to_string(parameters_.size());
    parameter.offset = at;
    if (count > static_cast<int64_t>(bytes.size())) bad("ends early");
    take(static_cast<uint64_t>(storage_bytes(parameter.dtype, count)));
    parameters_.push_back(std::move(parameter));
  }
}

void PaddleParams::take_names(std::vector<std::string> names, const std::string& program) {
  if (names.size() != parameters_.size())
    fail(ErrorCode::kModel, file_->path(), ": has ", parameters_.size(),
         " parameters, the program ", program, " ", names.size());
  for (size_t i = 0; i < names.size(); ++i) parameters_[i].name = names[i];
  has_names_ = true;
}

Array PaddleParams::read(size_t index) const {
  const PaddleParameter& parameter = parameters_.at(index);
  Array out;
  out.dtype = parameter.dtype;
  out.shape = parameter.shape;
  out.strides = contiguous_strides(parameter.shape);
  out.storage = Storage::borrow_unaligned(
      file_->data() + parameter.offset,
      static_cast<size_t>(storage_bytes(parameter.dtype, out.size())), file_);
  return out;
}

}  // namespace paddle::formats
