#pragma once
// A transport between threads of one process: the virtual ranks of a simulated run.

#include <memory>
#include <vector>

#include "comm/transport.h"

namespace paddle::comm {

/// Connected transports for `size` ranks; each is used by one thread. `machines`: what the
/// transports say about the machine of each rank; empty: all are on one.
std::vector<std::shared_ptr<Transport>> make_local_transports(int size,
                                                              std::vector<int> machines = {});

}  // namespace paddle::comm
