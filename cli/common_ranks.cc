#include "common_ranks.h"

#include <algorithm>

#include "base/parallel.h"
#include "common.h"

namespace paddle::cli {

void check_simulated(const comm::Membership& membership, int simulated) {
  if (membership.size > 1 && simulated > 1)
    fail(ErrorCode::kUsage, "--simulate runs all ranks in one process; ",
         membership.source.empty() ? "paddle-launch" : membership.source, " has started ",
         membership.size, " of them");
}

void use_threads_of_rank(const comm::Membership& membership, int threads) {
  use_config_threads(threads > 0 || membership.size == 1
                         ? threads
                         : std::max(1, available_cores() / membership.local_size));
}

}  // namespace paddle::cli
