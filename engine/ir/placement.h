#pragma once
// Where the elements of a value of several ranks are, as the IR notes it: which dims are split,
// over which axes of the mesh of ranks. The partition pass makes placements; see partition/layout.h
// for what can be done with them.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::ir {

/// A dim split over an axis of the mesh. The dim is seen as [outer, units, rest]; a rank has the
/// same range of the units (partition::shard_bounds) in each of the outer parts. In the fused
/// weight of queries, keys and values, for example, the columns are [3, heads, width] and the heads
/// are split.
struct Split {
  int axis = 0;  ///< of the mesh
  int dim = 0;
  int64_t outer = 1, units = 1;
  bool operator==(const Split&) const = default;
};

/// The splits of a tensor, in the order of dims and, within a dim, from the outermost to the
/// innermost. Empty: each rank has all of it.
using Placement = std::vector<Split>;

/// The form in the text of modules, "split[1: 3x12 over 0]" (dim 1 as 3 parts of 12 units over
/// axis 0); "" without splits.
std::string text(const Placement& placement);

}  // namespace paddle::ir
