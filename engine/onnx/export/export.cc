#include "onnx/export/export.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/replay.h"
#include "onnx/export/fold_weights.h"
#include "onnx/export/graph_writer.h"
#include "onnx/export/precision.h"
#include "onnx/export/share_weights.h"
#include "onnx/validity/validity.h"
#include "ops/core/call.h"
#include "runtime/execute.h"

namespace paddle::onnx {
namespace {

const std::unordered_map<std::string_view, ExportRule>& rules() {
  static const auto all = [] {
    std::unordered_map<std::string_view, ExportRule> out;
    for (const auto table :
         {elementwise_export_rules, activation_export_rules, reduction_export_rules,
          shape_export_rules, creation_export_rules, indexing_export_rules, nn_export_rules,
          training_export_rules, recurrent_export_rules, quantization_export_rules,
          control_flow_export_rules, scatter_export_rules, detection_export_rules})
      for (const ExportRuleEntry& entry : table()) {
        ensure(find_op(entry.op) != nullptr, "an export rule for '", entry.op,
               "', which is not an operation");
        out[find_op(entry.op)->name()] = entry.rule;
      }
    return out;
  }();
  return all;
}

/// Decomposes operations without a rule, as far as they go.
class ExportDecomposer final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& call) override {
    if (rules().contains(call.op.name()) || !call.op.def->decompose) return next().apply(call);
    return decompose(call);
  }
};

std::unique_ptr<ir::Function> decomposed(const ir::Function& function) {
  // A trace keeps operations that have a kernel.
  runtime::register_backends();
  ExportDecomposer decomposer;
  return ir::retraced(function, decomposer);
}

std::vector<Unsupported> without_rule(const ir::Function& function) {
  std::vector<Unsupported> out;
  const auto complex = [](const ir::Value* v) { return v && is_complex(v->type.dtype); };
  ir::for_each_operation(function.body, [&](const ir::Operation& operation) {
    if (std::any_of(operation.operands.begin(), operation.operands.end(), complex) ||
        std::any_of(operation.results.begin(), operation.results.end(), complex))
      out.push_back({std::string(operation.op->name()), operation.location,
                     "ONNX's operators do not compute with complex numbers"});
    else if (!rules().contains(operation.op->name()))
      out.push_back({std::string(operation.op->name()), operation.location,
                     export_support(*operation.op).note});
  });
  return out;
}

/// Gives quantized layers the form that was asked for.
void use_quantized_format(ExportedModel& exported, const ExportOptions& options) {
  const auto value = [&](const formats::onnx::TensorData& data) {
    const auto deferred = exported.weights.find(data.name);
    return deferred == exported.weights.end() ? data.array : exported.weight(deferred->second);
  };
  exported.quantized_layers = use_format(exported.model, options.format, value);
  std::set<std::string> kept;
  bool four_bits = false;
  for (const auto& each : exported.model.graph.initializers) {
    kept.insert(each.name);
    four_bits = four_bits || info(each.dtype).bits < 8;
  }
  std::erase_if(exported.weights, [&](const auto& each) { return !kept.contains(each.first); });
  constexpr int64_t kFourBits = 21;
  if (!four_bits || exported.opset >= kFourBits) return;
  const int64_t most = options.opset != 0 ? options.opset : options.most_opset;
  if (most != 0 && most < kFourBits)
    fail(ErrorCode::kUsage, "weights of 4 bits that MatMulNBits cannot hold need opset ", kFourBits,
         ", ", options.opset != 0 ? "--opset is " : options.target + " has ", most);
  exported.opset = exported.model.opsets[""] = kFourBits;
  exported.opset_reason = "weights of 4 bits";
  exported.model.ir_version = ir_version_of(kFourBits);
}

/// kUsage if the opset that a node needs is later than what the options allow.
void check_opset(const ExportOptions& options, const ValidityProblem& problem) {
  const std::string place = problem.source.empty() ? "" : problem.source + ": ";
  if (options.opset != 0)
    fail(ErrorCode::kUsage, place, problem.subject, " needs opset ", problem.opset, ", --opset is ",
         options.opset);
  if (options.most_opset != 0 && problem.opset > options.most_opset)
    fail(ErrorCode::kUsage, place, problem.subject, " needs opset ", problem.opset, ", ",
         options.target, " has ", options.most_opset);
}

}  // namespace

ExportRule find_export_rule(std::string_view op) {
  const auto found = rules().find(op);
  return found == rules().end() ? nullptr : found->second;
}

const char* text(ExportForm form) {
  switch (form) {
    case ExportForm::kNative:
      return "native";
    case ExportForm::kDecomposed:
      return "decomposed";
    case ExportForm::kNone:
      break;
  }
  return "none";
}

ExportSupport export_support(const Op& op) {
  if (rules().contains(op.name())) return {ExportForm::kNative, ""};
  if (op.def->decompose) return {ExportForm::kDecomposed, ""};
  if (op.has(kOptimizerUpdate)) return {ExportForm::kNone, "an optimizer update"};
  if (op.has(kEffect)) return {ExportForm::kNone, "it has an effect"};
  return {ExportForm::kNone, "no ONNX operator computes it"};
}

std::vector<Unsupported> unsupported_operations(const ir::Function& function) {
  return without_rule(*decomposed(function));
}

ExportedModel export_function(const ir::Function& function, const WeightLookup& weights,
                              const ExportOptions& options) {
  std::unique_ptr<ir::Function> low;
  std::vector<LimitedConstant> limited;
  if (options.low) low = in_low_precision(function, *options.low, options.keep_float, limited);
  const std::shared_ptr<const ir::Function> lowered = decomposed(low ? *low : function);
  if (const auto missing = without_rule(*lowered); !missing.empty())
    fail(ErrorCode::kModel, missing[0].source, missing[0].source.empty() ? "" : ": ",
         missing[0].operation, ": has no ONNX form: ", missing[0].note);
  const auto written = [&](const ExportOptions& given) {
    ExportedModel made = GraphWriter(given, weights).write(*lowered);
    fold_recurrent_weights(made, weights);
    if (given.format != QuantizedFormat::kQdq) use_quantized_format(made, given);
    share_integer_weights(made.model.graph);
    return made;
  };
  ExportedModel out = written(options);
  // Types count too: an operator may take float16 or bfloat16 from a later opset on. The rules
  // write nodes in the form of the opset so far, so the graph is written again where it has risen.
  ExportOptions raised = options;
  int64_t begun = options.opset != 0 ? options.opset : options.least_opset;
  for (auto problems = validity_problems(out.model); !problems.empty();
       problems = validity_problems(out.model)) {
    const int64_t needed = std::max(needed_opset(problems), out.opset > begun ? out.opset : 0);
    if (needed == 0) break;
    raised.least_opset_reason = out.opset_reason;
    for (const ValidityProblem& each : problems)
      if (each.opset == needed) {
        raised.least_opset_reason = each.subject;
        check_opset(options, each);
      }
    begun = raised.least_opset = needed;
    out = written(raised);
  }
  out.function = lowered;
  out.limited = std::move(limited);
  require_valid(out.model, options.name);
  return out;
}

}  // namespace paddle::onnx
