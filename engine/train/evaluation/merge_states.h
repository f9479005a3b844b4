#pragma once
// Evaluation on several ranks: each counts its own rows, and the states of the metrics are then
// merged, so all ranks have the results of the whole data.

#include <span>

#include "comm/communicator.h"
#include "metrics/metric_state.h"

namespace paddle::train {

/// Makes each state the sum of those of the group's ranks, with the same bits on all of them. All
/// ranks of the group call it with the same states in the same order.
void merge_states(comm::Communicator& communicator, std::span<const int> group,
                  std::span<metrics::MetricState* const> states);

}  // namespace paddle::train
