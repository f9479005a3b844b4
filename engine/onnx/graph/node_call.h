#pragma once
// One node of a graph as an operator's rule sees it: its inputs, attributes and opset version.
// Rules give the node's outputs, computed with the functions of ops/ under whatever interpreter is
// installed, so the same rule runs the node and traces it.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/graph/value.h"
#include "ops/operators.h"

namespace paddle::onnx {

class Evaluator;
struct Scope;

class NodeCall {
 public:
  using Node = formats::onnx::Node;
  using Attribute = formats::onnx::Attribute;

  NodeCall(const Node& node, int64_t opset, const Values& inputs, Evaluator& evaluator,
           const Scope& scope)
      : node_(node), opset_(opset), inputs_(inputs), evaluator_(evaluator), scope_(scope) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }
  Evaluator& evaluator() const { return evaluator_; }
  const Scope& scope() const { return scope_; }

  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  /// Whether the graph reads output i.
  bool has_output(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  bool has_input(size_t i) const { return i < inputs_.size() && !inputs_[i].is_none(); }
  /// kModel if it is absent.
  const Value& value(size_t i) const;
  const Tensor& tensor(size_t i) const { return value(i).tensor(); }
  /// An undefined tensor if it is absent.
  Tensor optional_tensor(size_t i) const { return has_input(i) ? tensor(i) : Tensor(); }
  Tensors tensors() const;  ///< all inputs

  // Contents of inputs that the operator must know; DataDependentError while tracing if they are
  // not.
  Array constant_array(size_t i) const;
  std::vector<int64_t> constant_ints(size_t i) const;
  int64_t constant_int(size_t i) const;
  double constant_float(size_t i) const;
  Shape dims_operand(size_t i) const;  ///< may hold symbols

  // Attributes, with what stands for an absent one.
  const Attribute* find(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  int64_t int_attr(std::string_view name, int64_t otherwise) const;
  bool bool_attr(std::string_view name, bool otherwise) const {
    return int_attr(name, otherwise) != 0;
  }
  double float_attr(std::string_view name, double otherwise) const;
  std::string string_attr(std::string_view name, const std::string& otherwise) const;
  std::vector<int64_t> ints_attr(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> floats_attr(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> strings_attr(std::string_view name) const;
  const formats::onnx::Graph& graph_attr(std::string_view name) const;
  /// The dtype whose number an attribute holds.
  DType dtype_attr(std::string_view name, DType otherwise) const;

  /// Axes from input i (newer opsets) or the attribute (older ones); nullopt if neither is there.
  std::optional<std::vector<int64_t>> axes(size_t i, std::string_view name = "axes") const;
  /// Counted from 0; kModel if it is out of range.
  int64_t axis(int64_t axis, int64_t rank) const;

  /// kModel if two of these inputs are there and of different element types.
  void check_same_dtype(std::initializer_list<size_t> inputs) const;

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorCode::kModel, parts...);
  }
  template <class... Parts>
  void check(bool condition, const Parts&... parts) const {
    if (!condition) refuse(parts...);
  }

 private:
  const Node& node_;
  int64_t opset_;
  const Values& inputs_;
  Evaluator& evaluator_;
  const Scope& scope_;
};

using Rule = Values (*)(NodeCall&);

/// One operator from an opset version on.
struct Operator {
  std::string_view name;
  int64_t since;
  Rule rule;
};

}  // namespace paddle::onnx
