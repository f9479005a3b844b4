// Epilogue fusion: groups a convolution or matrix product with the elementwise operations on its
// result (bias, activation, residual) into one `fused` operation, as far as a kernel supports it.

#include <algorithm>
#include <list>
#include <unordered_map>

#include "compiler/passes/fusion/fused_operation.h"
#include "compiler/passes/passes.h"

namespace paddle::passes {

using ir::Operation;
using ir::Value;

void fuse_epilogues(ir::Function& function, const CanFuseEpilogue& can_fuse_epilogue) {
  auto& operations = function.body.operations;
  std::unordered_map<const Value*, std::vector<const Operation*>>
      uses;  // null: a result of the function
  for (const auto& o : operations)
    ir::for_each_read(*o, [&](const Value* v) { uses[v].push_back(o.get()); });
  for (const Value* v : function.body.results) uses[v].push_back(nullptr);
  using Iterator = std::list<std::unique_ptr<Operation>>::iterator;
  std::unordered_map<const Operation*, Iterator> positions;
  for (auto it = operations.begin(); it != operations.end(); ++it) positions[it->get()] = it;
  for (auto it = operations.begin(); it != operations.end();) {
    Operation* const first = (it++)->get();
    std::vector<const Operation*> chain = {first};
    const bool static_shapes =
        std::none_of(first->operands.begin(), first->operands.end(),
                     [](const Value* v) { return v && has_run_time_size(v->type); });
    while (static_shapes && first->results.size() == 1 && first->regions.empty() &&
           !has_run_time_size(first->results[0]->type)) {
      const Value* const result = chain.back()->results[0];
      const auto& consumers = uses[result];
      if (consumers.size() != 1 || !consumers[0] || positions.count(consumers[0]) == 0) break;
      const Operation& next = *consumers[0];
      if (next.results.size() != 1 || !next.regions.empty() ||
          !same_type(next.results[0]->type, result->type) || !can_fuse_epilogue(chain, next))
        break;
      chain.push_back(&next);
    }
    if (chain.size() == 1) continue;
    const Iterator last = positions[chain.back()];
    const Value* const result = chain.back()->results[0];
    Members members;
    for (const Operation* o : chain) members.push_back(std::move(*positions[o]));
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      const Iterator at = positions[chain[i]];
      if (it == at) ++it;
      operations.erase(at);
    }
    for (const Operation* o : chain) positions.erase(o);
    *last = make_fused(function, std::move(members),
                       [&](const Value* value) { return value == result; });
  }
}

}  // namespace paddle::passes
