#pragma once
// An operation of a program as its rule sees it: operands and attributes by the names that the
// table gives them. Functions of the table compute with the functions of ops/ under the active
// interpreter, so that one function both runs and traces an operation.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/graph/node_call.h"
#include "onnx/ops/helpers.h"
#include "ops/core/call.h"
#include "paddle_program/rule_table.h"

namespace paddle::paddle_program {

using onnx::DataDependentError;
using onnx::NodeCall;
using onnx::Value;
using onnx::Values;
using Axes = std::vector<int64_t>;

/// The domain of nodes that are operations of programs. Such a node's op_type is the name in the
/// program; its attributes are the arguments of the rule (argument_attribute), the place of each
/// input (kOperands: indices of arguments) and the index of the rule (kRule).
inline constexpr const char* kProgramDomain = "paddle";
inline constexpr const char* kOperands = ".operands";
inline constexpr const char* kRule = ".rule";
/// Set for programs that a version before PaddlePaddle 3 wrote.
inline constexpr const char* kBeforeVersion3 = ".before_version_3";
/// Set where only dequantize_linear reads a quantized value.
inline constexpr const char* kAsInt8 = ".int8";

/// An attribute of a program for a node, and back.
formats::onnx::Attribute argument_attribute(const std::string& name,
                                            const formats::PaddleAttribute& value);
formats::PaddleAttribute argument_of(const formats::onnx::Attribute& attribute);

class ProgramCall {
 public:
  explicit ProgramCall(NodeCall& node);

  const ProgramRule& rule() const { return *form_->rule; }
  NodeCall& node() const { return node_; }
  bool is_named(std::string_view name) const { return node_.node().op_type == name; }

  // Operands.
  bool has(std::string_view name) const { return !positions(name).empty(); }
  const Value& value(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const { return value(name).tensor(); }
  Tensor optional_tensor(std::string_view name) const {
    return has(name) ? tensor(name) : Tensor();
  }
  Tensors list(std::string_view name) const;
  Values values(std::string_view name) const;

  // Attributes, and operands that stand for one, with the defaults of the table. DataDependentError
  // while tracing if an operand's value depends on the data.
  bool is_given(std::string_view name) const;  ///< an operand, an attribute or a default
  Shape dims(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::vector<double> reals(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  std::string text(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  /// A number as a 0-D tensor of `dtype`, with all its bits; an operand may have any value.
  Tensor number(std::string_view name, DType dtype) const;
  /// The numbers of an attribute, [n], with all their bits.
  Array numbers(std::string_view name, DType dtype) const;
  /// Nullptr if the attribute is not given and has no default.
  const formats::PaddleAttribute* attribute(std::string_view name) const;

  template <class... Parts>
  [[noreturn, gnu::always_inline]] void reject(const Parts&... parts) const {
    node_.reject(parts...);
  }
  template <class... Parts>
  [[gnu::always_inline]] void check(bool condition, const Parts&... parts) const {
    node_.check(condition, parts...);
  }

 private:
  std::vector<size_t> positions(std::string_view name) const;

  /// The node's rule and attributes, which are the same in each call.
  struct Form {
    const ProgramRule* rule = nullptr;
    std::vector<int64_t> operands;  ///< for each input, the index of its argument
    std::map<std::string, formats::PaddleAttribute, std::less<>> attributes;
  };
  static Form form_of(const NodeCall& node);

  NodeCall& node_;
  std::shared_ptr<const Form> form_;
};

using ProgramFunction = Values (*)(ProgramCall&);
/// A function of the table; null if there is none of this name.
ProgramFunction find_program_function(std::string_view name);

using ProgramFunctions = std::vector<std::pair<std::string_view, ProgramFunction>>;
ProgramFunctions program_math_functions();
ProgramFunctions program_shape_functions();
ProgramFunctions program_network_functions();
ProgramFunctions program_control_functions();
ProgramFunctions program_detection_functions();
ProgramFunctions program_sequence_functions();
ProgramFunctions program_fused_functions();

/// The operand, with y of an elementwise operation placed at the axis of x that it begins at.
Tensor placed_operand(const ProgramCall& call, std::string_view name);
/// The product of x and y as matrices, their first `x_axes` and `y_axes` axes taken as one each.
Tensor flat_product(const ProgramCall& call, const Tensor& x, const Tensor& y, int64_t x_axes,
                    int64_t y_axes);
/// x normalized over the axes from `axis` on; weight and bias, which may be absent, have one number
/// for each of those elements.
Tensor normalized_from(const ProgramCall& call, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, int64_t axis);
/// Operators of kProgramDomain, for the evaluator of graphs.
onnx::OperatorTable program_operators();
/// Calls an operation of the engine with the arguments of the rule.
Values call_operation(ProgramCall& call);

}  // namespace paddle::paddle_program
