// The choice of what a training step computes again instead of keeping it.

#include <algorithm>
#include <utility>

#include "compiler/passes/schedule/dropped_values.h"
#include "ir/clone.h"
#include "partition/communication.h"
#include "runtime/compile.h"
#include "train/session/compiled_part.h"

namespace paddle::train {

runtime::MemoryReport Session::memory_with(const ir::Function& function,
                                           std::optional<passes::RecomputeOptions> recompute) {
  std::vector<Layout> layouts;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const TensorType& type = function.body.arguments[i]->type;
    const bool is_known = std::all_of(type.shape.begin(), type.shape.end(),
                                      [](const Dim& d) { return d.is_constant(); });
    layouts.push_back(
        Layout::contiguous(type.dtype, is_known ? concrete(type.shape) : shapes_.at(i)));
  }
  compiler::CompileOptions compile = options_.compile;
  compile.recompute = std::move(recompute);
  return runtime::compile(ir::clone(function), compile)->plan(layouts).memory();
}

namespace {

[[noreturn]] void reject_patterns(const passes::RecomputeOptions& options) {
  fail(ErrorCode::kConfig, "parallel.recompute: no layer matches ", join(options.layers, ", "));
}

/// Bytes of the values that ranks keep between the jobs of a micro-batch, in all stages.
size_t kept_bytes(const partition::StageCut& cut) {
  size_t bytes = 0;
  for (const ir::Value* v : cut.values()) bytes += static_cast<size_t>(partition::bytes_of(*v));
  return bytes;
}

}  // namespace

uint64_t Session::optimizer_bytes(const std::function<bool(const std::string&)>& is_here) const {
  const int data = options_.mesh.axis_size_of("data");
  int64_t bytes = 0;
  for (const auto& [name, parameter] : store_.parameters) {
    if (!is_here(name)) continue;
    const Array* const exact = store_.master(name);
    const Array& value = exact ? *exact : parameter.value;
    for (const NamedOptimizer& each : step_->definition().optimizers) {
      if (each.optimizer->is_frozen(name)) continue;
      for (const optim::StateSlot& slot : each.optimizer->slots(name, value.shape)) {
        const Dims shape = slot.shape.value_or(value.shape);
        bytes += storage_bytes(value.dtype, element_count(std::span(shape)));
      }
      break;  // one optimizer updates it
    }
  }
  return static_cast<uint64_t>(options_.sharding > 0 ? (bytes + data - 1) / data : bytes);
}

std::vector<int64_t> Session::layers_for_budget(
    const ir::Function& function, const partition::LeafStages& leaves, int stages,
    const std::vector<std::vector<std::unordered_set<const ir::Value*>>>& layers) {
  const auto position = static_cast<size_t>(pipeline_position());
  const auto ranks = static_cast<int>(layers.size());
  const uint64_t states = optimizer_bytes([&](const std::string& name) {
    const auto it = leaves.find(name);
    return it != leaves.end() && it->second % ranks == static_cast<int>(position);
  });
  const auto needs = [&](size_t count) {
    std::unordered_set<const ir::Value*> dropped;
    for (size_t i = 0; i < count; ++i)
      dropped.insert(layers[position][i].begin(), layers[position][i].end());
    const partition::StageCut cut(function, leaves, stages, true,
                                  options_.schedule == partition::Schedule::kZeroBubble,
                                  std::move(dropped));
    StageJobs jobs = compile_jobs(cut, false);
    return plan_jobs(cut, jobs, true).memory.total() + states;
  };
  // The fewest layers that do: more of them never need more.
  size_t low = 0, high = layers[position].size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (needs(middle) <= options_.recompute_budget)
      high = middle;
    else
      low = middle + 1;
  }
  // Ranks that differ in `data` and `tensor` only do the same.
  const std::vector<int64_t> of_ranks =
      options_.communicator->gather_numbers(static_cast<int64_t>(high));
  const std::vector<int64_t> bytes =
      options_.communicator->gather_numbers(static_cast<int64_t>(needs(high)));
  std::vector<int64_t> counts(layers.size(), 0);
  const int axis = options_.mesh.axis("pipeline");
  uint64_t most = 0;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const int at = options_.mesh.coordinate(static_cast<int>(rank), axis);
    int64_t& count = counts[static_cast<size_t>(at)];
    count = std::max(count, of_ranks[rank]);
    most = std::max(most, static_cast<uint64_t>(bytes[rank]));
  }
  if (most > options_.recompute_budget)
    recompute_text_ = str("; a rank needs ", human_bytes(most), ", more than the budget of ",
                          human_bytes(options_.recompute_budget));
  return counts;
}

