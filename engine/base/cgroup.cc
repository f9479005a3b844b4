#include "base/cgroup.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/text.h"

namespace paddle {
namespace {

namespace fs = std::filesystem;

template <class T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

/// The number in a single-value file; nullopt for "max" and missing files.
std::optional<double> number_in(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value ? std::optional<double>(value) : std::nullopt;
}

void read_memory(const fs::path& file, CgroupLimits& limits) {
  const auto bytes = number_in(file);
  // Version 1 writes the largest number of pages where there is no limit.
  if (bytes && *bytes > 0 && *bytes < 0x1p60) lower(limits.memory, static_cast<uint64_t>(*bytes));
}

void read_cores(std::optional<double> quota, std::optional<double> period, CgroupLimits& limits) {
  if (quota && period && *quota > 0 && *period > 0) lower(limits.cores, *quota / *period);
}

void read_group(const fs::path& folder, CgroupLimits& limits) {
  read_memory(folder / "memory.max", limits);
  read_memory(folder / "memory.limit_in_bytes", limits);
  std::ifstream unified(folder / "cpu.max");
  double quota = 0, period = 0;
  if (unified >> quota >> period) read_cores(quota, period, limits);
  read_cores(number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us"),
             limits);
}

/// A group and its ancestors up to the mount. In a container the group's path may be that of the
/// host and not exist; the mount itself is then the group.
void read_upwards(const fs::path& mount, const std::string& group, CgroupLimits& limits) {
  fs::path inside = fs::path(group).relative_path().lexically_normal();
  if (!inside.empty() && *inside.begin() == "..") inside.clear();
  for (;; inside = inside.parent_path()) {
    read_group(mount / inside, limits);
    if (inside.empty()) break;
  }
}

}  // namespace

const CgroupLimits& cgroup_limits() {
  static const CgroupLimits limits = read_cgroup_limits("/proc/self/cgroup", "/sys/fs/cgroup");
  return limits;
}

CgroupLimits read_cgroup_limits(const std::string& membership, const std::string& mount) {
  CgroupLimits limits;
  std::ifstream lines(membership);
  bool any = false;
  for (std::string line; std::getline(lines, line);) {  // "number:controllers:path"
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    any = true;
    if (controllers.empty()) read_upwards(mount, group, limits);
    for (const std::string& controller : split(controllers, ','))
      if (controller == "cpu" || controller == "memory")
        for (const std::string& folder : std::set{controllers, controller})
          read_upwards(fs::path(mount) / folder, group, limits);
  }
  if (!any) read_group(mount, limits);
  return limits;
}

}  // namespace paddle
