#include "formats/paddle_program.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>

#include "base/files.h"
#include "formats/paddle_pir.h"
#include "formats/protobuf.h"

namespace paddle::formats {
namespace {

constexpr uint64_t kMaxProgramBytes = uint64_t{256} << 20;
constexpr size_t kMaxBlocks = 4096;

using Field = ProtobufReader::Field;

/// Reads the messages of framework.proto; the numbers are those of its fields.
class ProgramReader {
 public:
  ProgramReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  PaddleProgram read() {
    each(text_, [&](const Field& block) {
      if (block.number == 4)
        each(block.bytes, [&](const Field& field) {
          if (field.number == 1) program_.version = static_cast<int64_t>(field.integer);
        });
      if (block.number != 1) return;
      if (program_.blocks.size() == kMaxBlocks)
        fail(ErrorCode::kModel, path_, ": has more than ", kMaxBlocks, " blocks");
      program_.blocks.emplace_back();
      each(block.bytes, [&](const Field& field) {
        if (field.number == 3) variable(field.bytes);
        if (field.number == 4) operation(field.bytes);
      });
    });
    if (program_.blocks.empty() || program_.blocks[0].operations.empty())
      fail(ErrorCode::kModel, path_, ": is not a program of PaddlePaddle");
    return std::move(program_);
  }

 private:
  void each(std::string_view text, const std::function<void(const Field&)>& use) const {
    const ProtobufReader::Reject reject = [&](size_t) {
      fail(ErrorCode::kModel, path_, ": damaged protobuf, or not a program of PaddlePaddle");
    };
    ProtobufReader message(text, reject);
    for (Field field; message.next(field);) use(field);
  }

  /// A repeated number: one, or several in packed form.
  void numbers(const Field& field, const std::function<void(uint64_t)>& use) const {
    if (field.bytes.empty()) return use(field.integer);
    // As the fields of a message without tags.
    size_t at = 0;
    while (at < field.bytes.size()) {
      uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        if (at >= field.bytes.size() || shift > 63)
          fail(ErrorCode::kModel, path_, ": damaged protobuf");
        const auto byte = static_cast<unsigned char>(field.bytes[at++]);
        value |= uint64_t{byte & 127U} << shift;
        if (byte < 128) break;
      }
      use(value);
    }
  }

  void variable(std::string_view text) {
    constexpr uint64_t kDenseTensor = 7, kArray = 13;
    std::string name;
    uint64_t type = 0;
    PaddleVariable out;
    const auto read_tensor = [&](std::string_view tensor) {
      each(tensor, [&](const Field& field) {
        if (field.number == 1) out.dtype = paddle_dtype(static_cast<int64_t>(field.integer));
        if (field.number == 2)
          numbers(field, [&](uint64_t d) { out.shape.push_back(static_cast<int64_t>(d)); });
      });
    };
    each(text, [&](const Field& field) {
      if (field.number == 1) name = field.bytes;
      if (field.number == 3) out.is_parameter = field.integer != 0;
      if (field.number == 2)
        each(field.bytes, [&](const Field& of_type) {
          if (of_type.number == 1) type = of_type.integer;
          if (of_type.number == 3)
            each(of_type.bytes, [&](const Field& dense) {
              if (dense.number == 1) read_tensor(dense.bytes);
            });
        });
    });
    out.is_parameter = out.is_parameter && type == kDenseTensor;
    if (type != kDenseTensor) out.dtype.reset();
    if (type == kArray) program_.blocks.back().arrays.push_back(name);
    // Inner blocks may declare a name of an outer block again.
    program_.variables.try_emplace(name, std::move(out));
  }

  void slot(std::string_view text, PaddleOperation::Slots& slots) const {
    auto& [name, values] = slots.emplace_back();
    each(text, [&, &name = name, &values = values](const Field& field) {
      if (field.number == 1) name = field.bytes;
      if (field.number == 2) values.emplace_back(field.bytes);
    });
  }

  static double real_of(uint64_t bits, bool is_double) {
    return is_double ? std::bit_cast<double>(bits)
                     : std::bit_cast<float>(static_cast<uint32_t>(bits));
  }

  void scalar(std::string_view text, PaddleAttribute& out) const {
    each(text, [&](const Field& field) {
      if (field.number == 2 || field.number == 3)
        out.integers.push_back(static_cast<int64_t>(field.integer));
      if (field.number == 4) out.reals.push_back(real_of(field.integer, true));
    });
  }

