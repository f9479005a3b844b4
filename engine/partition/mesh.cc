#include "partition/mesh.h"

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
  return -1;
}

int Mesh::stride(int axis) const {
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
  return out;
}

std::pair<int64_t, int64_t> shard_bounds(int64_t count, int i, int parts) {
  return {count * i / parts, count * (i + 1) / parts};
}

}  // namespace paddle::partition
