#pragma once
// Builds an ONNX graph from the operations of a function: names of values, nodes, constants, and
// symbolic dims as graph arithmetic. The rules of rules_*.cc are written against it.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/onnx/attributes.h"
#include "formats/onnx/model.h"
#include "ir/module.h"
#include "onnx/export/export.h"

namespace paddle::onnx {

using Names = std::vector<std::string>;
using ExportAttributes = std::vector<formats::onnx::Attribute>;

using formats::onnx::float_attribute;
using formats::onnx::int_attribute;
using formats::onnx::ints_attribute;
using formats::onnx::string_attribute;
/// Padding in the order of ONNX: the beginnings of all axes, then their ends.
std::vector<int64_t> onnx_pads(const std::vector<int64_t>& pairs);

class GraphWriter {
 public:
  GraphWriter(const ExportOptions& options, const WeightLookup& weights);

  /// Writes the whole function.
  ExportedModel write(const ir::Function& function);

  // --- for rules: the operation at hand ---

  const ExportOptions& options() const { return options_; }
  const ir::Operation& operation() const { return *operation_; }
  const Op& op() const { return *operation_->op; }
  const AttrValue& attr(std::string_view name) const;
  bool has_attr(std::string_view name) const { return !attr(name).is_none(); }
  /// The operand of that name; null where it is absent.
  const ir::Value* operand(std::string_view name) const;
  /// Its name in the graph; "" where it is absent.
  std::string in(std::string_view operand_name);
  /// Operands of a list.
  std::vector<const ir::Value*> operand_list(std::string_view name) const;
  const TensorType& type(std::string_view operand_name) const;
  const TensorType& result_type(size_t i = 0) const { return operation_->results.at(i)->type; }
  /// Whether a result is read by anything.
  bool is_used(size_t result) const;
  int count_uses(const ir::Value& value) const;
  /// Says that a result is the value of this name.
  void result(size_t i, const std::string& name);
  /// The error for an operation that has no form with these attributes or types.
  [[noreturn]] void reject(const std::string& why) const;

  // --- for rules: nodes ---

  /// Name of a value in the graph; constants become initializers.
  std::string name_of(const ir::Value& value);
  /// Adds a node with one output and returns the output's name.
  std::string add(const std::string& type, Names inputs, ExportAttributes attributes = {},
                  const std::string& output = "");
  Names add_several(const std::string& type, Names inputs, size_t outputs,
                    ExportAttributes attributes = {});
  /// The same, as result 0 of the operation.
  void emit(const std::string& type, Names inputs, ExportAttributes attributes = {});
  /// Says that the last nodes need at least this opset.
  void require_opset(int64_t opset, const std::string& operator_name);
  /// The opset that was asked for, or the least one that is needed so far.
  int64_t opset() const { return opset_; }

  std::string constant(const Array& array, const std::string& hint = "constant");
  /// One that no other node shares.
  std::string own_constant(const Array& array, const std::string& hint);
  std::string ints(const std::vector<int64_t>& values);
  /// A 0-D constant.
  std::string scalar(double value, DType dtype);
  std::string cast(const std::string& name, DType from, DType to);
  /// int64[1] and int64[rank]; constant where they can be.
  std::string dim(const Dim& dim);
  std::string shape(const Shape& shape);
  std::string reshape(const std::string& name, const Shape& shape);
  std::string transpose(const std::string& name, std::vector<int64_t> permutation);
  /// A reduction over axes, or over all of them if there are none.
  std::string reduce(const std::string& type, const std::string& name,
                     const std::vector<int64_t>& axes, bool keep_axes);

  /// Writes a region with these values for its arguments and returns the names of its results.
  Names inline_region(const ir::Region& region, const Names& arguments);
  /// Writes a subgraph: `fill` adds nodes and returns the names of the outputs.
  std::shared_ptr<formats::onnx::Graph> subgraph(
      const std::string& name, const std::vector<formats::onnx::ValueInfo>& inputs,
      const std::function<Names()>& fill);
  std::string fresh(const std::string& hint);
  /// Whether a weight is stored in this type, so that its cast is the initializer itself.
  bool is_stored_as(const ir::Value& value, DType dtype) const;

 private:
  struct SymbolSource {
    std::string value;
    int64_t axis;
  };
  void write_operation(const ir::Operation& operation);
  void note_symbols(const Shape& shape, const std::string& value);
  Dim fixed(const Dim& dim) const;

  const ExportOptions& options_;
  const WeightLookup& weights_;
  ExportedModel out_;
  formats::onnx::Graph* graph_ = nullptr;
  const ir::Operation* operation_ = nullptr;
  std::unordered_map<const ir::Value*, std::string> names_;
  std::unordered_map<const ir::Value*, std::string> wanted_;  ///< names of the function's outputs
  std::unordered_map<const ir::Value*, int> uses_;
  std::unordered_map<const ir::Value*, DType> stored_;  ///< weights that are only read as this type
  std::set<std::string> used_;
  std::map<std::string, SymbolSource> symbols_;
  std::map<std::string, std::string> dims_;       ///< by text, in the scope of the current graph
  std::map<std::string, std::string> constants_;  ///< small constants by their bytes
  int64_t opset_ = 17;
};

/// A batch_norm by the statistics of its batch, from primitive operators.
void write_batch_statistics(GraphWriter& writer);

using ExportRule = void (*)(GraphWriter&);
struct ExportRuleEntry {
  const char* op;
  ExportRule rule;
};
/// The rule of an operation; null if it has none.
ExportRule find_export_rule(std::string_view op);

// One table per family.
std::vector<ExportRuleEntry> elementwise_export_rules();
std::vector<ExportRuleEntry> activation_export_rules();
std::vector<ExportRuleEntry> reduction_export_rules();
std::vector<ExportRuleEntry> shape_export_rules();
std::vector<ExportRuleEntry> creation_export_rules();
std::vector<ExportRuleEntry> indexing_export_rules();
std::vector<ExportRuleEntry> nn_export_rules();
std::vector<ExportRuleEntry> training_export_rules();
std::vector<ExportRuleEntry> recurrent_export_rules();
std::vector<ExportRuleEntry> quantization_export_rules();
std::vector<ExportRuleEntry> control_flow_export_rules();
std::vector<ExportRuleEntry> scatter_export_rules();
std::vector<ExportRuleEntry> detection_export_rules();

}  // namespace paddle::onnx
