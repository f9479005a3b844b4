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
  bool wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  bool has(size_t i) const { return i < inputs_.size() && !inputs_[i].is_none(); }
  /// kModel if it is absent.
  const Value& value(size_t i) const;
  const Tensor& tensor(size_t i) const { return value(i).tensor(); }
  /// An undefined tensor if it is absent.
  Tensor tensor_or_none(size_t i) const { return has(i) ? tensor(i) : Tensor(); }
  Tensors tensors() const;  ///< all inputs

  // Contents of inputs that the operator must know; NeedsValue while tracing if they are not.
  Array known(size_t i) const;
  std::vector<int64_t> known_integers(size_t i) const;
  int64_t known_integer(size_t i) const;
  double known_number(size_t i) const;
  Shape known_dims(size_t i) const;  ///< may hold symbols
  std::string known_string(size_t i) const;

  // Attributes, with what stands for an absent one.
  const Attribute* find(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise) const { return integer(name, otherwise) != 0; }
  double real(std::string_view name, double otherwise) const;
  std::string word(std::string_view name, const std::string& otherwise) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> reals(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> words(std::string_view name) const;
  const formats::onnx::Graph& graph(std::string_view name) const;
  /// The dtype whose number an attribute holds.
  DType dtype(std::string_view name, DType otherwise) const;

  /// Axes from input i (newer opsets) or the attribute (older ones); nullopt if neither is there.
  std::optional<std::vector<int64_t>> axes(size_t i, std::string_view name = "axes") const;
  /// Counted from 0; kModel if it is out of range.
  int64_t axis(int64_t axis, int64_t rank) const;

  /// kModel if two of these inputs are there and of different element types.
  void same_types(std::initializer_list<size_t> inputs) const;

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
