#include "base/limits.h"

#include <unistd.h>

#include <algorithm>

#include "base/cgroup.h"

namespace paddle {
namespace {

int64_t usable_memory() {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  const int64_t group = static_cast<int64_t>(
      std::min<uint64_t>(cgroup_limits().memory.value_or(INT64_MAX), INT64_MAX));
  return physical > 0 ? std::min(physical, group) : group;
}

}  // namespace

Limits& limits() {
  static Limits all{.memory = usable_memory()};
  return all;
}

}  // namespace paddle
