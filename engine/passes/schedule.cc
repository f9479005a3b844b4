// Order: each optimizer update moves up to where the last of what it needs is there, so that a
// gradient is consumed while it is in the cache and its memory is free for the next one.

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "passes/passes.h"

namespace paddle::passes {
using ir::Operation;
using ir::Value;

void update_early(ir::Function& function) {
  auto& operations = function.body.operations;
  std::unordered_map<const Value*, size_t> made, read_last;
  size_t position = 0;
  for (const auto& operation : operations) {
    ++position;
    for (const Value* v : operation->results) made[v] = position;
    // An update reads what it replaces; only the others must come before it.
    if (!operation->op->has(kOptimizerUpdate))
      ir::for_each_read(*operation, [&](const Value* v) { read_last[v] = position; });
  }
  const auto at = [](const auto& map, const Value* v) {
    const auto it = map.find(v);
    return it == map.end() ? size_t{0} : it->second;
  };
  // By the position that each comes behind; operations that stay come first there.
  std::vector<std::pair<size_t, std::unique_ptr<Operation>>> order;
  position = 0;
  for (auto& operation : operations) {
    size_t behind = ++position;
    if (operation->op->has(kOptimizerUpdate)) {
      behind = 0;
      for (const Value* v : operation->operands)
        if (v) behind = std::max({behind, at(made, v), at(read_last, v)});
      // What an earlier update made is where that one went to.
      for (const Value* v : operation->results) made[v] = behind;
    }
    order.emplace_back(behind, std::move(operation));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  operations.clear();
  for (auto& [behind, operation] : order) operations.push_back(std::move(operation));
}

}  // namespace paddle::passes
