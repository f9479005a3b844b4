#pragma once
// A look at the connections of a run before it starts: versions, and how fast ranks reach each
// other.

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace paddle::launch {

struct LinkTimes {
  double barrier = 0;  ///< seconds, the median of many
  struct Reduction {
    int64_t bytes = 0;
    double seconds = 0;  ///< of an all-reduce of float32, the median
    double bandwidth() const { return static_cast<double>(bytes) / seconds; }  ///< bytes a second
  };
  std::vector<Reduction> reductions;
};

/// Measures on all ranks, which must call it together. kConfig if they have different versions.
LinkTimes check_links(comm::Communicator& communicator, const std::string& version,
                      const std::vector<int64_t>& sizes);

/// The times as a table.
std::string text(const LinkTimes& times, int ranks);

}  // namespace paddle::launch
