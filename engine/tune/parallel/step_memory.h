#pragma once
// The memory of a device in a training step: parameters and states of its part of the model, and
// the activations that the jobs of its pipeline schedule keep at the same time.

#include <vector>

#include "tune/parallel/cost_model.h"

namespace paddle::tune {

struct StepMemory {
  double states = 0;       ///< bytes of parameters, gradients and optimizer states
  double activations = 0;  ///< bytes at the peak
  int64_t rank = 0;        ///< of the pipeline
  double all() const;      ///< with what libraries and buffers take
};

/// The memory of the fullest rank of the pipeline: the first one keeps the most micro-batches and
/// the embedding, the last one the product with the vocabulary and its logits.
StepMemory memory_of_step(const Transformer& model, const Strategy& strategy, double micro_batches);

/// The most micro-batches whose activations each rank of the pipeline keeps, as its job list runs;
/// parts of one where a device has several stages.
std::vector<double> micro_batches_in_flight(const Strategy& strategy, double micro_batches);

}  // namespace paddle::tune
