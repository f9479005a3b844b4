#pragma once
// Resource limits for running untrusted files. The memory limit is that of the machine or of the
// control group, whichever is smaller; tests and fuzzers set lower limits before the first use.

#include <cstdint>

namespace paddle {

struct Limits {
  int64_t memory;  ///< bytes of a plan's values; a single result may take half
  int64_t max_loop_iterations = int64_t{1} << 20;  ///< of all loops in one run of an imported graph
  int64_t expanded_nodes = int64_t{1} << 24;  ///< of an imported graph after inlining functions
};

/// The limits of this process; assignments apply from then on.
Limits& limits();

}  // namespace paddle
