// The choice of what the stages of a pipeline compute again instead of keeping it.

#include <algorithm>
#include <utility>

#include "compiler/passes/schedule/dropped_values.h"
#include "partition/communication.h"
#include "train/session/pipeline_stages.h"

namespace paddle::train {
namespace {

/// Bytes of the values that ranks keep between the jobs of a micro-batch, in all stages.
size_t kept_bytes(const partition::StageCut& cut) {
  size_t bytes = 0;
  for (const ir::Value* v : cut.values()) bytes += static_cast<size_t>(partition::bytes_of(*v));
  return bytes;
}

}  // namespace

std::vector<int64_t> PipelineStages::layers_for_budget(
    const ir::Function& function,
    const std::vector<std::vector<std::unordered_set<const ir::Value*>>>& layers) {
  const auto position = static_cast<size_t>(context_.pipeline_position());
  const auto ranks = static_cast<int>(layers.size());
  const uint64_t states = context_.optimizer_bytes([&](const std::string& name) {
    const auto it = leaves_.find(name);
    return it != leaves_.end() && it->second % ranks == static_cast<int>(position);
  });
  const auto needs = [&](size_t count) {
    std::unordered_set<const ir::Value*> dropped;
    for (size_t i = 0; i < count; ++i)
      dropped.insert(layers[position][i].begin(), layers[position][i].end());
    const partition::StageCut cut(function, leaves_, context_.stages(), true,
                                  context_.options.schedule == partition::Schedule::kZeroBubble,
                                  std::move(dropped));
    StageJobs jobs = compile_jobs(cut, false);
    return this->cost(cut, jobs, true).memory.total() + states;
  };
  // The fewest layers that do: more of them never need more.
  size_t low = 0, high = layers[position].size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (needs(middle) <= context_.options.recompute_budget)
      high = middle;
    else
      low = middle + 1;
  }
  // Ranks that differ in `data` and `tensor` only do the same.
  const std::vector<int64_t> of_ranks =
      context_.options.communicator->gather_numbers(static_cast<int64_t>(high));
  const std::vector<int64_t> bytes =
      context_.options.communicator->gather_numbers(static_cast<int64_t>(needs(high)));
  std::vector<int64_t> counts(layers.size(), 0);
  const int axis = context_.options.mesh.axis("pipeline");
  uint64_t most = 0;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const int at = context_.options.mesh.coordinate(static_cast<int>(rank), axis);
    int64_t& count = counts[static_cast<size_t>(at)];
    count = std::max(count, of_ranks[rank]);
    most = std::max(most, static_cast<uint64_t>(bytes[rank]));
  }
  if (most > context_.options.recompute_budget)
    recompute_text_ = str("; a rank needs ", human_bytes(most), ", more than the budget of ",
                          human_bytes(context_.options.recompute_budget));
  return counts;
}

std::unordered_set<const ir::Value*> PipelineStages::dropped_values(ir::Function& function) {
  passes::DroppedValues dropped = passes::dropped_values(function, *context_.options.recompute);
  if (dropped.layers == 0) context_.reject_recompute();
  const bool splits = context_.options.schedule == partition::Schedule::kZeroBubble;
  const bool first = !std::exchange(recompute_chosen_, true);
  std::string layers = std::to_string(dropped.layers);
  if (context_.options.recompute_budget > 0) {
    // The values of each layer, by the rank of the axis that computes it.
    const auto ranks = static_cast<size_t>(context_.pipeline_ranks());
    std::vector<std::vector<std::unordered_set<const ir::Value*>>> by_rank(ranks);
    const partition::StageCut whole(function, leaves_, context_.stages(), true, splits);
    std::unordered_set<const ir::Value*> before;
    for (int most = 1; most <= dropped.layers; ++most) {
      passes::RecomputeOptions some = *context_.options.recompute;
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
    if (first) recomputed_layers_ = layers_for_budget(function, by_rank);
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
    const partition::StageCut whole(function, leaves_, context_.stages(), true, splits);
    const partition::StageCut after(function, leaves_, context_.stages(), true, splits,
                                    dropped.values);
    recompute_text_ =
        str("recompute: ", layers, " layers; the stages keep ", human_bytes(kept_bytes(whole)),
            " → ", human_bytes(kept_bytes(after)), " for each micro-batch", recompute_text_);
  }
  return std::move(dropped.values);
}

}  // namespace paddle::train
