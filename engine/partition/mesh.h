#pragma once
// The mesh: the ranks of a run as a grid with named axes, outermost first. Ranks that differ only
// in their coordinate along one axis form a group, within which collectives over that axis run.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace paddle::partition {

struct MeshAxis {
  std::string name;
  int size = 1;
};

class Mesh {
 public:
  Mesh() = default;
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int size() const;
  int axis(const std::string& name) const;  ///< its index; -1 if there is none
  int axis_size(int axis) const { return axes_[static_cast<size_t>(axis)].size; }
  /// 1 for an axis that the mesh does not have.
  int axis_size_of(const std::string& name) const {
    return axis(name) < 0 ? 1 : axis_size(axis(name));
  }
  int coordinate(int rank, int axis) const;
  /// The ranks of `rank`'s group along the axis, in ascending order.
  std::vector<int64_t> group(int rank, int axis) const;
  std::string text() const;  ///< "data 2 x tensor 2"

 private:
  int stride(int axis) const;
  std::vector<MeshAxis> axes_;
};

/// The units [begin, end) of `count` that coordinate `i` of `parts` has. All splits in the program
/// use these bounds: the parts are as equal as possible, and any count can be split.
std::pair<int64_t, int64_t> shard_bounds(int64_t count, int i, int parts);

}  // namespace paddle::partition
