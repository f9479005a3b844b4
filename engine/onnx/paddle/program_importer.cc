#include "onnx/paddle/program_importer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <unordered_map>

#include "base/files.h"
#include "onnx/validity/validity.h"

namespace paddle::onnx {

using formats::PaddleAttribute;
using formats::PaddleOperation;
using formats::PaddleVariable;
using formats::onnx::Node;
using formats::onnx::TensorData;
using formats::onnx::ValueInfo;
using formats::onnx::ValueType;

namespace {

const std::unordered_map<std::string_view, ImportRule>& rules() {
  static const auto all = [] {
    std::unordered_map<std::string_view, ImportRule> out;
    for (const auto table : {paddle_math_rules, paddle_shape_rules, paddle_network_rules})
      for (const ImportRuleEntry& entry : table())
        for (const char* name : entry.names) out[name] = entry.rule;
    return out;
  }();
  return all;
}

bool is_input(const PaddleOperation& operation) {
  return operation.type == "feed" || operation.type == "data";
}

std::vector<int64_t> integers_of(const Array& array) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < array.size(); ++i)
    out.push_back(is_integer(array.dtype) ? array.integer(i)
                                          : static_cast<int64_t>(array.number(i)));
  return out;
}

ValueInfo info_of(const std::string& name, DType dtype) {
  ValueInfo out;
  out.name = name;
  out.type.kind = ValueType::Kind::kTensor;
  out.type.dtype = dtype;
  return out;
}

}  // namespace

ProgramImporter::ProgramImporter(formats::PaddleProgram program, const std::string& path,
                                 int64_t opset)
    : program_(std::move(program)), path_(path) {
  model_.path = path;
  model_.producer = "PaddlePaddle";
  model_.ir_version = ir_version_of(opset);
  model_.opsets = {{"", opset}};
  model_.graph.name = std::filesystem::path(path).stem().string();
}

// --- the operation at hand ---

const ImportNames* ProgramImporter::slot_of(const Slots& slots, const char* slot,
                                            size_t position) const {
  if (is_pir()) return position < slots.size() ? &slots[position].second : nullptr;
  for (const auto& [name, values] : slots)
    if (name == slot) return &values;
  return nullptr;
}

std::string ProgramImporter::value(const std::string& name) {
  if (name.empty()) return "";
  const auto known = names_.find(name);
  if (known == names_.end())
    fail(ErrorCode::kModel, path_, ": the operation ", operation_->type, " reads '", name,
         "', which nothing computes before it");
  return known->second;
}

std::string ProgramImporter::in(const char* slot, size_t position) {
  const ImportNames* names = slot_of(operation_->inputs, slot, position);
  return names && !names->empty() ? value(names->front()) : "";
}

ImportNames ProgramImporter::in_list(const char* slot, size_t position) {
  const ImportNames* names = slot_of(operation_->inputs, slot, position);
  ImportNames out;
  if (!names) return out;
  for (const std::string& name : *names) {
    const auto list = lists_.find(name);
    if (list != lists_.end())
      out.insert(out.end(), list->second.begin(), list->second.end());
    else if (!name.empty())
      out.push_back(value(name));
  }
  return out;
}

const PaddleVariable& ProgramImporter::variable(const std::string& name) const {
  static const PaddleVariable unknown;
  const auto found = program_.variables.find(name);
  return found == program_.variables.end() ? unknown : found->second;
}

const PaddleVariable& ProgramImporter::type(const char* slot, size_t position) const {
  const ImportNames* names = slot_of(operation_->inputs, slot, position);
  return variable(names && !names->empty() ? names->front() : "");
}

int64_t ProgramImporter::rank(const char* slot, size_t position) const {
  return static_cast<int64_t>(type(slot, position).shape.size());
}

DType ProgramImporter::dtype(const char* slot, size_t position) const {
  const auto out = type(slot, position).dtype;
  if (!out) reject("an operand has an unknown type");
  return *out;
}

const PaddleVariable& ProgramImporter::result_type(const char* slot, size_t position) const {
  const ImportNames* names = slot_of(operation_->outputs, slot, position);
  return variable(names && !names->empty() ? names->front() : "");
}

const PaddleAttribute* ProgramImporter::attribute(Keys keys) const {
  for (const char* key : keys) {
    const auto found = operation_->attributes.find(key);
    if (found != operation_->attributes.end()) return &found->second;
  }
  return nullptr;
}

std::vector<int64_t> ProgramImporter::ints(Keys keys) const {
  const PaddleAttribute* found = attribute(keys);
  return found ? found->integers : std::vector<int64_t>{};
}

