#include "formats/paddle_params.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "formats/protobuf.h"

namespace paddle::formats {
namespace {

constexpr uint64_t kLargestProgram = uint64_t{256} << 20;

/// Calls `use` for each field of a message.
void for_each_field(std::string_view text, const std::string& file,
                    const std::function<void(const ProtobufReader::Field&)>& use) {
  const ProtobufReader::Refuse refuse = [&](size_t) {
    fail(ErrorCode::kModel, file, ": damaged protobuf");
  };
  ProtobufReader message(text, refuse);
  for (ProtobufReader::Field field; message.next(field);) use(field);
}

/// Numbers of framework.proto's VarType.Type.
std::optional<DType> dtype_of(uint64_t type) {
  static const std::map<uint64_t, DType> kTypes = {
      {0, DType::kBool}, {1, DType::kI16},   {2, DType::kI32},  {3, DType::kI64},
      {4, DType::kF16},  {5, DType::kF32},   {6, DType::kF64},  {20, DType::kU8},
      {21, DType::kI8},  {22, DType::kBF16}, {23, DType::kC64}, {24, DType::kC128}};
  const auto it = kTypes.find(type);
  return it == kTypes.end() ? std::nullopt : std::optional(it->second);
}

/// Persistable tensors of a ProgramDesc: blocks = 1; BlockDesc: vars = 3; VarDesc: name = 1,
/// type = 2, persistable = 3; VarType: type = 1.
std::vector<std::string> names_of_program(const std::string& path) {
  constexpr uint64_t kDenseTensor = 7;
  const std::string text = read_file(path, kLargestProgram, ErrorCode::kModel);
  std::vector<std::string> out;
  const auto read_variable = [&](std::string_view variable) {
    std::string name;
    uint64_t type = 0;
    bool persistable = false;
    for_each_field(variable, path, [&](const ProtobufReader::Field& field) {
      if (field.number == 1) name = field.bytes;
      if (field.number == 3) persistable = field.integer != 0;
      if (field.number == 2)
        for_each_field(field.bytes, path, [&](const ProtobufReader::Field& of_type) {
          if (of_type.number == 1) type = of_type.integer;
        });
    });
    if (persistable && type == kDenseTensor) out.push_back(std::move(name));
  };
  for_each_field(text, path, [&](const ProtobufReader::Field& block) {
    if (block.number != 1) return;
    for_each_field(block.bytes, path, [&](const ProtobufReader::Field& field) {
      if (field.number == 3) read_variable(field.bytes);
    });
  });
  return out;
}

/// Operations "p" of a PIR program: their fourth attribute is the name.
std::vector<std::string> names_of_pir(const std::string& path) {
  const auto json = nlohmann::json::parse(read_file(path, kLargestProgram, ErrorCode::kModel),
                                          nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> out;
  try {
    if (json.at("base_code").at("magic") != "pir")
      fail(ErrorCode::kModel, path, ": is not a program of PaddlePaddle");
    for (const auto& region : json.at("program").at("regions"))
      for (const auto& block : region.at("blocks"))
        for (const auto& operation : block.at("ops"))
          if (operation.at("#") == "p") out.push_back(operation.at("A").at(3).get<std::string>());
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, path, ": is not a program of PaddlePaddle");
  }
  return out;
}

}  // namespace

PaddleParams::PaddleParams(const std::string& path)
    : file_(MappedFile::open(path, ErrorCode::kModel)) {
  read_tensors();
  const std::string stem = path.substr(0, path.rfind('.'));
  if (file_exists(stem + ".pdmodel"))
    take_names(names_of_program(stem + ".pdmodel"), stem + ".pdmodel");
  else if (file_exists(stem + ".json"))
    take_names(names_of_pir(stem + ".json"), stem + ".json");
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
    const auto dtype = dtype_of(type);
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
  std::ranges::sort(names);
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
