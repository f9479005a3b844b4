// Constant folding.

#include <algorithm>

#include "compiler/passes/canonicalize/replacement.h"
#include "compiler/passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Function;
using ir::Operation;
using ir::Region;
using ir::Value;

bool symbolic(const AttrValue& v) {
  if (v.is_int()) return !v.as_dim().is_constant();
  return v.is_list() && std::any_of(v.as_list().begin(), v.as_list().end(), symbolic);
}

bool foldable(const Operation& operation, int64_t max_elements) {
  const Op& op = *operation.op;
  if (op.has(kEffect) || op.has(kRandom) || op.has(kRunTimeShape) || !operation.regions.empty())
    return false;
  if (!op.has(kConstantFold) && !op.has(kCreation)) return false;
  for (const Value* v : operation.operands)
    if (v && !v->constant) return false;
  if (std::any_of(operation.attrs.values.begin(), operation.attrs.values.end(), symbolic))
    return false;
  for (const Value* v : operation.results) {
    if (!is_constant(v->type.shape) || !info(v->type.dtype).has_kernels) return false;
    if (element_count(std::span<const Dim>(v->type.shape)).value() > max_elements) return false;
  }
  return true;
}

void fold(Function& function, Region& region, Replacement& map, const Evaluate& evaluate,
          int64_t max_elements) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& operation = **it;
    replace_operands(operation, map);
    for (const auto& nested : operation.regions)
      fold(function, *nested, map, evaluate, max_elements);
    if (!foldable(operation, max_elements)) {
      ++it;
      continue;
    }
    std::vector<const Array*> operands;
    std::vector<TensorType> types;
    for (const Value* v : operation.operands) operands.push_back(v ? &*v->constant : nullptr);
    for (const Value* v : operation.results) types.push_back(v->type);
    std::vector<Array> results;
    try {
      results = evaluate(*operation.op, operation.attrs, operands, types);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::kInternal || e.code() == ErrorCode::kDevice) throw;
      ++it;  // invalid values are an error only if the operation is executed
      continue;
    }
    for (size_t i = 0; i < results.size(); ++i)
      replace(map, *operation.results[i], *function.add_constant(results[i]));
    it = region.operations.erase(it);
  }
  replace_results(region, map);
}

}  // namespace

void fold_constants(Function& function, const Evaluate& evaluate, int64_t max_elements) {
  Replacement map;
  fold(function, function.body, map, evaluate, max_elements);
}

}  // namespace paddle::passes
