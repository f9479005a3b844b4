#include "partition/mesh.h"

#include "base/error.h"
#include "base/text.h"

namespace paddle::partition {

int Mesh::size() const {
  int size = 1;
  for (const MeshAxis& axis : axes_) size *= axis.size;
  return size;
}

int Mesh::axis(const std::string& name) const {
  for (size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == name) return static_cast<int>(i);
  for (size_t i = 0; i < views_.size(); ++i)
    if (views_[i].axis.name == name) return static_cast<int>(axes_.size() + i);
  return -1;
}

void Mesh::add_view(std::string name, const std::string& of, int size) {
  const int whole = axis(of);
  ensure(whole >= 0 && size > 0 && axis_size(whole) % size == 0, "mesh: a view of ", size,
         " ranks does not divide the axis ", of);
  views_.push_back({{std::move(name), size}, whole});
}

const MeshAxis& Mesh::at(int axis) const {
  const auto i = static_cast<size_t>(axis);
  return i < axes_.size() ? axes_[i] : views_.at(i - axes_.size()).axis;
}

int Mesh::whole_axis(int axis) const {
  const auto i = static_cast<size_t>(axis);
  return i < axes_.size() ? axis : views_.at(i - axes_.size()).of;
}

std::vector<int64_t> Mesh::replicas(int rank, int view) const {
  std::vector<int64_t> out;
  for (const int64_t other : group(rank, whole_axis(view)))
    if (coordinate(static_cast<int>(other), view) == coordinate(rank, view)) out.push_back(other);
  return out;
}

int Mesh::stride(int axis) const {
  axis = whole_axis(axis);
  int stride = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < axes_.size(); ++i) stride *= axes_[i].size;
  return stride;
}

int Mesh::coordinate(int rank, int axis) const { return rank / stride(axis) % axis_size(axis); }

std::vector<int64_t> Mesh::group(int rank, int axis) const {
  std::vector<int64_t> ranks;
  const int first = rank - coordinate(rank, axis) * stride(axis);
  for (int i = 0; i < axis_size(axis); ++i) ranks.push_back(first + i * stride(axis));
  return ranks;
}

std::string Mesh::text() const {
  std::string out;
  for (const MeshAxis& axis : axes_)
    out += str(out.empty() ? "" : " x ", axis.name, " ", axis.size);
  for (const View& view : views_)
    out += str(", ", view.axis.name, " ", view.axis.size, " within ",
               axes_[static_cast<size_t>(view.of)].name);
  return out;
}

std::pair<int64_t, int64_t> shard_bounds(int64_t count, int i, int parts) {
  return {count * i / parts, count * (i + 1) / parts};
}

}  // namespace paddle::partition
