#include "onnx/graph/value_io.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/files.h"
#include "ops/core/operators.h"
#include "ops/generated/shape.h"
#include "runtime/execute.h"

namespace paddle::onnx {

Values to_values(const std::vector<Array>& arrays) {
  Values out;
  for (const Array& a : arrays) out.emplace_back(Tensor(a));
  return out;
}

bool has_input_files(const std::string& folder) {
  if (!is_directory(folder)) return false;
  for (const std::string& name : list_directory(folder))
    if (name.ends_with(".pb")) return true;
  return false;
}

bool needs_cast(DType given, DType wanted) {
  if (wanted == DType::kBF16) return given == DType::kF32;
  if (info(wanted).has_kernels || is_complex(wanted) || wanted == DType::kString) return false;
  if (is_float(wanted)) return given == DType::kF32;
  return given == (info(wanted).kind == DTypeKind::kSigned ? DType::kI8 : DType::kU8);
}

Array cast_provided(const Array& a, DType wanted, const std::string& what) {
  const DTypeInfo& type = info(wanted);
  if (type.kind == DTypeKind::kSigned || type.kind == DTypeKind::kUnsigned) {
    const bool is_signed = type.kind == DTypeKind::kSigned;
    const int64_t low = is_signed ? -(int64_t{1} << (type.bits - 1)) : 0;
    const int64_t high = (int64_t{1} << (is_signed ? type.bits - 1 : type.bits)) - 1;
    for (int64_t i = 0; i < a.size(); ++i)
      if (const int64_t x = a.integer(i); x < low || x > high)
        fail(ErrorCode::kData, what, ": element ", i, " is ", x, ", expected ", low, " to ", high,
             " for ", text(wanted));
  }
  return runtime::cast_array(a, wanted);
}

namespace {

using formats::NpzReader;
using formats::onnx::ValueType;

Value read_folder_value(const std::string& folder, size_t i, const std::string& name,
                        const ValueType& type) {
  std::string path = str(folder, "/input_", i, ".pb");
  if (!file_exists(path) && name.find('/') == std::string::npos) path = folder + "/" + name + ".pb";
  return file_exists(path) ? Value::of(formats::onnx::read_value(path, type)) : Value();
}

/// An array or strings of an NPZ file.
Value read_npz_tensor(const NpzReader& file, const std::string& name, std::optional<DType> wanted) {
  if (file.header(name).dtype == DType::kString) {
    formats::NpyStrings s = file.read_strings(name);
    return Value::of_strings(std::move(s.shape), std::move(s.items));
  }
  const Array a = file.read(name);
  return Value(Tensor(wanted && needs_cast(a.dtype, *wanted)
                          ? cast_provided(a, *wanted, str("array '", name, "'"))
                          : a));
}

Value read_npz_value(const NpzReader& file, const std::string& name, const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::kSequence: {
      Value::List list;
      for (Value v; type.element; list.push_back(std::move(v)))
        if (v = read_npz_value(file, str(name, ".", list.size()), *type.element); v.is_none())
          break;
      return Value::sequence(std::move(list));
    }
    case ValueType::Kind::kOptional: {
      const Value v = type.element ? read_npz_value(file, name, *type.element) : Value();
      return v.is_none() ? v : Value::optional(v);
    }
    case ValueType::Kind::kMap:
      if (!file.contains(name) || !file.contains(name + ".keys")) return {};
      return Value::map(read_npz_tensor(file, name + ".keys", {}), read_npz_tensor(file, name, {}));
    default:
      return file.contains(name) ? read_npz_tensor(file, name, type.dtype) : Value();
  }
}

}  // namespace

Values read_inputs(const Session& model, const std::string& path) {
  std::optional<NpzReader> file;
  if (!is_directory(path)) file.emplace(path);
  Values out;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const auto& [name, type] = model.inputs()[i];
    out.push_back(file ? read_npz_value(*file, name, type)
                       : read_folder_value(path, i, name, type));
    if (!out.back().is_none() || type.kind == ValueType::Kind::kOptional) continue;
    if (!file)
      fail(ErrorCode::kData, path, ": has no input_", i, ".pb; the model takes '", name, "' ",
           type);
    std::string all;
    for (const auto& input : model.inputs())
      all += (all.empty() ? "'" : ", '") + input.name + "' " + input.type.text();
    fail(ErrorCode::kData, path, ": has no array '", name,
         type.kind == ValueType::Kind::kMap ? "' with '" + name + ".keys" : "",
         "'; the model takes ", all, file->what_it_has(name));
  }
  return out;
}