std::unordered_set<const ir::Value*> Session::dropped_in_pipeline(
    ir::Function& function, const partition::LeafStages& leaves, int stages) {
  passes::DroppedValues dropped = passes::dropped_values(function, *options_.recompute);
  if (dropped.layers == 0) reject_patterns(*options_.recompute);
  const bool splits = options_.schedule == partition::Schedule::kZeroBubble;
  const bool first = !std::exchange(recompute_chosen_, true);
  std::string layers = std::to_string(dropped.layers);
  if (options_.recompute_budget > 0) {
    // The values of each layer, by the rank of the axis that computes it.
    const auto ranks = static_cast<size_t>(options_.mesh.axis_size_of("pipeline"));
    std::vector<std::vector<std::unordered_set<const ir::Value*>>> by_rank(ranks);
    const partition::StageCut whole(function, leaves, stages, true, splits);
    std::unordered_set<const ir::Value*> before;
    for (int most = 1; most <= dropped.layers; ++most) {
      passes::RecomputeOptions some = *options_.recompute;
      some.most = most;
      std::unordered_set<const ir::Value*> values = passes::dropped_values(function, some).values;
      std::unordered_set<const ir::Value*> layer;
      int stage = -1;
      for (const ir::Value* v : values)
        if (!before.contains(v)) {
          layer.insert(v);
          stage = std::max(stage, whole.stage_of(v));
        }
      if (stage >= 0) by_rank[static_cast<size_t>(stage) % ranks].push_back(std::move(layer));
      before = std::move(values);
    }
    if (first) recomputed_layers_ = layers_for_budget(function, leaves, stages, by_rank);
    dropped.values.clear();
    int64_t count = 0;
    for (size_t rank = 0; rank < ranks; ++rank)
      for (int64_t i = 0; i < recomputed_layers_[rank]; ++i, ++count) {
        const auto& layer = by_rank[rank][static_cast<size_t>(i)];
        dropped.values.insert(layer.begin(), layer.end());
      }
    layers = str(count, " of ", dropped.layers);
  }
  if (first) {
    const partition::StageCut whole(function, leaves, stages, true, splits);
    const partition::StageCut after(function, leaves, stages, true, splits, dropped.values);
    recompute_text_ =
        str("recompute: ", layers, " layers; the stages keep ", human_bytes(kept_bytes(whole)),
            " → ", human_bytes(kept_bytes(after)), " for each micro-batch", recompute_text_);
  }
  return std::move(dropped.values);
}

std::optional<passes::RecomputeOptions> Session::choose_recompute(const ir::Function& function) {
  if (!options_.recompute || recompute_chosen_) return options_.recompute;
  recompute_chosen_ = true;
  passes::RecomputeOptions& chosen = *options_.recompute;
  const auto copy = ir::clone(function);
  runtime::optimize(*copy, options_.compile);
  const passes::Recomputed all = passes::recompute(*copy, chosen);
  if (all.layers == 0) reject_patterns(chosen);
  if (options_.recompute_budget > 0) {
    // The fewest layers that do: more of them never need more.
    const uint64_t states =
        options_.accumulate > 1 ? optimizer_bytes([](const std::string&) { return true; }) : 0;
    const auto fits = [&](int layers) {
      chosen.most = layers;
      return memory_with(function, chosen).total() + states <= options_.recompute_budget;
    };
    int low = 0, high = all.layers;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (fits(middle))
        high = middle;
      else
        low = middle + 1;
    }
    chosen.most = high;
  }
  if (shapes_.empty()) return options_.recompute;
  const runtime::MemoryReport before = memory_with(function, std::nullopt);
  const runtime::MemoryReport after = memory_with(function, chosen);
  const int layers = chosen.most < 0 ? all.layers : chosen.most;
  recompute_text_ =
      str("recompute: ", layers, " of ", all.layers, " layers; activations and temporaries ",
          human_bytes(before.arena), " → ", human_bytes(after.arena));
  if (options_.recompute_budget > 0 && after.total() > options_.recompute_budget)
    recompute_text_ += str("; a step needs ", human_bytes(after.total()),
                           ", more than the budget of ", human_bytes(options_.recompute_budget));
  return options_.recompute;
}

}  // namespace paddle::train
