#pragma once
// Batch tiling: finds operations that can be computed for a few samples of the batch at a time, so
// that the activations between them stay in the processor's cache. The batch is the first axis.

#include <cstdint>
#include <set>
#include <vector>

#include "ir/module.h"
#include "tensor/dim.h"

namespace paddle::runtime {

/// Consecutive operations that are all computed for one tile of the batch before the next.
struct BatchTiling {
  std::vector<const ir::Operation*> operations;
  /// Values that are read or written tile by tile, each of `batch` samples. All others are read
  /// whole, and none of the operations produces one.
  std::set<const ir::Value*> tiled;
  int64_t batch = 0;
  int64_t tiles = 0;  ///< of equal size; divides `batch`
};

/// Runs of operations whose values exceed `working_set` bytes whole and fit tile by tile. Weights,
/// which are read again for each tile, count as well. `symbols` binds dims.
std::vector<BatchTiling> find_batch_tilings(const ir::Region& region, const SymbolLookup& symbols,
                                            int64_t working_set);

/// Target working-set size in bytes: half of the last-level cache, or 0 if its size is unknown.
int64_t tile_working_set();

}  // namespace paddle::runtime
