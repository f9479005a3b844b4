// Folding of quantized weights that are stored as floats.

#include <algorithm>

#include "compiler/passes/constant_value.h"
#include "compiler/passes/quantization/qdq.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

/// Most operations between a constant and its quantize: a clamp, a reshape.
constexpr int kMaxDepth = 6;

bool is_pure(const Operation& operation) {
  const Op& op = *operation.op;
  return op.has(kConstantFold) && !op.has(kEffect) && !op.has(kRandom) && !op.has(kRunTimeShape) &&
         operation.regions.empty() && operation.results.size() == 1 &&
         is_constant(operation.results[0]->type.shape);
}

std::optional<Array> constant_value(const Value* value, const Evaluate& evaluate, int depth) {
  if (value->constant) return *value->constant;
  if (!value->producer || depth > kMaxDepth || !is_pure(*value->producer)) return std::nullopt;
  const Operation& operation = *value->producer;
  std::vector<std::optional<Array>> arrays;
  for (const Value* operand : operation.operands) {
    arrays.push_back(operand ? constant_value(operand, evaluate, depth + 1) : std::nullopt);
    if (operand && !arrays.back()) return std::nullopt;
  }
  std::vector<const Array*> operands;
  for (const auto& array : arrays) operands.push_back(array ? &*array : nullptr);
  return evaluate(*operation.op, operation.attrs, operands, {value->type})[0];
}

}  // namespace

std::optional<Array> constant_value(const Value* value, const Evaluate& evaluate) {
  return value ? constant_value(value, evaluate, 0) : std::nullopt;
}

void fold_quantize(ir::Function& function, const Evaluate& evaluate) {
  auto& operations = function.body.operations;
  bool any = false;
  for (const auto& operation : operations) {
    if (operation->op != &qdq::known_ops().quantize) continue;
    Value& result = *operation->results[0];
    if (!qdq::is_8_bit(result.type.dtype)) continue;
    if (const auto value = constant_value(&result, evaluate)) {
      result.constant = value->contiguous();
      any = true;
    }
  }
  if (!any) return;
  std::erase_if(operations, [](const auto& operation) {
    const bool folded =
        operation->op == &qdq::known_ops().quantize && operation->results[0]->constant;
    if (folded) operation->results[0]->producer = nullptr;
    return folded;
  });
  remove_dead_code(function);
}

}  // namespace paddle::passes
