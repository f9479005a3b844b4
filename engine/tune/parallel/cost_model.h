#pragma once
// The time and the memory of a training step of a transformer under a parallel strategy, predicted
// from the shapes, the rates of the devices and the links. docs/performance/planner.md states the
// formulas and how far they are from published runs.

#include <string>

#include "partition/schedule.h"
#include "tune/parallel/cluster.h"
#include "tune/parallel/transformer.h"

namespace paddle::tune {

enum class Recompute { kNone, kSelective, kFull };

/// With tensor parallelism, what it would replicate is split along the sequence. Ranks lie data
/// outermost, then pipeline, context and tensor; experts are spread over the data ranks.
struct Strategy {
  int64_t data = 1, pipeline = 1, context = 1, tensor = 1, expert = 1;
  int64_t chunks = 1;  ///< pipeline stages of a device; 1 unless interleaved
  partition::Schedule schedule = partition::Schedule::kOneForwardOneBackward;
  int64_t sharding = 0;     ///< 1 optimizer states, 2 and gradients, 3 and parameters, over data
  int64_t shards = 0;       ///< ranks of a sharding group; 0: all of data
  int64_t micro_batch = 1;  ///< sequences
  Recompute recompute = Recompute::kNone;
  bool offload = false;  ///< the optimizer runs on the host
  /// The ranks of data are neighbors and the pipeline is outermost, as Megatron-LM and DeepSpeed
  /// place them.
  bool pipeline_outermost = false;
  /// Gradients are added while the last backward pass runs.
  bool overlap = true;

  /// Devices between neighbors of an axis.
  int64_t data_stride() const { return tensor * context * (pipeline_outermost ? 1 : pipeline); }
  int64_t pipeline_stride() const { return tensor * context * (pipeline_outermost ? data : 1); }
  int64_t devices() const { return data * pipeline * context * tensor; }
  int64_t sharding_ranks() const { return sharding == 0 ? 1 : shards > 0 ? shards : data; }
};

/// "data 8, tensor 4, pipeline 12 (1f1b), micro-batch 2, sharding 1, recompute full"
std::string text(const Strategy& strategy);

struct Prediction {
  double seconds = 0;  ///< of a step
  // Shares of a step, which explain it.
  double compute = 0, tensor = 0, data = 0, pipeline = 0, experts = 0, context = 0, optimizer = 0;
  double memory = 0;  ///< bytes of the fullest device
  double state_memory = 0, activation_memory = 0;
  double micro_batches = 0;  ///< of a data rank
};

Prediction predict(const Transformer& model, const Cluster& cluster, const Strategy& strategy);

}  // namespace paddle::tune
