#pragma once
// The schemas of ONNX's operators as data: operands, results, type constraints and attributes of
// each version from opset 13 on.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace paddle::onnx {

/// A set of types: a bit for a tensor of each DType, then one for a sequence of such tensors, then
/// one for everything else (optionals, maps).
using TypeSet = uint64_t;

constexpr TypeSet tensor_type(DType dtype) { return TypeSet{1} << static_cast<int>(dtype); }
constexpr TypeSet sequence_type(DType dtype) {
  return TypeSet{1} << (kDTypeCount + static_cast<int>(dtype));
}
inline constexpr TypeSet kOtherType = TypeSet{1} << (2 * kDTypeCount);
/// "tensor(float32)", "tensor(float16) or tensor(float32)".
std::string text_of_types(TypeSet types);

struct FormalParameter {
  std::string_view variable;  ///< of a type constraint; "" where `types` are the allowed ones
  TypeSet types = 0;
  bool optional = false;
  bool variadic = false;       ///< stands for all that follow
  bool heterogeneous = false;  ///< variadic, of different types
};

struct FormalAttribute {
  std::string_view name;
  char kind = 0;  ///< f, i, s, t(ensor), g(raph), p (sparse), y (type); F, I, S, T, G for lists
  bool required = false;
};

struct OperatorSchema {
  std::string_view name;
  int64_t since = 0;
  size_t least_inputs = 0, least_outputs = 0;
  bool deprecated = false;
  std::vector<FormalParameter> inputs, outputs;
  std::map<std::string_view, TypeSet> types;  ///< by variable
  std::vector<FormalAttribute> attributes;
};

/// The versions of an operator of the default domain in ascending order, from the newest of opset
/// 13 on; empty if there is none.
std::span<const OperatorSchema> schemas_of(std::string_view name);
/// The one that holds at an opset; null if there is none.
const OperatorSchema* find_schema(std::string_view name, int64_t opset);

/// The table in its text form (schema_table.cc).
std::span<const std::string_view> schema_lines();
int64_t newest_schema_opset();

}  // namespace paddle::onnx
