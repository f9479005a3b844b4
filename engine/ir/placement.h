#pragma once
// Where the elements of a value of several ranks are, as the IR notes it: which dims are split,
// over which axes of the mesh of ranks. The partition pass makes placements; see partition/layout.h
// for what can be done with them.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::ir {

/// Which units of a split dim the ranks have.
enum class SplitOrder : uint8_t {
  kStraight,  ///< each rank one range
  /// The units are cut into two blocks for each of P ranks; rank r has the blocks r and 2P - 1 - r.
  /// Under a causal mask all ranks then have the same number of pairs of positions.
  kZigzag,
};

/// A dim split over an axis of the mesh. The dim is seen as [outer, units, rest]; a rank has the
/// same units (partition::shard_ranges) in each of the outer parts. In the fused weight of queries,
/// keys and values, for example, the columns are [3, heads, width] and the heads are split.
struct Split {
  /// Of the mesh: an axis, or a view that is a fraction of one (partition::Mesh::add_view).
  int axis = 0;
  int dim = 0;
  int64_t outer = 1, units = 1;
  SplitOrder order = SplitOrder::kStraight;
  bool operator==(const Split&) const = default;
};

/// The splits of a tensor, in the order of dims and, within a dim, from the outermost to the
/// innermost. Empty: each rank has all of it.
using Placement = std::vector<Split>;

/// The form in the text of modules, "split[1: 3x12 over 0]" (dim 1 as 3 parts of 12 units over
/// axis 0), with "zigzag" after the axis; "" without splits.
std::string text(const Placement& placement);

}  // namespace paddle::ir
