#include "lang/syntax/program.h"

#include <algorithm>
#include <array>

namespace paddle::lang {
namespace {

constexpr std::array<std::string_view, 27> kBuiltins = {"range",
                                                        "enumerate",
                                                        "zip",
                                                        "len",
                                                        "min",
                                                        "max",
                                                        "abs",
                                                        "round",
                                                        "int",
                                                        "float",
                                                        "bool",
                                                        "sum",
                                                        "exp",
                                                        "log",
                                                        "sqrt",
                                                        "floor",
                                                        "ceil",
                                                        "static",
                                                        "finfo",
                                                        "iinfo",
                                                        "param",
                                                        "state",
                                                        "update",
                                                        "get",
                                                        "calculate_gain",
                                                        "sparse_embedding",
                                                        "experts"};

}  // namespace

bool is_builtin(std::string_view name) {
  return std::find(kBuiltins.begin(), kBuiltins.end(), name) != kBuiltins.end();
}

std::span<const std::string_view> builtin_names() { return kBuiltins; }

const Param* Program::find_param(std::string_view wanted) const {
  for (const Param& param : params) {
    if (param.name.text == wanted) return &param;
  }
  return nullptr;
}

bool Program::is_dim(std::string_view wanted) const {
  return std::find(dims.begin(), dims.end(), wanted) != dims.end();
}

const Block* Program::find_block(std::string_view wanted, std::string_view from_file) const {
  const Block* other = nullptr;
  for (const auto& block : blocks) {
    if (block->signature.name != wanted) continue;
    if (block->file == from_file) return block.get();
    other = block.get();
  }
  return other;
}

const EntryPoint* Program::find_entry(std::string_view wanted) const {
  if (wanted.empty() || wanted == "model") return &model;
  for (const EntryPoint& entry : functions) {
    if (entry.name == wanted) return &entry;
  }
  return nullptr;
}

std::pair<std::string, std::string> split_variant(std::string_view argument) {
  const size_t colon = argument.rfind(':');
  if (colon == std::string_view::npos) return {std::string(argument), ""};
  const std::string_view file = argument.substr(0, colon);
  const std::string_view variant = argument.substr(colon + 1);
  const bool known = file.ends_with(".yaml") || file.ends_with(".yml") || file.ends_with(".json");
  if (!known) return {std::string(argument), ""};
  return {std::string(file), std::string(variant)};
}

}  // namespace paddle::lang