int64_t ProgramImporter::integer(Keys keys, int64_t fallback) const {
  const PaddleAttribute* found = attribute(keys);
  return found && !found->integers.empty() ? found->integers[0] : fallback;
}

double ProgramImporter::real(Keys keys, double fallback) const {
  const PaddleAttribute* found = attribute(keys);
  if (!found) return fallback;
  if (!found->reals.empty()) return found->reals[0];
  return found->integers.empty() ? fallback : static_cast<double>(found->integers[0]);
}

std::string ProgramImporter::text(Keys keys, const std::string& fallback) const {
  const PaddleAttribute* found = attribute(keys);
  return found && !found->texts.empty() ? found->texts[0] : fallback;
}

std::optional<DType> ProgramImporter::dtype_attr(Keys keys) const {
  const PaddleAttribute* found = attribute(keys);
  if (!found) return std::nullopt;
  if (!found->integers.empty()) return formats::paddle_dtype(found->integers[0]);
  if (found->texts.empty()) return std::nullopt;
  try {
    return parse_dtype(found->texts[0]);
  } catch (const Error&) {
    return std::nullopt;  // "undefined"
  }
}

std::optional<std::vector<int64_t>> ProgramImporter::known_ints(const char* slot, size_t position,
                                                                Keys keys) {
  const ImportNames values = in_list(slot, position);
  if (values.empty()) return ints(keys);
  std::vector<int64_t> out;
  for (const std::string& name : values) {
    const auto known = constants_.find(name);
    if (known == constants_.end()) return std::nullopt;
    const std::vector<int64_t> numbers = integers_of(known->second);
    out.insert(out.end(), numbers.begin(), numbers.end());
  }
  return out;
}

std::string ProgramImporter::int_values(const char* slot, const char* list_slot, size_t position,
                                        Keys keys) {
  const std::string one = constant_ints({-1});
  for (const char* each : {slot, list_slot}) {
    const ImportNames values = in_list(each, position);
    if (values.empty()) continue;
    ImportNames parts;
    for (const std::string& name : values) {
      const auto known = constants_.find(name);
      parts.push_back(known != constants_.end() ? constant_ints(integers_of(known->second))
                                                : add("Reshape", {cast(name, DType::kI64), one}));
    }
    return parts.size() == 1 ? parts[0] : add("Concat", parts, {int_attribute("axis", 0)});
  }
  return constant_ints(ints(keys));
}

std::optional<Array> ProgramImporter::known_value(const char* slot, size_t position) {
  const auto known = constants_.find(in(slot, position));
  return known == constants_.end() ? std::nullopt : std::optional(known->second);
}

bool ProgramImporter::only_read_by(const char* slot, size_t position,
                                   const std::string& type) const {
  const ImportNames* names = slot_of(operation_->outputs, slot, position);
  if (!names || names->empty()) return true;
  for (const PaddleOperation& reader : program_.operations)
    for (const auto& [_, values] : reader.inputs)
      if (reader.type != type && std::ranges::count(values, names->front()) > 0) return false;
  return true;
}

std::optional<Array> ProgramImporter::numbers(Keys keys, DType dtype) const {
  const PaddleAttribute* found = attribute(keys);
  if (!found) return std::nullopt;
  const auto count = static_cast<int64_t>(found->integers.size());
  if (found->reals.empty()) return Array::from<int64_t>(found->integers, {count}).cast(dtype);
  if (count > 0) reject("its numbers are of two kinds");
  return Array::from<double>(found->reals, {static_cast<int64_t>(found->reals.size())}).cast(dtype);
}

double ProgramImporter::known_number(const char* slot, size_t position, Keys keys,
                                     double fallback) {
  const std::string name = in(slot, position);
  if (name.empty()) return real(keys, fallback);
  const auto known = constants_.find(name);
  if (known == constants_.end() || known->second.size() != 1)
    reject("a number that it takes is only known when the program runs");
  return known->second.number(0);
}

bool ProgramImporter::is_made_by(const std::string& name, const std::string& type) const {
  return std::ranges::any_of(model_.graph.nodes, [&](const Node& node) {
    return node.op_type == type && node.outputs.at(0) == name;
  });
}

void ProgramImporter::reject(const std::string& why) const {
  fail(ErrorCode::kConfig, operation_->type, ": ", why);
}

// --- the graph ---

std::string ProgramImporter::fresh(const std::string& hint) {
  if (used_.insert(hint).second) return hint;
  for (int64_t i = 1;; ++i)
    if (std::string name = str(hint, "_", i); used_.insert(name).second) return name;
}

