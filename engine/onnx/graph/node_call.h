#pragma once
// A node as seen by an operator rule: inputs, attributes and opset version. Rules compute with the
// functions of ops/ under the active interpreter, so that one rule both runs and traces a node.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/graph/value.h"
#include "ops/core/operators.h"

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
  /// Whether the graph uses output i.
  bool has_output(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  bool has_input(size_t i) const { return i < inputs_.size() && !inputs_[i].is_none(); }
  /// kModel if the input is absent.
  const Value& value(size_t i) const;
  const Tensor& tensor(size_t i) const { return value(i).tensor(); }
  /// Undefined if the input is absent.
  Tensor optional_tensor(size_t i) const { return has_input(i) ? tensor(i) : Tensor(); }
  Tensors tensors() const;  ///< all inputs

  // Values of inputs that decide how the operator works. DataDependentError while tracing if they
  // are not constant.
  Array constant_array(size_t i) const;
  std::vector<int64_t> constant_ints(size_t i) const;
  int64_t constant_int(size_t i) const;
  double constant_float(size_t i) const;
  Shape dims_operand(size_t i) const;  ///< may be symbolic

  // Attributes with their defaults.
  const Attribute* find(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  int64_t int_attr(std::string_view name, int64_t default_value) const;
  bool bool_attr(std::string_view name, bool default_value) const {
    return int_attr(name, default_value) != 0;
  }
  double float_attr(std::string_view name, double default_value) const;
  std::string string_attr(std::string_view name, const std::string& default_value) const;
  std::vector<int64_t> ints_attr(std::string_view name,
                                 std::vector<int64_t> default_value = {}) const;
  std::vector<double> floats_attr(std::string_view name,
                                  std::vector<double> default_value = {}) const;
  std::vector<std::string> strings_attr(std::string_view name) const;
  const formats::onnx::Graph& graph_attr(std::string_view name) const;
  /// An attribute that holds a TensorProto.DataType.
  DType dtype_attr(std::string_view name, DType default_value) const;

  /// Axes from input i (newer opsets) or the attribute (older ones).
  std::optional<std::vector<int64_t>> axes(size_t i, std::string_view name = "axes") const;
  /// Normalizes a negative axis; kModel if it is out of range.
  int64_t axis(int64_t axis, int64_t rank) const;

  /// kModel if the dtypes of the present inputs among these differ.
  void check_same_dtype(std::initializer_list<size_t> inputs) const;

  template <class... Parts>
  [[noreturn, gnu::always_inline]] void reject(const Parts&... parts) const {
    fail(ErrorCode::kModel, parts...);
  }
  template <class... Parts>
  [[gnu::always_inline]] void check(bool condition, const Parts&... parts) const {
    if (!condition) reject(parts...);
  }

 private:
  const Node& node_;
  int64_t opset_;
  const Values& inputs_;
  Evaluator& evaluator_;
  const Scope& scope_;
};

using Rule = Values (*)(NodeCall&);

/// An operator implementation, valid from an opset version on.
struct Operator {
  std::string_view name;
  int64_t since;
  Rule rule;
};

}  // namespace paddle::onnx
