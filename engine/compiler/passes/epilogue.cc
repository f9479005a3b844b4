// Epilogues: what is done to the result of a convolution or matrix product, element by element,
// before anyone else reads it, joins it in one `fused` operation where a kernel takes it along.

#include <algorithm>
#include <list>
#include <unordered_map>

#include "compiler/passes/group.h"
#include "compiler/passes/passes.h"

namespace paddle::passes {

using ir::Operation;
using ir::Value;

void fuse_epilogues(ir::Function& function, const TakesAlong& takes_along) {
  auto& operations = function.body.operations;
  std::unordered_map<const Value*, std::vector<const Operation*>> uses;  // null: a result
  for (const auto& o : operations)
    ir::for_each_read(*o, [&](const Value* v) { uses[v].push_back(o.get()); });
  for (const Value* v : function.body.results) uses[v].push_back(nullptr);
  using Place = std::list<std::unique_ptr<Operation>>::iterator;
  std::unordered_map<const Operation*, Place> places;
  for (auto it = operations.begin(); it != operations.end(); ++it) places[it->get()] = it;
  for (auto it = operations.begin(); it != operations.end();) {
    Operation* const first = (it++)->get();
    std::vector<const Operation*> chain = {first};
    const bool fixed = std::none_of(first->operands.begin(), first->operands.end(),
                                    [](const Value* v) { return v && has_run_time_size(v->type); });
    while (fixed && first->results.size() == 1 && first->regions.empty() &&
           !has_run_time_size(first->results[0]->type)) {
      const Value* const made = chain.back()->results[0];
      const auto& readers = uses[made];
      if (readers.size() != 1 || !readers[0] || places.count(readers[0]) == 0) break;
      const Operation& next = *readers[0];
      if (next.results.size() != 1 || !next.regions.empty() ||
          !same_type(next.results[0]->type, made->type) || !takes_along(chain, next))
        break;
      chain.push_back(&next);
    }
    if (chain.size() == 1) continue;
    const Place last = places[chain.back()];
    std::vector<GroupPart> parts;
    for (const Operation* o : chain) parts.push_back({std::move(*places[o]), o == chain.back()});
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      const Place at = places[chain[i]];
      if (it == at) ++it;
      operations.erase(at);
    }
    for (const Operation* o : chain) places.erase(o);
    *last = make_group(function, std::move(parts));
  }
}

}  // namespace paddle::passes