ImportNames ProgramImporter::add_several(const std::string& type, ImportNames inputs,
                                         size_t outputs, ImportAttributes attributes) {
  Node node;
  node.op_type = type;
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  const std::string hint = operation_ ? operation_->type : type;
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(fresh(hint + "_out"));
  node.name = fresh(hint);
  model_.graph.nodes.push_back(node);
  return node.outputs;
}

std::string ProgramImporter::add(const std::string& type, ImportNames inputs,
                                 ImportAttributes attributes) {
  return add_several(type, std::move(inputs), 1, std::move(attributes))[0];
}

std::string ProgramImporter::constant(const Array& array) {
  TensorData tensor;
  tensor.name = fresh("constant");
  tensor.dtype = array.dtype;
  tensor.shape = array.shape;
  tensor.array = array;
  constants_[tensor.name] = array;
  model_.graph.initializers.push_back(std::move(tensor));
  return model_.graph.initializers.back().name;
}

std::string ProgramImporter::constant_ints(const std::vector<int64_t>& values) {
  return constant(Array::from<int64_t>(values, {static_cast<int64_t>(values.size())}));
}

std::string ProgramImporter::scalar(double value, DType dtype) {
  return constant(Array::scalar(value).cast(dtype));
}

std::string ProgramImporter::scalar(Keys keys, double fallback, DType dtype) {
  const auto values = numbers(keys, dtype);
  if (!values || values->size() == 0) return scalar(fallback, dtype);
  Array first = *values;
  first.shape.clear();
  first.strides.clear();
  return constant(first);
}

std::string ProgramImporter::without_axes(const std::string& name) {
  return add("Reshape", {name, constant_ints({})});
}

std::string ProgramImporter::cast(const std::string& name, DType to) {
  return add("Cast", {name}, {int_attribute("to", formats::onnx::number_of_dtype(to))});
}

std::string ProgramImporter::transposed(const std::string& name, int64_t rank) {
  if (rank < 2) return name;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(rank - 1)], order[static_cast<size_t>(rank - 2)]);
  return add("Transpose", {name}, {ints_attribute("perm", order)});
}

void ProgramImporter::result(const char* slot, size_t position, const std::string& name) {
  const ImportNames* names = slot_of(operation_->outputs, slot, position);
  if (names && !names->empty()) names_[names->front()] = name;
}

void ProgramImporter::result_list(const char* slot, size_t position, const ImportNames& made) {
  const ImportNames* names = slot_of(operation_->outputs, slot, position);
  if (!names || names->empty()) return;
  if (is_pir()) {
    lists_[names->front()] = made;
    return;
  }
  for (size_t i = 0; i < std::min(names->size(), made.size()); ++i) names_[(*names)[i]] = made[i];
}

size_t ProgramImporter::result_count(const char* slot) const {
  const ImportNames* names = slot_of(operation_->outputs, slot, 0);
  return names ? names->size() : 0;
}

// --- the program ---

void ProgramImporter::add_parameter(const std::string& name, const formats::PaddleParams& file,
                                    size_t index) {
  const formats::PaddleParameter& stored = file.parameters().at(index);
  PaddleVariable& declared = program_.variables.at(name);
  // Weights of quantized programs are int8 in the file and declared as floats, their scales are 0-D
  // and declared as [1]: as in PaddlePaddle the file counts.
  const bool is_quantized = declared.dtype && is_float(*declared.dtype) && is_integer(stored.dtype);
  if ((declared.dtype != stored.dtype && !is_quantized) ||
      element_count(std::span<const int64_t>(declared.shape)) !=
          element_count(std::span<const int64_t>(stored.shape)))
    fail(ErrorCode::kModel, file.path(), ": '", name, "' is ", paddle::text(stored.dtype),
         str(stored.shape), ", ", path_, " needs ",
         declared.dtype ? paddle::text(*declared.dtype) : "another type", str(declared.shape));
  declared.shape = stored.shape;
  declared.dtype = stored.dtype;
  TensorData tensor;
  tensor.name = names_[name] = fresh(name);
  tensor.dtype = stored.dtype;
  tensor.shape = stored.shape;
  tensor.array = file.read(index);
  constants_[tensor.name] = tensor.array;
  model_.graph.initializers.push_back(std::move(tensor));
}

void ProgramImporter::add_parameters() {
  const std::vector<std::string> wanted = program_.parameters();
  if (wanted.empty()) return;
  size_t next = 0;
  const std::vector<std::string> paths = formats::paddle_parameter_files(path_);
  for (const std::string& path : paths) {
    const formats::PaddleParams file(path);
    const size_t expected = paths.size() == 1 ? wanted.size() : 1;
    if (file.parameters().size() != expected || next + expected > wanted.size())
      fail(ErrorCode::kModel, path, ": has ", file.parameters().size(), " parameters, ", path_,
           " needs ", expected);
    for (size_t i = 0; i < expected; ++i) add_parameter(wanted[next++], file, i);
  }
}

