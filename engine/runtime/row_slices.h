#pragma once
// Which operations of a function can be computed for some rows of their values at a time (rows are
// the indices of the first dim, as the images of a batch), and where that keeps values in the
// processor's cache that would else go through memory.

#include <cstdint>
#include <set>
#include <vector>

#include "ir/module.h"
#include "tensor/dim.h"

namespace paddle::runtime {

/// Operations that follow each other, all computed for one part of the rows before the next.
struct RowSlices {
  std::vector<const ir::Operation*> operations;
  /// What is read and given in parts: values of `rows` rows. All else is read whole, and none of
  /// the operations gives it.
  std::set<const ir::Value*> cut;
  int64_t rows = 0;
  int64_t slices = 0;  ///< equal parts; divides `rows`
};

/// Runs of operations whose values are larger than `cache` bytes and fit in parts. Weights that are
/// read again for each part count as well. Dims take their values from `symbols`.
std::vector<RowSlices> find_row_slices(const ir::Region& region, const SymbolLookup& symbols,
                                       int64_t cache);

/// Bytes that what one operation reads and gives had better stay within: a part of the processor's
/// last cache; 0 if its size is unknown.
int64_t cache_share();

}  // namespace paddle::runtime
