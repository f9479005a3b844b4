#pragma once
// A simulated run: all ranks as threads of one process. It computes the same bits as a run of as
// many processes, which makes it the reference and the debugger of parallel runs.

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace paddle::comm {

/// Calls `body` on a thread for each of `ranks` ranks; each computes on one thread. If a rank
/// fails, the others are woken up, and the first error is thrown that is not about a lost peer.
/// `machines`: those of the ranks, see Transport::machine; empty: all are on one.
void simulate(int ranks, const std::function<void(const std::shared_ptr<Communicator>&)>& body,
              std::vector<int> machines = {});

}  // namespace paddle::comm
