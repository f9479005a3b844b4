#pragma once
// Ranks of a command: processes that something started, or threads (--simulate).

#include "comm/join.h"

namespace paddle::cli {

/// kUsage if --simulate N was given to one of several processes.
void check_simulated(const comm::Membership& membership, int simulated);

/// Uses `threads`, or, if that is 0 and there are several processes, this one's share of the cores.
void use_threads_of_rank(const comm::Membership& membership, int threads);

}  // namespace paddle::cli
