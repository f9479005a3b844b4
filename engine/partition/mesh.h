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
  /// Adds a view: the inner part of an axis, of a size that divides it, under a name of its own.
  /// Views are not axes of the grid, but have numbers, coordinates and groups as axes do.
  void add_view(std::string name, const std::string& of, int size);

  const std::vector<MeshAxis>& axes() const { return axes_; }  ///< without views
  int size() const;
  int axis(const std::string& name) const;  ///< its index; -1 if there is none
  int axis_size(int axis) const { return at(axis).size; }
  const std::string& axis_name(int axis) const { return at(axis).name; }
  /// The axis that a view is a part of; an axis itself.
  int whole_axis(int axis) const;
  /// 1 for an axis that the mesh does not have.
  int axis_size_of(const std::string& name) const {
    return axis(name) < 0 ? 1 : axis_size(axis(name));
  }
  int coordinate(int rank, int axis) const;
  /// The ranks of `rank`'s group along the axis, in ascending order.
  std::vector<int64_t> group(int rank, int axis) const;
  /// The ranks that have the same coordinate as `rank` in a view, and in all other axes but the one
  /// that it is a part of, in ascending order.
  std::vector<int64_t> replicas(int rank, int view) const;
  std::string text() const;  ///< "data 2 x tensor 2"

 private:
  struct View {
    MeshAxis axis;
    int of;
  };
  const MeshAxis& at(int axis) const;
  int stride(int axis) const;
  std::vector<MeshAxis> axes_;
  std::vector<View> views_;
};

/// The units [begin, end) of `count` that coordinate `i` of `parts` has. All straight splits use
/// these bounds, and zigzag ones for their blocks: the parts are as equal as possible, and any
/// count can be split.
std::pair<int64_t, int64_t> shard_bounds(int64_t count, int i, int parts);

}  // namespace paddle::partition
