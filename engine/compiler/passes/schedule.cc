// Order: each optimizer update moves up to where the last of what it needs is there, so that a
// gradient is consumed while it is in the cache and its memory is free for the next one. Before
// them, what makes one number of a tensor does: the norms of gradients that updates wait for.

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

bool makes_a_number(const Operation& operation) {
  return operation.op->has(kReduction) && !has_effect(operation) &&
         std::all_of(operation.results.begin(), operation.results.end(),
                     [](const Value* v) { return v->type.shape.empty(); });
}

bool updates(const Operation& operation) { return operation.op->has(kOptimizerUpdate); }

/// Moves up what `moves` says, each behind what makes its operands. Where it puts new values in the
/// place of its operands, all others that read these stay before it.
template <class Moves>
void move_up(ir::Region& region, const Moves& moves, bool replaces) {
  auto& operations = region.operations;
  std::unordered_map<const Value*, size_t> made, read_last;
  size_t position = 0;
  for (const auto& operation : operations) {
    ++position;
    for (const Value* v : operation->results) made[v] = position;
    if (replaces && !moves(*operation))
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
    if (moves(*operation)) {
      behind = 0;
      for (const Value* v : operation->operands)
        if (v) behind = std::max({behind, at(made, v), at(read_last, v)});
      // What an earlier one made is where that one went to.
      for (const Value* v : operation->results) made[v] = behind;
    }
    order.emplace_back(behind, std::move(operation));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  operations.clear();
  for (auto& [behind, operation] : order) operations.push_back(std::move(operation));
}

}  // namespace

void consume_early(ir::Function& function) {
  move_up(function.body, makes_a_number, false);
  move_up(function.body, updates, true);
}

}  // namespace paddle::passes
