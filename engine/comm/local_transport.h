#pragma once
// A transport between threads of one process: the virtual ranks of a simulated run.

#include <memory>
#include <vector>

#include "comm/transport.h"

namespace paddle::comm {

/// Connected transports for `size` ranks; each is used by one thread.
std::vector<std::shared_ptr<Transport>> make_local_transports(int size);

}  // namespace paddle::comm
