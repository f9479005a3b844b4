// Schedules each optimizer update right after the last of its operands, so that the gradient is
// still in the cache and its memory is free for the next one. Reductions to a scalar come first:
// updates wait for the norms of gradients.

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

bool reduces_to_scalar(const Operation& operation) {
  return operation.op->has(kReduction) && !has_effect(operation) &&
         std::all_of(operation.results.begin(), operation.results.end(),
                     [](const Value* v) { return v->type.shape.empty(); });
}

bool is_update(const Operation& operation) { return operation.op->has(kOptimizerUpdate); }

/// Moves operations that match `predicate` up to right after the producers of their operands.
/// If they overwrite their operands (`in_place`), also after all other readers of these.
template <class Predicate>
void move_up(ir::Region& region, const Predicate& predicate, bool in_place) {
  auto& operations = region.operations;
  std::unordered_map<const Value*, size_t> produced_at, last_read;
  size_t position = 0;
  for (const auto& operation : operations) {
    ++position;
    for (const Value* v : operation->results) produced_at[v] = position;
    if (in_place && !predicate(*operation))
      ir::for_each_read(*operation, [&](const Value* v) { last_read[v] = position; });
  }
  const auto at = [](const auto& map, const Value* v) {
    const auto it = map.find(v);
    return it == map.end() ? size_t{0} : it->second;
  };
  // Each operation with the position it comes after; those that stay come first among equals.
  std::vector<std::pair<size_t, std::unique_ptr<Operation>>> order;
  position = 0;
  for (auto& operation : operations) {
    size_t after = ++position;
    if (predicate(*operation)) {
      after = 0;
      for (const Value* v : operation->operands)
        if (v) after = std::max({after, at(produced_at, v), at(last_read, v)});
      // Moved operations can depend on each other.
      for (const Value* v : operation->results) produced_at[v] = after;
    }
    order.emplace_back(after, std::move(operation));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  operations.clear();
  for (auto& [after, operation] : order) operations.push_back(std::move(operation));
}

}  // namespace

void schedule_updates_early(ir::Function& function) {
  move_up(function.body, reduces_to_scalar, false);
  move_up(function.body, is_update, true);
}

}  // namespace paddle::passes
