#pragma once
// Memory that a run needs, known before its first step, and whether this machine has it.

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/plan.h"

namespace paddle::train {

struct MemoryPlan {
  runtime::MemoryReport training;
  std::optional<runtime::MemoryReport> evaluation;
  uint64_t prefetch = 0;   ///< batches made ahead
  uint64_t available = 0;  ///< memory of the machine or its cgroup
  int64_t batch = 0, accumulate = 1, evaluation_batch = 0;

  uint64_t total() const;
  bool fits() const { return total() <= available; }
  /// The setting whose lowering frees the most: "data.batch_size".
  std::string advice() const;
  std::string text() const;  ///< a table, and what would help if it does not fit
  /// Throws kDevice with the numbers and the advice unless it fits.
  void require_fit() const;
};

/// Memory that this process may use: of the machine, or less if its cgroup says so.
uint64_t available_memory();

}  // namespace paddle::train
