// The parts of values that a rank has: their shapes, and how one placement becomes another.

#include "ops/generated/comm.h"
#include "ops/generated/shape.h"
#include "partition/localize.h"

namespace paddle::partition {

using ir::Value;

SplitAtoms Localizer::whole(const Value& value) const {
  return SplitAtoms(analysis_.dims(value).size(), false);
}

Placement Localizer::placement(const Value& value, const SplitAtoms& split) const {
  Placement out;
  size_t at = 0;
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    int64_t before = 1;
    for (const int atom : analysis_.dim(value, d)) {
      if (split[at++])
        out.push_back(
            {analysis_.any_axis(atom), static_cast<int>(d), before, analysis_.size(atom)});
      before *= analysis_.size(atom);
    }
  }
  return out;
}

SplitAtoms Localizer::full_placement(const Value& value) const {
  SplitAtoms split;
  std::set<int> used;
  for (const int atom : analysis_.dims(value)) {
    const int axis = analysis_.placed_axis(atom);
    split.push_back(axis >= 0 && used.insert(axis).second);
  }
  return split;
}

SplitAtoms Localizer::settled_atoms(const Value& value, const Placement& placement) const {
  SplitAtoms split;
  size_t found = 0;
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    int64_t before = 1;
    for (const int atom : analysis_.dim(value, d)) {
      const int64_t size = analysis_.size(atom);
      split.push_back(std::any_of(placement.begin(), placement.end(), [&](const Split& s) {
        return s.dim == static_cast<int>(d) && s.outer == before && s.units == size;
      }));
      found += split.back() ? 1 : 0;
      before *= size;
    }
  }
  ensure(found == placement.size(), "partition: the settled placement of %", value.id,
         " does not fit it");
  return split;
}

int64_t Localizer::local_size(int atom, bool split) const {
  if (!split) return analysis_.size(atom);
  const int axis = analysis_.any_axis(atom);
  const auto [begin, end] =
      shard_bounds(analysis_.size(atom), options_.mesh.coordinate(options_.rank, axis),
                   options_.mesh.axis_size(axis));
  return end - begin;
}

Localizer::Place Localizer::place(const Value& value, const SplitAtoms& split, size_t atom) const {
  Place place;
  size_t at = 0;
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    const AtomList list = analysis_.dim(value, d);
    if (atom < at + list.size()) {
      place.dim = d;
      for (size_t k = 0; k < list.size(); ++k) {
        const int64_t size = local_size(list[k], split[at + k]);
        (at + k < atom ? place.outer : at + k == atom ? place.units : place.rest) *= size;
      }
      return place;
    }
    at += list.size();
  }
  fail(ErrorCode::kInternal, "partition: no atom ", atom);
}

Dims Localizer::local_shape(const Value& value, const SplitAtoms& split) const {
  Dims shape;
  size_t at = 0;
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    const AtomList list = analysis_.dim(value, d);
    int64_t size = list.empty() ? size_of(value, d) : 1;
    for (const int atom : list) size *= local_size(atom, split[at++]);
    shape.push_back(size);
  }
  return shape;
}

std::vector<int64_t> Localizer::part_sizes(int atom, int64_t rest) const {
  const int parts = options_.mesh.axis_size(analysis_.any_axis(atom));
  std::vector<int64_t> sizes;
  for (int i = 0; i < parts; ++i) {
    const auto [begin, end] = shard_bounds(analysis_.size(atom), i, parts);
    sizes.push_back((end - begin) * rest);
  }
  return sizes;
}

std::optional<size_t> Localizer::stored_atom(const Value& value, const SplitAtoms& split,
                                             int axis) const {
  constexpr int64_t kMinBytes = 4096;
  const AtomList atoms = analysis_.dims(value);
  int64_t count = 1;
  std::optional<size_t> found;
  for (size_t k = 0; k < atoms.size(); ++k) {
    count *= analysis_.size(atoms[k]);
    if (split[k] && analysis_.any_axis(atoms[k]) == axis) return std::nullopt;
    if (!found && !split[k] && analysis_.axis(atoms[k]) < 0 &&
        analysis_.storage_axis(atoms[k]) == axis)
      found = k;
  }
  return storage_bytes(value.type.dtype, count) >= kMinBytes ? found : std::nullopt;
}

