#include "base/resident_memory.h"

#include <sys/resource.h>

namespace paddle {

uint64_t peak_resident_bytes() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace paddle
