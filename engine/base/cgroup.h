#pragma once
// The limits that a container or service manager sets on this process: control groups of version 1
// and 2, from the process's own group up to the root, the smallest counting.

#include <cstdint>
#include <optional>
#include <string>

namespace paddle {

struct CgroupLimits {
  std::optional<double> cores;     ///< processor time over time
  std::optional<uint64_t> memory;  ///< bytes
};

/// Those of this process, as they were when first asked for: reading them takes a millisecond.
const CgroupLimits& cgroup_limits();

/// Reads them from the files that the kernel has at `membership` and under `mount`.
CgroupLimits read_cgroup_limits(const std::string& membership, const std::string& mount);

}  // namespace paddle