Tensor Localizer::reduce_scatter(const Value& value, const Tensor& x, const SplitAtoms& split,
                                 size_t atom) const {
  const int id = analysis_.dims(value)[atom], axis = analysis_.storage_axis(id);
  const Place at = place(value, split, atom);
  const int position = options_.mesh.coordinate(options_.rank, axis);
  const std::vector<int64_t> sizes = part_sizes(id, at.rest);
  const std::vector<int64_t> ranks = options_.mesh.group(options_.rank, axis);
  const auto scatter = [&](const Tensor& of, size_t dim) {
    return ops::comm_reduce_scatter(of, ranks, position, static_cast<int64_t>(dim), sizes, "sum");
  };
  if (at.outer == 1) return scatter(x, at.dim);
  const Dims shape = concrete(x.shape());
  Dims apart = shape;
  apart[at.dim] = at.units * at.rest;
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(at.dim), at.outer);
  Dims together = shape;
  together[at.dim] = at.outer * sizes[static_cast<size_t>(position)];
  return ops::reshape(scatter(ops::reshape(x, to_shape(apart)), at.dim + 1), to_shape(together));
}

Tensor Localizer::gather(const Value& value, const Tensor& x, const SplitAtoms& split,
                         size_t atom) const {
  const int id = analysis_.dims(value)[atom], axis = analysis_.any_axis(id);
  const Place at = place(value, split, atom);
  const std::vector<int64_t> sizes = part_sizes(id, at.rest);
  const std::vector<int64_t> ranks = options_.mesh.group(options_.rank, axis);
  const Dims shape = concrete(x.shape());
  if (at.outer == 1) return ops::comm_all_gather(x, ranks, static_cast<int64_t>(at.dim), sizes);
  Dims apart = shape;
  apart[at.dim] = at.units * at.rest;
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(at.dim), at.outer);
  const Tensor joined = ops::comm_all_gather(ops::reshape(x, to_shape(apart)), ranks,
                                             static_cast<int64_t>(at.dim) + 1, sizes);
  Dims together = shape;
  together[at.dim] = at.outer * analysis_.size(id) * at.rest;
  return ops::reshape(joined, to_shape(together));
}

Tensor Localizer::slice(const Value& value, const Tensor& x, const SplitAtoms& split,
                        size_t atom) const {
  const int id = analysis_.dims(value)[atom], axis = analysis_.any_axis(id);
  const Place at = place(value, split, atom);
  const auto [begin, end] =
      shard_bounds(analysis_.size(id), options_.mesh.coordinate(options_.rank, axis),
                   options_.mesh.axis_size(axis));
  const Dims shape = concrete(x.shape());
  const auto cut = [&](const Tensor& of, size_t dim) {
    return ops::strided_slice(of, {static_cast<int64_t>(dim)}, std::vector<Dim>{begin * at.rest},
                              std::vector<Dim>{end * at.rest}, {1});
  };
  if (at.outer == 1) return cut(x, at.dim);
  Dims apart = shape;
  apart[at.dim] = at.units * at.rest;
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(at.dim), at.outer);
  Dims together = shape;
  together[at.dim] = at.outer * (end - begin) * at.rest;
  return ops::reshape(cut(ops::reshape(x, to_shape(apart)), at.dim + 1), to_shape(together));
}

LocalValue& Localizer::local(const Value& value) {
  auto [it, inserted] = values_.try_emplace(&value);
  if (inserted) {
    ensure(value.constant.has_value(), "partition: value %", value.id, " is not defined");
    it->second = {Tensor(*value.constant), whole(value)};
  }
  if (it->second.is_postponed) flush_bucket_of(value);
  return it->second;
}

Tensor Localizer::placed(const Value& value, const SplitAtoms& wanted) {
  const LocalValue& from = local(value);
  if (from.route) return whole_routed(value);
  if (from.split == wanted) return from.tensor;
  const auto key = std::make_pair(&value, wanted);
  if (const auto it = cache_.find(key); it != cache_.end()) return it->second;
  Tensor x = from.tensor;
  SplitAtoms split = from.split;
  const AtomList atoms = analysis_.dims(value);
  const auto leaves = [&](size_t k) { return split[k] && !wanted[k]; };
  const auto slice_now = [&](bool after_gathers) {
    for (size_t k = 0; k < split.size(); ++k) {
      if (split[k] || !wanted[k]) continue;
      bool busy = false;  // the axis still splits another atom
      for (size_t j = 0; j < split.size(); ++j)
        busy = busy || (leaves(j) && analysis_.any_axis(atoms[j]) == analysis_.any_axis(atoms[k]));
      if (busy && !after_gathers) continue;
      x = slice(value, x, split, k);
      split[k] = true;
    }
  };
  slice_now(false);
  for (size_t k = 0; k < split.size(); ++k)
    if (leaves(k)) {
      x = gather(value, x, split, k);
      split[k] = false;
    }
  slice_now(true);
  cache_[key] = x;
  return x;
}

}  // namespace paddle::partition
