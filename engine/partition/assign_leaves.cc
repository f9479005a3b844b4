// Where the forward pass of a step is cut into stages: so that the most expensive stage costs
// least, and, among cuts that are about as good, where few bytes cross.

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ops/core/cost.h"
#include "partition/communication.h"
#include "partition/stages.h"
#include "partition/updated_states.h"

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;

double cost_of(const Operation& operation) {
  std::vector<Dims> operands, results;
  double bytes = 0;
  for (const Value* v : operation.operands) {
    operands.push_back(v ? concrete(v->type.shape) : Dims{});
    if (v) bytes += static_cast<double>(bytes_of(*v));
  }
  for (const Value* v : operation.results) {
    results.push_back(concrete(v->type.shape));
    bytes += static_cast<double>(bytes_of(*v));
  }
  // A byte that moves takes as long as a few operations of a product.
  constexpr double kPerByte = 4;
  return call_flops(*operation.op, operation.attrs, operands, results) + kPerByte * bytes;
}

/// Operations that must be in one stage: from the first that reads a state to the last that its new
/// value depends on.
struct Whole {
  std::string state;
  size_t first = 0, last = 0;
};

/// The forward pass in the order of the program, with the leaves that each operation is the first
/// to read, and the bytes that cross to those after it.
struct Line {
  std::vector<const Operation*> operations;
  std::vector<double> cost;
  std::vector<double> crossing;  ///< between operation i and the next one
  std::vector<std::vector<std::string>> leaves;
};

Line line_up(const ir::Function& function) {
  Line line;
  const auto forward = ancestors(function.body.results[0]);
  std::unordered_map<const Value*, std::string> leaves;
  std::unordered_set<const Value*> free;  // of only the batch or leaves: they do not cross
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const ir::Port& port = function.inputs[i];
    free.insert(function.body.arguments[i]);
    if (port.kind == ir::PortKind::kParameter || port.kind == ir::PortKind::kState)
      leaves[function.body.arguments[i]] = port.name;
  }
  std::unordered_map<const Value*, size_t> made, last;
  std::vector<std::string> waiting;  // leaves that a free operation has read
  for (const auto& operation : function.body.operations) {
    if (!forward.contains(operation.get())) continue;
    const size_t at = line.operations.size();
    bool is_free = true;
    ir::for_each_read(*operation, [&](const Value* v) {
      if (const auto it = leaves.find(v); it != leaves.end()) {
        waiting.push_back(it->second);
        leaves.erase(it);
      }
      is_free = is_free && (v->constant || free.contains(v));
      last[v] = at;
    });
    line.operations.push_back(operation.get());
    line.cost.push_back(cost_of(*operation));
    line.leaves.push_back(std::move(waiting));
    waiting.clear();
    for (const Value* v : operation->results) {
      made[v] = at;
      if (is_free && line.leaves.back().empty()) free.insert(v);
    }
  }
  line.crossing.assign(line.operations.size(), 0);
  for (const auto& [v, at] : made)
    if (const auto it = last.find(v); it != last.end() && !free.contains(v))
      for (size_t i = at; i < it->second; ++i)
        line.crossing[i] += static_cast<double>(bytes_of(*v));
  return line;
}

std::vector<Whole> find_wholes(const ir::Function& function, const Line& line) {
  std::vector<Whole> out;
  for (const UpdatedState& state : updated_states(function)) {
    const auto needed = ancestors(state.after);
    std::optional<size_t> first;
    size_t last = 0;
    for (size_t i = 0; i < line.operations.size(); ++i) {
      if (needed.contains(line.operations[i])) last = i;
      if (!first)
        ir::for_each_read(*line.operations[i], [&](const Value* v) {
          if (v == state.before) first = i;
        });
    }
    if (first && last > *first) out.push_back({state.name, *first, last});
  }
  return out;
}

}  // namespace

LeafStages assign_leaves(const ir::Function& function, int stages) {
  const Line line = line_up(function);
  const std::vector<Whole> wholes = find_wholes(function, line);
  const size_t count = line.operations.size();
  // A stage begins with an operation that reads a new leaf, where little crosses, but something.
  std::vector<size_t> candidates;
  double least = std::numeric_limits<double>::infinity();
  const Whole* divided = nullptr;  // by a place that would do otherwise
  for (size_t i = 1; i < count; ++i)
    if (!line.leaves[i].empty() && line.crossing[i - 1] > 0) {
      const auto whole = std::find_if(wholes.begin(), wholes.end(),
                                      [&](const Whole& w) { return w.first < i && i <= w.last; });
      if (whole != wholes.end()) {
        divided = &*whole;
        continue;
      }
      candidates.push_back(i);
      least = std::min(least, line.crossing[i - 1]);
    }
  std::vector<size_t> places;
  for (const double slack : {1.25, 2.5, std::numeric_limits<double>::infinity()}) {
    places.clear();
    for (const size_t i : candidates)
      if (line.crossing[i - 1] <= slack * least) places.push_back(i);
    // Enough to choose from.
    if (places.size() + 1 >= 2 * static_cast<size_t>(stages)) break;
  }
  if (places.size() + 1 < static_cast<size_t>(stages))
    fail(ErrorCode::kConfig, "parallel.pipeline: the model can be cut into at most ",
         places.size() + 1, " stages, ", stages, " are wanted",
         divided
             ? str("; the state '", divided->state, "' must be read and updated in the same stage")
             : "");
  std::vector<double> before(count + 1, 0);
  for (size_t i = 0; i < count; ++i) before[i + 1] = before[i] + line.cost[i];
  // best[s][k]: the least cost of the most expensive of s + 1 stages, the last of which begins at
  // or before place k's operation and ends there.
  std::vector<size_t> ends = places;
  ends.push_back(count);
  const auto n = ends.size();
  const auto infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(static_cast<size_t>(stages),
                                        std::vector<double>(n, infinity));
  std::vector<std::vector<size_t>> from(static_cast<size_t>(stages), std::vector<size_t>(n, 0));
  for (size_t k = 0; k < n; ++k) best[0][k] = before[ends[k]];
  for (size_t s = 1; s < best.size(); ++s)
    for (size_t k = s; k < n; ++k)
      for (size_t j = s - 1; j < k; ++j) {
        const double cost = std::max(best[s - 1][j], before[ends[k]] - before[ends[j]]);
        if (cost < best[s][k]) {
          best[s][k] = cost;
          from[s][k] = j;
        }
      }
  std::vector<size_t> cuts;  // first operations of the stages, the last one first
  size_t k = n - 1;
  for (size_t s = best.size() - 1; s > 0; --s) {
    k = from[s][k];
    cuts.push_back(ends[k]);
  }
  LeafStages out;
  for (size_t i = 0; i < count; ++i) {
    const auto stage =
        std::count_if(cuts.begin(), cuts.end(), [&](size_t cut) { return i >= cut; });
    for (const std::string& leaf : line.leaves[i]) out.emplace(leaf, static_cast<int>(stage));
  }
  return out;
}

}  // namespace paddle::partition
