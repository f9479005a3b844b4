#pragma once
// Exports functions of the IR as ONNX graphs. An operation has a native form (a rule of one of the
// rules_*.cc files), or is decomposed into operations that have one.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/onnx/model.h"
#include "ir/module.h"
#include "onnx/export/quantized_format.h"

namespace paddle::onnx {

struct ExportOptions {
  /// The opset to write for; 0: the lowest, from 17 on, that has every operator used.
  int64_t opset = 0;
  /// Without `opset`: the least one, and what needs it.
  int64_t least_opset = 17;
  std::string least_opset_reason;
  /// The newest that the runtime `target` reads; 0: any.
  int64_t most_opset = 0;
  std::string target;
  std::string name = "model";
  std::string producer;
  std::vector<std::pair<std::string, std::string>> metadata;
  /// Values of symbolic dims that are fixed in the file.
  std::map<std::string, int64_t> dims;
  /// For a step of training: parameters and states that change are inputs with their values as
  /// defaults, and inputs that nothing reads are left out.
  bool training = false;
  /// Computes in this type where operations allow it (precision.h), and stores weights in it.
  std::optional<DType> low;
  std::vector<std::string> keep_float = {};  ///< patterns of operations and parameters
  QuantizedFormat format = QuantizedFormat::kQdq;
  /// Weights are not read: their arrays only have types and shapes (ExportedModel::weights).
  bool defer_weights = false;
};

/// How an operation is written.
enum class ExportForm { kNative, kDecomposed, kNone };
const char* text(ExportForm form);  ///< "native", "decomposed" or "none"
/// `note` says why there is none.
struct ExportSupport {
  ExportForm form = ExportForm::kNone;
  std::string note;
};
ExportSupport export_support(const Op& op);

/// An operation of the function that has no ONNX form.
struct Unsupported {
  std::string operation, source, note;
};

/// A constant that a 16-bit type cannot hold, so that the largest number of that type stands for
/// it.
struct LimitedConstant {
  std::string source;  ///< of an operation that reads it
  double before = 0, now = 0;
};

/// A value for a parameter or an unchanging state of the function.
using WeightLookup = std::function<Array(const std::string& name)>;

struct ExportedModel {
  formats::onnx::Model model;
  int64_t opset = 0;
  std::string opset_reason;  ///< the operator that needs it, "" for the least opset
  std::map<std::string, std::string> states;  ///< states by the names of their inputs
  std::map<std::string, std::string> next;    ///< outputs with the next value, by the same names
  /// With `defer_weights`: the function's names of weights by the names of their initializers.
  std::map<std::string, std::string> weights;
  /// The values of those names, and of weights that were put into the order of ONNX.
  WeightLookup weight;
  std::vector<LimitedConstant> limited;   ///< with ExportOptions::low
  int64_t quantized_layers = 0;           ///< that have another form than QDQ
  std::map<std::string, int64_t> native;  ///< operations of the function that were written, counted
  /// The function as it was written, after decomposition, and the names of its values in the file.
  std::shared_ptr<const ir::Function> function;
  std::vector<std::pair<const ir::Value*, std::string>> values;
};

/// Operations without an ONNX form after decomposition; empty if there are none.
std::vector<Unsupported> unsupported_operations(const ir::Function& function);
/// Inputs and outputs keep the names of the function's ports; a state that changes becomes an input
/// `NAME` and an output `NAME.next`. kModel if an operation has no form, kUsage if it
/// has none at the wanted opset.
ExportedModel export_function(const ir::Function& function, const WeightLookup& weights,
                              const ExportOptions& options);

}  // namespace paddle::onnx
