#pragma once
// The limits that a container or service manager sets on this process: control groups of version 1
// and 2, from the process's own group up to the root; the smallest limit applies.

#include <cstdint>
#include <optional>
#include <string>

namespace paddle {

struct CgroupLimits {
  std::optional<double> cores;     ///< processor time over time
  std::optional<uint64_t> memory;  ///< bytes
};

/// The limits of this process, cached on first use: reading them takes a millisecond.
const CgroupLimits& cgroup_limits();

/// Reads the limits from the membership file and the cgroup file system mounted at `mount`.
CgroupLimits read_cgroup_limits(const std::string& membership, const std::string& mount);

}  // namespace paddle
