#pragma once
// What this process may use while it runs files that nobody vouches for. The memory is that of the
// machine or of the control group, whichever is less; tests and fuzzing set smaller numbers before
// the first use.

#include <cstdint>

namespace paddle {

struct Limits {
  int64_t memory;                             ///< bytes of a plan's values; one result: half
  int64_t loop_turns = int64_t{1} << 20;      ///< of all loops of one run of an imported graph
  int64_t expanded_nodes = int64_t{1} << 24;  ///< of an imported graph, its functions expanded
};

/// The limits of this process; what is written here holds from then on.
Limits& limits();

}  // namespace paddle