void ProgramImporter::add_inputs() {
  std::multimap<int64_t, const PaddleOperation*> fed;  // by place
  for (const PaddleOperation& operation : program_.operations) {
    if (!is_input(operation) || operation.outputs.empty() || operation.outputs[0].second.empty())
      continue;
    operation_ = &operation;
    fed.emplace(integer({"col"}, static_cast<int64_t>(fed.size())), &operation);
  }
  operation_ = nullptr;
  for (const auto& [column, input] : fed) {
    const PaddleOperation& operation = *input;
    const std::string& name = operation.outputs[0].second[0];
    const PaddleVariable& declared = variable(name);
    if (!declared.dtype) fail(ErrorCode::kModel, path_, ": the input '", name, "' has no type");
    ValueInfo info = info_of(fresh(name), *declared.dtype);
    Shape shape;
    for (size_t i = 0; i < declared.shape.size(); ++i)
      shape.push_back(declared.shape[i] >= 0 ? Dim(declared.shape[i])
                      : i == 0               ? Dim::symbol("batch")
                               : Dim::symbol(formats::onnx::symbol_of(str(name, "_", i))));
    info.type.shape = std::move(shape);
    names_[name] = info.name;
    model_.graph.inputs.push_back(std::move(info));
  }
}

void ProgramImporter::import_operations() {
  std::vector<std::string> rejected;
  std::map<std::string, int> unknown;
  for (const PaddleOperation& operation : program_.operations) {
    if (is_input(operation) || operation.type == "fetch") continue;
    const auto rule = rules().find(operation.type);
    if (rule == rules().end()) {
      ++unknown[operation.type];
      continue;
    }
    // Results of unknown operations do not exist for those that read them.
    if (!unknown.empty() || !rejected.empty()) continue;
    operation_ = &operation;
    try {
      rule->second(*this);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kConfig) throw;
      rejected.push_back(error.message());
    }
  }
  operation_ = nullptr;
  if (unknown.empty() && rejected.empty()) return;
  for (const auto& [type, count] : unknown)
    rejected.push_back(
        str(type, ": there is no operation for it", count > 1 ? str(" (", count, " times)") : ""));
  Error error(
      ErrorCode::kConfig,
      str(path_, ": ", rejected.size(),
          rejected.size() == 1 ? " operation cannot" : " operations cannot", " be imported"));
  for (const std::string& each : rejected) error.note(each);
  throw error;
}

void ProgramImporter::add_outputs(bool with_shapes) {
  std::map<int64_t, const PaddleOperation*> fetched;
  for (const PaddleOperation& operation : program_.operations) {
    if (operation.type != "fetch") continue;
    operation_ = &operation;
    fetched[integer({"col"}, static_cast<int64_t>(fetched.size()))] = &operation;
  }
  for (const auto& [column, operation] : fetched) {
    operation_ = operation;
    if (operation->inputs.empty() || operation->inputs[0].second.empty())
      fail(ErrorCode::kModel, path_, ": an output has no value");
    const PaddleVariable& declared = type("X", 0);
    if (!declared.dtype) fail(ErrorCode::kModel, path_, ": an output has no type");
    const std::string wanted =
        is_pir() ? text({"name"}, str("output_", column)) : operation->inputs.at(0).second.at(0);
    Node node;
    node.op_type = "Identity";
    node.inputs = {in("X", 0)};
    node.outputs = {fresh(wanted)};
    node.name = fresh("fetch");
    model_.graph.outputs.push_back(info_of(node.outputs[0], *declared.dtype));
    if (with_shapes) {
      // Sizes in programs of older versions are not always those of the values.
      Shape shape;
      for (const int64_t size : declared.shape)
        shape.push_back(is_pir() && size >= 0 ? Dim(size) : Dim::unknown());
      model_.graph.outputs.back().type.shape = std::move(shape);
    }
    model_.graph.nodes.push_back(std::move(node));
  }
  operation_ = nullptr;
  if (fetched.empty()) fail(ErrorCode::kModel, path_, ": the program has no outputs");
}

formats::onnx::Model ProgramImporter::run(bool for_file) {
  for_file_ = for_file;
  add_inputs();
  add_parameters();
  import_operations();
  add_outputs(for_file);
  return std::move(model_);
}

}  // namespace paddle::onnx
