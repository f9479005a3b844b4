#include "runtime/plan_names.h"

#include <algorithm>

#include "compiler/region_compilers.h"

namespace paddle::runtime {

std::vector<const ir::Operation*> reductions_of(const ir::Operation& group,
                                                const std::vector<int>& results) {
  std::vector<const ir::Operation*> out;
  for (size_t r = 0; r < group.results.size(); ++r) {
    const ir::Operation* const maker = group.regions[0]->results[r]->producer;
    if (maker->op->has(kReduction) &&
        std::count(results.begin(), results.end(), group.results[r]->id) > 0)
      out.push_back(maker);
  }
  return out;
}

std::string described(const ir::Operation& operation, const std::vector<int>& results) {
  std::string names(operation.op->name());
  if (operation.regions.size() != 1 || compiler::is_claimed(operation)) return names;
  const ir::Region& region = *operation.regions[0];
  if (region.operations.front()->op->has(kElementwise)) {
    for (const ir::Operation* reduction : reductions_of(operation, results))
      names += str("+", reduction->op->name());
    return names;
  }
  names.clear();
  for (const auto& member : region.operations)
    names += (names.empty() ? "" : "+") + std::string(member->op->name());
  return names;
}

std::string origin_of(const ir::Operation& operation) {
  if (operation.regions.size() != 1 || compiler::is_claimed(operation)) return operation.location;
  const ir::Operation& first = *operation.regions[0]->operations.front();
  return first.op->has(kElementwise) ? operation.location : first.location;
}

}  // namespace paddle::runtime