  void attribute(std::string_view text, PaddleOperation& operation) const {
    std::string name;
    PaddleAttribute out;
    std::vector<std::string> variables;
    const auto reals = [&](const Field& field, bool is_double) {
      const size_t size = is_double ? 8 : 4;
      if (field.bytes.empty()) return out.reals.push_back(real_of(field.integer, is_double));
      for (size_t at = 0; at + size <= field.bytes.size(); at += size) {
        uint64_t bits = 0;
        std::memcpy(&bits, field.bytes.data() + at, size);
        out.reals.push_back(real_of(bits, is_double));
      }
    };
    each(text, [&](const Field& field) {
      switch (field.number) {
        case 1:
          name = field.bytes;
          break;
        case 3:  // i, ints, b, bools, l, longs
        case 6:
        case 10:
        case 11:
        case 13:
        case 15:
          numbers(field, [&](uint64_t value) {
            // An int of 32 bits is written with 64 where it is negative.
            out.integers.push_back(static_cast<int64_t>(value));
          });
          break;
        case 4:  // f, floats
        case 7:
          reals(field, false);
          break;
        case 16:  // float64s, float64
        case 19:
          reals(field, true);
          break;
        case 5:  // s, strings
        case 8:
          out.texts.emplace_back(field.bytes);
          break;
        case 17:  // var_name, vars_name
        case 18:
          variables.emplace_back(field.bytes);
          break;
        case 20:  // scalar, scalars
        case 21:
          scalar(field.bytes, out);
          break;
        case 12:  // block_idx
          operation.blocks.push_back(static_cast<size_t>(field.integer));
          break;
        default:
          break;
      }
    });
    // A value that is computed takes the place of the attribute.
    if (!variables.empty())
      operation.inputs.emplace_back(name, std::move(variables));
    else if (name == "op_callstack")
      operation.source = python_line(out.texts);
    else
      operation.attributes[name] = std::move(out);
  }

  void operation(std::string_view text) {
    PaddleOperation out;
    each(text, [&](const Field& field) {
      if (field.number == 1) slot(field.bytes, out.inputs);
      if (field.number == 2) slot(field.bytes, out.outputs);
      if (field.number == 3) out.type = field.bytes;
      if (field.number == 4) attribute(field.bytes, out);
    });
    program_.blocks.back().operations.push_back(std::move(out));
  }

  const std::string& path_;
  std::string_view text_;
  PaddleProgram program_;
};

}  // namespace

std::string python_line(const std::vector<std::string>& callstack) {
  std::string installed;  // of a package, such as PaddlePaddle itself
  for (auto line = callstack.rbegin(); line != callstack.rend(); ++line) {
    const size_t file = line->find("File \""), end = line->find("\", line ");
    if (file == std::string::npos || end == std::string::npos || end < file + 6) continue;
    const size_t number = end + 8;
    const size_t last = line->find_first_not_of("0123456789", number);
    const std::string found =
        str(line->substr(file + 6, end - file - 6), ":",
            line->substr(number, last == std::string::npos ? last : last - number));
    if (found.find("site-packages/") == std::string::npos) return found;
    if (installed.empty()) installed = found;
  }
  return installed;
}

std::optional<DType> paddle_dtype(int64_t number) {
  static const std::map<int64_t, DType> kTypes = {
      {0, DType::kBool}, {1, DType::kI16},   {2, DType::kI32},  {3, DType::kI64},
      {4, DType::kF16},  {5, DType::kF32},   {6, DType::kF64},  {20, DType::kU8},
      {21, DType::kI8},  {22, DType::kBF16}, {23, DType::kC64}, {24, DType::kC128}};
  const auto found = kTypes.find(number);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> PaddleProgram::parameters() const {
  std::vector<std::string> out;
  for (const auto& [name, variable] : variables)
    if (variable.is_parameter) out.push_back(name);
  return out;
}

bool is_paddle_folder_program(const std::string& path) {
  return path == "__model__" || path.ends_with("/__model__");
}

std::string paddle_program_file(const std::string& path) {
  if (!is_directory(path)) return path;
  const std::string folder = path.ends_with('/') ? path : path + "/";
  if (file_exists(folder + "__model__")) return folder + "__model__";
  std::vector<std::string> programs;
  for (const std::string& name : list_directory(path, ErrorCode::kModel))
    if (name.ends_with(".pdmodel") || name == "inference.json") programs.push_back(folder + name);
  return programs.size() == 1 && is_paddle_program(programs[0]) ? programs[0] : path;
}

bool is_paddle_program(const std::string& path) {
  if (paddle_program_file(path) != path || is_paddle_folder_program(path)) return true;
  if (!path.ends_with(".json")) return path.ends_with(".pdmodel");
  // Models in JSON have the same ending; a program begins with its format.
  if (!file_exists(path) || is_directory(path)) return false;
  return read_beginning(path, 256, ErrorCode::kModel).find("\"base_code\"") != std::string::npos;
}

PaddleProgram read_paddle_program(const std::string& path) {
  const std::string text = read_file(path, kMaxProgramBytes, ErrorCode::kModel);
  return path.ends_with(".json") ? read_pir(text, path) : ProgramReader(path, text).read();
}

}  // namespace paddle::formats
