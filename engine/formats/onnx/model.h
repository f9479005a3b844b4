#pragma once
// ONNX models as plain data: graphs of nodes with attributes, initializers and types, read from
// untrusted files. Tensor payloads stay in the mapped file (or in the external files that it names)
// and are copied only if misaligned. The meaning of operators is defined in onnx/.
// Format: https://onnx.ai/onnx/repo-docs/IR.html

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::formats::onnx {

/// A tensor of a file: an array, or strings with a shape.
struct TensorData {
  std::string name;
  DType dtype = DType::kF32;
  Dims shape;
  Array array;                       ///< unless dtype is kString
  std::vector<std::string> strings;  ///< if dtype is kString
};

/// A sparse tensor: `values` at `indices` (flat, or one row of coordinates each), 0 elsewhere.
struct SparseData {
  TensorData values, indices;
  Dims shape;
};

/// The declared type of a value.
struct ValueType {
  enum class Kind : uint8_t { kUnknown, kTensor, kSequence, kOptional, kMap, kSparse };
  Kind kind = Kind::kUnknown;
  std::optional<DType> dtype;          ///< of tensors
  std::optional<Shape> shape;          ///< nullopt: unknown rank
  std::shared_ptr<ValueType> element;  ///< of sequences and optionals
  std::string text() const;            ///< "float32[batch, 3]", "sequence of float32[...]"
};

struct ValueInfo {
  std::string name;
  ValueType type;
};

struct Graph;

enum class AttributeKind : uint8_t {
  kUndefined,
  kFloat,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kTensors,
  kGraphs,
  kSparseTensor,
  kSparseTensors,
  kType,
  kTypes
};

struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::kUndefined;
  /// Inside a function: the attribute of the function to take the value from.
  std::string reference;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<TensorData> tensors;             ///< one for kTensor
  std::vector<std::shared_ptr<Graph>> graphs;  ///< one for kGraph
  std::shared_ptr<SparseData> sparse;
  ValueType type;
};

struct Node {
  std::string name, op_type, domain, overload;
  std::string source;  ///< where the model's text has it; written as metadata, not read
  std::vector<std::string> inputs, outputs;  ///< "" for absent optional inputs and outputs
  std::vector<Attribute> attributes;
  const Attribute* find(std::string_view attribute) const;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorData> initializers;
  std::vector<std::pair<std::string, SparseData>> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs, values;
};

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::map<std::string, int64_t> opsets;
};

struct Model {
  std::string path, producer;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  ///< version by domain; "" is the default domain
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< written, not read
};

/// Reads and checks a model file; kModel if it is invalid.
Model read_model(const std::string& path);

/// Converts a dim's name to a symbol: exporters write expressions and spaces.
std::string symbol_of(const std::string& name);

/// A value outside of a graph: a tensor, a sequence or an optional.
struct ValueData {
  ValueType::Kind kind = ValueType::Kind::kTensor;
  TensorData tensor;
  std::vector<ValueData> elements;  ///< of a sequence; one or none of an optional
};
/// Reads a `.pb` file with a value of the kind of `type`.
ValueData read_value(const std::string& path, const ValueType& type);

/// The dtype for a TensorProto.DataType; nullopt if it is unknown.
std::optional<DType> dtype_of_number(int64_t number);
/// The TensorProto.DataType of a dtype.
int64_t number_of_dtype(DType dtype);

}  // namespace paddle::formats::onnx
