#include "partition/layout.h"

#include <algorithm>
#include <cstring>

namespace paddle::partition {
namespace {

bool has_unit(const std::vector<std::pair<int64_t, int64_t>>& ranges, int64_t unit) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return unit >= range.first && unit < range.second; });
}

/// The positions along a dim that a rank has, in order.
std::vector<int64_t> positions(int64_t size, int dim, const Placement& placement, const Mesh& mesh,
                               int rank) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < size; ++i) out.push_back(i);
  for (const Split& split : placement) {
    if (split.dim != dim) continue;
    const auto ranges = shard_ranges(split, mesh, rank);
    const int64_t rest = size / split.outer / split.units;
    std::erase_if(out, [&](int64_t i) { return !has_unit(ranges, i / rest % split.units); });
  }
  return out;
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> shard_ranges(const Split& split, const Mesh& mesh,
                                                      int rank) {
  const int self = mesh.coordinate(rank, split.axis), ranks = mesh.axis_size(split.axis);
  if (split.order == ir::SplitOrder::kStraight) return {shard_bounds(split.units, self, ranks)};
  return {shard_bounds(split.units, self, 2 * ranks),
          shard_bounds(split.units, 2 * ranks - 1 - self, 2 * ranks)};
}

std::string text(const Placement& placement, const Dims& shape, const Mesh& mesh) {
  std::string out;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::string dim = std::to_string(shape[d]);
    for (const Split& split : placement)
      if (split.dim == static_cast<int>(d))
        dim += str(" ", mesh.axis_name(split.axis),
                   split.order == ir::SplitOrder::kZigzag ? " in zigzag order" : "",
                   split.outer > 1 ? str(" in each of ", split.outer, " parts") : "");
    out += (out.empty() ? "" : ", ") + dim;
  }
  return "[" + out + "]";
}

Dims shard_shape(const Dims& shape, const Placement& placement, const Mesh& mesh, int rank) {
  Dims out = shape;
  for (const Split& split : placement) {
    int64_t units = 0;
    for (const auto& [begin, end] : shard_ranges(split, mesh, rank)) units += end - begin;
    int64_t& size = out[static_cast<size_t>(split.dim)];
    size = size / split.units * units;
  }
  return out;
}

Array shard(const Array& logical, const Placement& placement, const Mesh& mesh, int rank) {
  if (placement.empty()) return logical;
  const Array source = logical.contiguous();
  Array out = Array::empty(logical.dtype, shard_shape(logical.shape, placement, mesh, rank));
  const auto item = static_cast<size_t>(item_size(logical.dtype));
  for_each_run(logical.shape, placement, mesh, rank, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(out.data<std::byte>() + static_cast<size_t>(to) * item,
                source.data<std::byte>() + static_cast<size_t>(from) * item,
                static_cast<size_t>(count) * item);
  });
  return out;
}

void for_each_run(const Dims& shape, const Placement& placement, const Mesh& mesh, int rank,
                  const std::function<void(int64_t, int64_t, int64_t)>& run) {
  if (placement.empty()) return run(0, 0, element_count(std::span(shape)));
  std::vector<std::vector<int64_t>> here;
  for (size_t d = 0; d < shape.size(); ++d)
    here.push_back(positions(shape[d], static_cast<int>(d), placement, mesh, rank));
  // Dims after the last split one are copied as a whole.
  size_t last = 0;
  for (const Split& split : placement) last = std::max(last, static_cast<size_t>(split.dim));
  const Dims strides = contiguous_strides(shape);
  const int64_t inner = strides[last];
  std::vector<size_t> at(last + 1, 0);
  for (const auto& list : here)
    if (list.empty()) return;
  for (int64_t done = 0;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < last; ++d) offset += here[d][at[d]] * strides[d];
    // Adjacent positions of the last split dim form one run.
    const auto& line = here[last];
    for (size_t begin = 0; begin < line.size();) {
      size_t end = begin + 1;
      while (end < line.size() && line[end] == line[end - 1] + 1) ++end;
      const auto count = static_cast<int64_t>(end - begin) * inner;
      run(offset + line[begin] * inner, done, count);
      done += count;
      begin = end;
    }
    size_t d = last;
    while (d > 0 && ++at[d - 1] == here[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

void unshard(const Array& part, Array& logical, const Placement& placement, const Mesh& mesh,
             int rank) {
  const auto item = static_cast<size_t>(item_size(logical.dtype));
  for_each_run(logical.shape, placement, mesh, rank, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(logical.data<std::byte>() + static_cast<size_t>(from) * item,
                part.data<std::byte>() + static_cast<size_t>(to) * item,
                static_cast<size_t>(count) * item);
  });
}

}  // namespace paddle::partition
