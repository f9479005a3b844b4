#pragma once
// The search for a parallel strategy: all meshes of a cluster with their micro-batches, sharding,
// schedule and recomputation, by predicted time of a step among those that fit in memory.

#include <string>
#include <vector>

#include "tune/parallel/cost_model.h"

namespace paddle::tune {

struct Plan {
  Strategy strategy;
  Prediction prediction;
  bool fits = false;
  std::string reason;  ///< where the time and the memory go
};

struct PlanningResult {
  std::vector<Plan> plans;  ///< the best for each mesh, the fastest that fit first
  int64_t considered = 0;
};

/// `fixed`: "tensor=8" and the like; keys are data, tensor, pipeline, context,
/// expert, sharding, micro_batch, chunks and recompute. kUsage for unknown
/// keys and for constraints that nothing satisfies.
PlanningResult plan_parallel(const Transformer& model, const Cluster& cluster,
                             const std::vector<std::string>& fixed, size_t count);

std::string plans_text(const Transformer& model, const Cluster& cluster,
                       const PlanningResult& result);
std::string plans_json(const Transformer& model, const Cluster& cluster,
                       const PlanningResult& result);

}  // namespace paddle::tune
