#include "partition/updated_states.h"

#include <algorithm>

#include "partition/stages.h"

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;

void replace_reads(ir::Region& region, const Value* old, Value* by) {
  for (const auto& operation : region.operations) {
    std::replace(operation->operands.begin(), operation->operands.end(), const_cast<Value*>(old),
                 by);
    for (const auto& inner : operation->regions) {
      replace_reads(*inner, old, by);
      std::replace(inner->results.begin(), inner->results.end(), const_cast<Value*>(old), by);
    }
  }
}

}  // namespace

std::vector<UpdatedState> updated_states(const ir::Function& function) {
  std::unordered_set<const Value*> read;
  for (const Operation* operation : ancestors(function.body.results[0]))
    ir::for_each_read(*operation, [&](const Value* v) { read.insert(v); });
  std::vector<UpdatedState> out;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (function.inputs[i].kind != ir::PortKind::kState) continue;
    Value* const before = function.body.arguments[i];
    if (!read.contains(before)) continue;
    for (size_t j = 0; j < function.outputs.size(); ++j) {
      Value* const after = function.body.results[j];
      if (function.outputs[j].kind == ir::PortKind::kState &&
          function.outputs[j].name == function.inputs[i].name && after != before)
        out.push_back({function.inputs[i].name, before, after});
    }
  }
  return out;
}

void copy_updated_states(ir::Function& function) {
  auto& operations = function.body.operations;
  for (const UpdatedState& state : updated_states(function)) {
    bool only_by_update = true;
    for (const auto& operation : operations)
      ir::for_each_read(*operation, [&](const Value* v) {
        if (v == state.before && operation.get() != state.after->producer) only_by_update = false;
      });
    if (only_by_update) continue;
    Operation* const copy =
        function.append(function.body, get_op("assign"), {state.before}, {}, {state.before->type});
    operations.splice(operations.begin(), operations, std::prev(operations.end()));
    replace_reads(function.body, state.before, copy->results[0]);
    copy->operands[0] = state.before;
  }
}

std::unordered_set<const Operation*> state_copies(const ir::Function& function,
                                                  const std::vector<UpdatedState>& states) {
  static const Op& assign = get_op("assign");
  std::unordered_set<const Operation*> out;
  for (const auto& operation : function.body.operations)
    if (operation->op == &assign &&
        std::any_of(states.begin(), states.end(), [&](const UpdatedState& state) {
          return operation->operands[0] == state.before;
        }))
      out.insert(operation.get());
  return out;
}

}  // namespace paddle::partition
