#include "tune/parallel/step_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

namespace paddle::tune {
namespace {

constexpr double kFixed = 1.5e9;  ///< bytes of libraries, communication buffers, fragmentation
constexpr double kLogitTokens = 16384;  ///< whose logits are in memory at the same time

/// Bytes of activations that a token of a layer keeps until its backward pass.
double activation_bytes(const Transformer& m, const Strategy& s, Recompute recompute) {
  const double hidden = real(m.hidden), size = real(m.head_size);
  if (recompute == Recompute::kFull) return m.item_bytes() * hidden / real(s.tensor);
  const double whole =
      m.item_bytes() * (6 * hidden + size * real(2 * m.heads + 2 * m.kv_heads) +
                        (m.gated ? 3 : 2) * real(m.ffn) * real(m.experts_per_token));
  return whole / real(s.tensor) * (recompute == Recompute::kSelective ? 0.6 : 1);
}

/// Bytes of parameters, float32 gradients, and two moments, with float32 masters of 16-bit
/// parameters, of a device that holds `dense` and `experts` parameters before sharding.
double state_bytes(const Transformer& m, const Strategy& s, double dense, double experts,
                   double layers) {
  const double shards = real(s.sharding_ranks());
  const auto shard = [&](bool is_sharded) {
    const double ranks = is_sharded ? shards : 1;
    return dense / ranks + experts / std::max(1.0, ranks / real(s.expert));
  };
  const double moments = m.precision == "float32" ? 8 : 12;
  double out = m.item_bytes() * shard(s.sharding >= 3) + 4 * shard(s.sharding >= 2);
  if (!s.offload) out += moments * shard(true);
  // Gathered parameters of the layer that runs and of the one after it.
  if (s.sharding >= 3) out += 2 * m.item_bytes() * (dense + experts) / std::max(1.0, layers);
  return out;
}

/// Micro-batches after which a schedule keeps no more of them: it has then come out of its warm-up.
int64_t enough_micro_batches(const Strategy& s, double micro_batches) {
  const auto all = static_cast<int64_t>(std::ceil(micro_batches));
  const int64_t whole_groups = (all + s.pipeline - 1) / s.pipeline * s.pipeline;
  return std::min(s.schedule == partition::Schedule::kInterleaved ? whole_groups : all,
                  2 * s.pipeline);
}

}  // namespace

double StepMemory::all() const { return states + activations + kFixed; }

std::vector<double> micro_batches_in_flight(const Strategy& s, double micro_batches) {
  const auto ranks = static_cast<size_t>(s.pipeline);
  if (s.schedule == partition::Schedule::kForwardThenBackward || s.pipeline == 1)
    return std::vector<double>(
        ranks, s.schedule == partition::Schedule::kForwardThenBackward ? micro_batches : 1);
  using Key = std::tuple<partition::Schedule, int64_t, int64_t, int64_t>;
  static std::mutex mutex;
  static std::map<Key, std::vector<double>> known;
  const int64_t count = enough_micro_batches(s, micro_batches);
  const std::lock_guard lock(mutex);
  const auto [it, added] = known.try_emplace(Key(s.schedule, s.pipeline, s.chunks, count));
  if (!added) return it->second;
  const partition::PipelineShape shape{s.schedule, static_cast<int>(s.pipeline),
                                       static_cast<int>(s.chunks), static_cast<int>(count)};
  for (const int active :
       partition::replay(partition::make_job_lists(shape), shape, {}).most_active)
    it->second.push_back(real(active) / real(s.chunks));
  return it->second;
}

StepMemory memory_of_step(const Transformer& m, const Strategy& s, double micro_batches) {
  const double layers = std::ceil(real(m.layers) / real(s.pipeline * s.chunks)) * real(s.chunks);
  const double tokens = real(s.micro_batch) * real(m.sequence) / real(s.context);
  const double embedding = real(m.hidden) * real(m.vocabulary);
  const double embeddings = m.tied ? 1 : 2;
  const double block = (m.dense_parameters() - embeddings * embedding) / real(m.layers) * layers;
  const double experts = m.expert_parameters() / real(m.layers) * layers / real(s.expert);
  const double kept = layers * tokens * activation_bytes(m, s, s.recompute);
  // The values that the backward pass of a layer computes again, and the logits in 16 and 32 bits
  // with their gradient. They do not live at the same time. Losses over long sequences are computed
  // in parts.
  const double one_layer = tokens * activation_bytes(m, s, Recompute::kNone);
  const double logits = std::min(tokens, kLogitTokens) * real(m.vocabulary) * 10 / real(s.tensor);
  const std::vector<double> in_flight = micro_batches_in_flight(s, micro_batches);
  StepMemory most;
  for (int64_t rank = 0; rank < s.pipeline; ++rank) {
    const bool is_last = rank == s.pipeline - 1;
    const double here = s.pipeline == 1 ? embeddings : rank == 0 || is_last ? 1 : 0;
    const double dense = block + here * embedding;
    const StepMemory own{
        state_bytes(m, s, dense / real(s.tensor), experts, layers),
        in_flight[static_cast<size_t>(rank)] * kept + std::max(one_layer, is_last ? logits : 0),
        rank};
    if (rank == 0 || own.all() > most.all()) most = own;
  }
  return most;
}

}  // namespace paddle::tune