bool needs_values(const Session& model) {
  const auto other = [](const auto& info) {
    return info.type.kind != ValueType::Kind::kTensor || info.type.dtype == DType::kString;
  };
  return std::any_of(model.inputs().begin(), model.inputs().end(), other) ||
         std::any_of(model.outputs().begin(), model.outputs().end(), other);
}

namespace {

Array plain_array(const Array& a) {
  if (info(a.dtype).has_kernels || is_complex(a.dtype)) return a;
  return runtime::cast_array(a, is_float(a.dtype)                          ? DType::kF32
                                : info(a.dtype).kind == DTypeKind::kSigned ? DType::kI8
                                                                           : DType::kU8);
}

bool same_strings(const Value& a, const Value& b) {
  return a.strings().shape == b.strings().shape && a.strings().items == b.strings().items;
}

bool same_keys(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.kind() == Value::Kind::kStrings) return same_strings(a, b);
  const Array x = a.tensor().array().contiguous(), y = b.tensor().array().contiguous();
  if (x.dtype != y.dtype || x.shape != y.shape) return false;
  return x.size() == 0 ||
         std::memcmp(x.raw(), y.raw(), static_cast<size_t>(storage_bytes(x.dtype, x.size()))) == 0;
}

/// Maps of the same keys to numbers of one type: their values as the rows of one array.
std::optional<Array> rows_of_maps(const Value::List& maps) {
  for (const Value& m : maps)
    if (m.kind() != Value::Kind::kMap || !m.map_values().is_tensor() ||
        m.map_values().dtype() != maps[0].map_values().dtype() ||
        !same_keys(m.keys(), maps[0].keys()))
      return std::nullopt;
  Tensors rows;
  for (const Value& m : maps) rows.push_back(m.map_values().tensor());
  runtime::EagerExecutor eager;
  const InterpreterScope scope(eager);
  return ops::stack(rows, 0).array();
}

void add_outputs(std::vector<NamedOutput>& out, const std::string& name, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      out.push_back({name, plain_array(value.tensor().array())});
      return;
    case Value::Kind::kStrings:
      out.push_back({name, formats::NpyStrings{value.strings().shape, value.strings().items}});
      return;
    case Value::Kind::kMap:
      add_outputs(out, name + ".keys", value.keys());
      add_outputs(out, name, value.map_values());
      return;
    case Value::Kind::kNone:
      return;
    case Value::Kind::kOptional:
      if (!value.elements().empty()) add_outputs(out, name, value.elements()[0]);
      return;
    case Value::Kind::kSequence:
      break;
  }
  const Value::List& list = value.elements();
  if (!list.empty() && list[0].kind() == Value::Kind::kMap)
    if (const auto rows = rows_of_maps(list)) {
      add_outputs(out, name + ".keys", list[0].keys());
      out.push_back({name, *rows});
      return;
    }
  for (size_t i = 0; i < list.size(); ++i) add_outputs(out, str(name, ".", i), list[i]);
}

}  // namespace

std::vector<NamedOutput> named_outputs(const Session& model, const Values& outputs) {
  std::vector<NamedOutput> out;
  for (size_t i = 0; i < outputs.size(); ++i) add_outputs(out, model.outputs()[i].name, outputs[i]);
  return out;
}

void write_outputs(const std::string& path, const std::vector<NamedOutput>& outputs) {
  formats::NpzWriter writer(path);
  for (const auto& [name, content] : outputs)
    std::visit([&, &name = name](const auto& c) { writer.add(name, c); }, content);
  writer.close();
}

formats::NamedArrays plain_arrays(const Session& model, const Values& outputs) {
  formats::NamedArrays out;
  for (const auto& [name, content] : named_outputs(model, outputs)) {
    const auto* array = std::get_if<Array>(&content);
    if (!array)
      fail(ErrorCode::kData, "the output '", name,
           "' holds strings; write the outputs to an .npz file");
    out.emplace_back(name, *array);
  }
  return out;
}

}  // namespace paddle::onnx
