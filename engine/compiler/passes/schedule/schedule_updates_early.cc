// Schedules each optimizer update right after the last of its operands, so that the gradient is
// still in the cache and its memory is free for the next one. On devices some updates wait for each
// other, so that one kernel can compute them (runtime/plan_merge.cc). Reductions to a scalar come
// first: updates wait for the norms of gradients.

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
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

constexpr size_t kMaxBatch = 64;
constexpr int64_t kMaxBatchElements = int64_t{64} << 20;

/// An operation and the position that it comes after; `last` is the one that it had. Among those
/// of one position the lower rank comes first.
struct Placed {
  size_t after, last;
  std::unique_ptr<Operation> operation;
  size_t rank = 0;
};

/// The rule and the types of an update, -1 for absent operands: one kernel can compute updates of
/// the same kind.
using UpdateKind = std::pair<const Op*, std::vector<int>>;

UpdateKind kind_of(const Operation& update) {
  UpdateKind kind{update.op, {}};
  for (const Value* v : update.operands)
    kind.second.push_back(v ? static_cast<int>(v->type.dtype) : -1);
  return kind;
}

/// Whether updates share no tensors but scalars, so that their order does not matter.
bool are_independent(std::span<Placed* const> updates) {
  std::unordered_set<const Value*> seen;
  const auto is_new = [&](const Value* v) {
    return !v || v->type.shape.empty() || seen.insert(v).second;
  };
  return std::ranges::all_of(updates, [&](const Placed* each) {
    return std::ranges::all_of(each->operation->operands, is_new) &&
           std::ranges::all_of(each->operation->results, is_new);
  });
}

/// Orders the updates of a batch by kind: kernels are merged with their neighbors.
void sort_by_kind(std::span<Placed* const> batch) {
  if (!are_independent(batch)) return;
  std::map<UpdateKind, size_t> ranks;
  for (Placed* const each : batch)
    each->rank = ranks.try_emplace(kind_of(*each->operation), ranks.size() + 1).first->second;
}

/// Gathers updates that are near each other in the order: each batch comes after the last
/// of them, and gradients of a batch have a limited size.
void batch_updates(std::vector<Placed>& order) {
  std::vector<Placed*> updates;
  for (Placed& each : order)
    if (is_update(*each.operation)) updates.push_back(&each);
  std::ranges::stable_sort(updates, {}, [](const Placed* each) { return each->after; });
  for (size_t begin = 0, end = 0; begin < updates.size(); begin = end) {
    int64_t elements = 0;
    for (; end < updates.size() && end - begin < kMaxBatch && elements < kMaxBatchElements; ++end) {
      const auto count =
          element_count(std::span<const Dim>(updates[end]->operation->results[0]->type.shape));
      elements += count.is_constant() ? count.value() : kMaxBatchElements;
    }
    const size_t after = updates[end - 1]->after;
    for (size_t i = begin; i < end; ++i) updates[i]->after = std::min(after, updates[i]->last);
    sort_by_kind(std::span(updates).subspan(begin, end - begin));
  }
}

/// Moves operations that match `predicate` up to right after the producers of their operands.
/// If they overwrite their operands (`in_place`), also after all other readers of these, but none
/// is moved down: what follows may read its results. With `batches` updates wait for each other.
template <class Predicate>
void move_up(ir::Region& region, const Predicate& predicate, bool in_place, bool batches) {
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
  std::vector<Placed> order;
  position = 0;
  for (auto& operation : operations) {
    const size_t last = ++position;
    size_t after = last;
    if (predicate(*operation)) {
      after = 0;
      for (const Value* v : operation->operands)
        if (v) after = std::max({after, at(produced_at, v), at(last_read, v)});
      after = std::min(after, last);
      // Moved operations can depend on each other.
      for (const Value* v : operation->results) produced_at[v] = after;
    }
    order.push_back({after, last, std::move(operation)});
  }
  if (batches) batch_updates(order);
  std::ranges::stable_sort(order, {},
                           [](const Placed& each) { return std::pair(each.after, each.rank); });
  operations.clear();
  for (Placed& each : order) operations.push_back(std::move(each.operation));
}

}  // namespace

void schedule_updates_early(ir::Function& function) {
  move_up(function.body, reduces_to_scalar, false, false);
  move_up(function.body, is_update, true, !function.target.device.is_cpu());
}

}  // namespace paddle::passes
