#pragma once
// ONNX models as plain data: graphs of nodes with their attributes, initialisers and types, read
// from a file without trusting it. Payloads of tensors lie where they are in the mapped file (or
// in the external files that it names) and are copied only where they are misaligned. What the
// operators mean is not known here; see onnx/.
// Format: https://onnx.ai/onnx/repo-docs/IR.html

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::formats::onnx {

/// A tensor as a file gives it: an array, or strings with a shape.
struct TensorData {
  std::string name;
  DType dtype = DType::kF32;
  Dims shape;
  Array array;                       ///< unless dtype is kString
  std::vector<std::string> strings;  ///< if it is
};

/// A tensor that holds `values` at `indices` (flat ones, or a row of coordinates each) and else 0.
struct SparseData {
  TensorData values, indices;
  Dims shape;
};

/// The type that a graph declares for a value.
struct ValueType {
  enum class Kind : uint8_t { kUnknown, kTensor, kSequence, kOptional, kMap, kSparse };
  Kind kind = Kind::kUnknown;
  std::optional<DType> dtype;          ///< of tensors
  std::optional<Shape> shape;          ///< absent: not even the rank is known
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
  std::string reference;  ///< inside a function: the function's attribute that gives the value
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
  std::vector<std::string> inputs, outputs;  ///< "" where an optional one is absent
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
  std::map<std::string, int64_t> opsets;  ///< version by domain; "" is ONNX's own
  Graph graph;
  std::vector<Function> functions;
};

/// Reads and checks a model file; kModel with one line if it is none.
Model read_model(const std::string& path);

/// The symbol of ours for a dim's name in a file: exporters write expressions and spaces.
std::string symbol_of(const std::string& name);

/// A value on its own: a tensor, a sequence of values, or an optional one.
struct ValueData {
  ValueType::Kind kind = ValueType::Kind::kTensor;
  TensorData tensor;
  std::vector<ValueData> elements;  ///< of a sequence; one or none of an optional
};
/// Reads a `.pb` file that holds a value of the kind of `type`.
ValueData read_value(const std::string& path, const ValueType& type);

/// The dtype with a number of ONNX's table; nullopt if there is none.
std::optional<DType> dtype_of_number(int64_t number);
/// The number of a dtype in ONNX's table.
int64_t number_of_dtype(DType dtype);

}  // namespace paddle::formats::onnx
