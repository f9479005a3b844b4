#include "formats/paddle_pir.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include <nlohmann/json.hpp>

namespace paddle::formats {
namespace {

using Json = nlohmann::json;

std::optional<DType> dtype_of(std::string_view name) {
  static const std::map<std::string_view, DType> kTypes = {
      {"t_bool", DType::kBool}, {"t_i8", DType::kI8},     {"t_ui8", DType::kU8},
      {"t_i16", DType::kI16},   {"t_i32", DType::kI32},   {"t_i64", DType::kI64},
      {"t_f16", DType::kF16},   {"t_bf16", DType::kBF16}, {"t_f32", DType::kF32},
      {"t_f64", DType::kF64},   {"t_c64", DType::kC64},   {"t_c128", DType::kC128}};
  const auto found = kTypes.find(name);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

/// Names are "1.conv2d": the number of the dialect, 0 for PIR's own.
std::string without_dialect(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

/// A number that JSON does not have.
double special_number(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool negative = name.starts_with('-');
  const double size = name.find("inf") == std::string::npos
                          ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  return negative ? -size : size;
}

struct TooManyBlocks {};

class PirReader {
 public:
  PaddleProgram read(const Json& json) {
    program_.is_pir = true;
    block(json.at("program").at("regions").at(0), 0);
    return std::move(program_);
  }

 private:
  static constexpr size_t kMaxBlocks = 4096;
  static constexpr int kMaxDepth = 32;

  /// Reads the only block of a region; returns its index.
  size_t block(const Json& region, int depth) {
    const size_t index = program_.blocks.size();
    if (index == kMaxBlocks || depth > kMaxDepth) throw TooManyBlocks();
    program_.blocks.emplace_back();
    const Json& json = region.at("blocks").at(0);
    if (const auto arguments = json.find("args"); arguments != json.end())
      for (const Json& argument : *arguments) {
        const std::string name = value_name(argument.at(argument.contains("%") ? "%" : "#"));
        if (argument.contains("TT")) program_.variables[name] = variable_of(argument);
        program_.blocks[index].arguments.push_back(name);
      }
    for (const Json& operation : json.at("ops")) {
      if (operation.at("#") == "p")
        parameter(operation);
      else
        add(operation, index, depth);
    }
    return index;
  }

  static std::string value_name(const Json& id) {
    const auto number = id.get<int64_t>();
    return number == 0 ? "" : str("%", number);
  }

  static PaddleVariable variable_of(const Json& result) {
    PaddleVariable out;
    const Json& type = result.at("TT");
    if (without_dialect(type.at("#")) == "t_vec") out.list_size = type.at("D").size();
    if (without_dialect(type.at("#")) != "t_dtensor") return out;
    out.dtype = dtype_of(without_dialect(type.at("D").at(0).at("#")));
    out.shape = type.at("D").at(1).get<Dims>();
    return out;
  }

  /// A parameter's flags: its name is the last of A, and the first of OA says whether it is stored.
  void parameter(const Json& operation) {
    const Json& result = operation.at("O");
    const auto name = operation.at("A").at(3).get<std::string>();
    PaddleVariable variable = variable_of(result);
    variable.is_parameter = operation.at("OA").at(0).get<int64_t>() != 0;
    program_.variables[name] = std::move(variable);
    names_[value_name(result.at("%"))] = name;
  }

  static void add_values(const Json& value, PaddleAttribute& out) {
    if (value.is_boolean())
      out.integers.push_back(value.get<bool>() ? 1 : 0);
    else if (value.is_number_integer())
      out.integers.push_back(value.get<int64_t>());
    else if (value.is_number())
      out.reals.push_back(value.get<double>());
    else if (value.is_string())
      out.texts.push_back(value.get<std::string>());
    else if (value.is_array())
      for (const Json& each : value) add_values(each, out);
    else if (value.is_object() && value.contains("D"))
      add_values(value.at("D"), out);
    else if (value.is_object() && value.contains("VD"))
      out.reals.push_back(special_number(value.at("VD").get<std::string>()));
  }

  std::string name_of(const Json& value) const {
    const std::string id = value_name(value.at("%"));
    const auto known = names_.find(id);
    return known == names_.end() ? id : known->second;
  }

  void add(const Json& json, size_t block_index, int depth) {
    PaddleOperation out;
    const auto name = json.at("#").get<std::string>();
    out.type = (name.starts_with("0.") ? "builtin." : "") + without_dialect(name);
    for (const Json& attribute : json.at("A"))
      add_values(attribute.at("AT"), out.attributes[attribute.at("N").get<std::string>()]);
    if (const auto stack = out.attributes.find("op_callstack"); stack != out.attributes.end()) {
      out.source = python_line(stack->second.texts);
      out.attributes.erase(stack);
    }
    if (const auto regions = json.find("regions"); regions != json.end())
      for (const Json& region : *regions) out.blocks.push_back(block(region, depth + 1));
    for (const Json& operand : json.at("I")) out.inputs.push_back({"", {name_of(operand)}});
    const auto text = out.attributes.find("name");
    for (const Json& result : json.at("O")) {
      const std::string id = value_name(result.at("%"));
      // An input of the program has a name of its own.
      if (out.type == "data" && text != out.attributes.end() && !text->second.texts.empty())
        names_[id] = text->second.texts[0];
      const std::string made = name_of(result);
      program_.variables[made] = variable_of(result);
      out.outputs.push_back({"", {made}});
    }
    program_.blocks[block_index].operations.push_back(std::move(out));
  }

  PaddleProgram program_;
  std::map<std::string, std::string> names_;  ///< of parameters and inputs, by number
};

}  // namespace

PaddleProgram read_pir(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (json.is_discarded() || json.at("base_code").at("magic") != "pir")
      fail(ErrorCode::kModel, path, ": is not a program of PaddlePaddle");
    return PirReader().read(json);
  } catch (const TooManyBlocks&) {
    fail(ErrorCode::kModel, path, ": has too many blocks, or blocks nested too deeply");
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::kModel, path, ": is not a program of PaddlePaddle");
  }
}

}  // namespace paddle::formats
