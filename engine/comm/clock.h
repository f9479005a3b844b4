#pragma once
// The steady clocks of ranks on several machines, compared by messages.

#include <vector>

#include "comm/communicator.h"

namespace paddle::comm {

/// Nanoseconds to add to the steady clock of each rank to get that of rank 0, on rank 0; empty on
/// the others. All ranks must call it. An offset that is smaller than the error of its measurement
/// (half of the shortest round trip) is 0, as between processes of one machine.
std::vector<int64_t> clock_offsets(Communicator& communicator);

}  // namespace paddle::comm
