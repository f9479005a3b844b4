// Canonicalization: removes operations that change nothing.

#include <algorithm>

#include "compiler/passes/canonicalize/replacement.h"
#include "compiler/passes/passes.h"
#include "ops/core/rules.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Region;
using ir::Value;

/// The operand of a cast to a wider float type, which rounds nothing; else `v` itself.
Value* before_widening(Value* v) {
  static const Op& cast = get_op("cast");
  if (!v || !v->producer || v->producer->op != &cast) return v;
  Value* const from = v->producer->operands[0];
  const DType narrow = from->type.dtype, wide = v->type.dtype;
  const bool widens = is_float(narrow) && is_float(wide) && item_size(narrow) >= 2 &&
                      item_size(narrow) < item_size(wide);
  return widens ? from : v;
}

void drop_widenings(Operation& operation) {
  const auto declared = operation.op->operands();
  if (std::none_of(declared.begin(), declared.end(), [](const OperandDef& o) { return o.widened; }))
    return;
  const OperandMap map(*operation.op, operation.attrs);
  for (size_t d = 0; d < declared.size(); ++d)
    for (size_t i = map.begin(d); declared[d].widened && i < map.end(d); ++i)
      operation.operands[i] = before_widening(operation.operands[i]);
}

void drop_no_ops(Region& region, Replacement& map) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& operation = **it;
    replace_operands(operation, map);
    drop_widenings(operation);
    for (const auto& nested : operation.regions) drop_no_ops(*nested, map);
    if (operation.op->has(kSameElements) && operation.operands[0] &&
        same_type(operation.operands[0]->type, operation.results[0]->type)) {
      replace(map, *operation.results[0], *operation.operands[0]);
      it = region.operations.erase(it);
    } else {
      ++it;
    }
  }
  replace_results(region, map);
}

}  // namespace

void canonicalize(ir::Function& function) {
  Replacement map;
  drop_no_ops(function.body, map);
}

}  // namespace paddle::passes
