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

/// Reads them from the kernel's files; `membership` and `mount` are elsewhere in tests.
CgroupLimits cgroup_limits(const std::string& membership = "/proc/self/cgroup",
                           const std::string& mount = "/sys/fs/cgroup");

}  // namespace paddle
