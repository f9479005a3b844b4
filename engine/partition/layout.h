#pragma once
// Where the elements of a logical tensor are: the dims of it that are split over axes of the mesh,
// and the part of a host array that a rank has.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/placement.h"
#include "partition/mesh.h"
#include "tensor/tensor.h"

namespace paddle::partition {

using ir::Placement;
using ir::Split;
using Placements = std::map<std::string, Placement>;

/// The units [begin, end) that a rank has of a split dim, in ascending order: one range, or two of
/// a zigzag split. Ranges may be empty.
std::vector<std::pair<int64_t, int64_t>> shard_ranges(const Split& split, const Mesh& mesh,
                                                      int rank);
/// "[128, 384 tensor in each of 3 parts]": the shape with its splits, for messages.
std::string text(const Placement& placement, const Dims& shape, const Mesh& mesh);
/// The shape of the rank's part.
Dims shard_shape(const Dims& shape, const Placement& placement, const Mesh& mesh, int rank);
/// The rank's part of a logical array, contiguous. Without splits the array itself.
Array shard(const Array& logical, const Placement& placement, const Mesh& mesh, int rank);
/// Calls `run(first element in the logical tensor, first element in the part, elements)` for the
/// pieces of the rank's part that lie together in both.
void for_each_run(const Dims& shape, const Placement& placement, const Mesh& mesh, int rank,
                  const std::function<void(int64_t, int64_t, int64_t)>& run);
/// Copies the rank's part into its place in the logical array, which is contiguous.
void unshard(const Array& part, Array& logical, const Placement& placement, const Mesh& mesh,
             int rank);

}  // namespace paddle::partition
