#include "train/session/sharded_store.h"

#include <algorithm>

#include "optim/optimizer.h"

namespace paddle::train {

partition::Placement ShardedStore::placement_of(const std::string& name) const {
  const auto placed = placements_.find(name);
  return placed == placements_.end() ? partition::Placement{} : placed->second;
}

void ShardedStore::add_placements(partition::Placements placements) {
  placements_.merge(placements);
}

std::string ShardedStore::parameter_of(const std::string& state) const {
  const size_t slash = state.find('/');
  if (slash == std::string::npos) return "";
  std::string rest = state.substr(slash + 1);
  while (!context_.store.parameters.contains(rest) && !context_.store.states.contains(rest)) {
    const size_t end = rest.rfind('/');
    if (end == std::string::npos) return "";
    rest.resize(end);
  }
  return rest;
}

int ShardedStore::pipeline_owner(const std::string& name) const {
  if (!stages_) return 0;
  const auto& owners = stages_->owners;
  auto it = owners.find(name);
  if (it == owners.end()) it = owners.find(parameter_of(name));
  return it == owners.end() ? 0 : it->second % context_.pipeline_ranks();
}

bool ShardedStore::is_owned(const std::string& name) const {
  return stages_ &&
         (stages_->owners.contains(name) || stages_->owners.contains(parameter_of(name)));
}

bool ShardedStore::is_held(const std::string& name) const {
  if (!is_owned(name)) return true;
  const int position = context_.pipeline_position();
  return pipeline_owner(name) == position || reading_positions(name).contains(position);
}

std::set<int> ShardedStore::reading_positions(const std::string& name) const {
  auto it = stages_->readers.find(name);
  // An evaluation puts the average of a weight in the place of the weight, wherever that is read.
  const bool replaces =
      name.starts_with("master/") || name.ends_with(str("/", optim::kEvaluationSlot));
  if (it == stages_->readers.end() && replaces) it = stages_->readers.find(parameter_of(name));
  std::set<int> out;
  if (it != stages_->readers.end())
    for (const int stage : it->second) out.insert(stage % context_.pipeline_ranks());
  return out;
}

Array& ShardedStore::in_store(const ir::Port& port) {
  return port.kind == ir::PortKind::kParameter ? context_.store.parameters.at(port.name).value
                                               : context_.store.states.at(port.name);
}

Array* ShardedStore::find(const ir::Port& port, const partition::Placement& placement) {
  if (placement.empty()) return &in_store(port);
  const auto [it, inserted] = parts_.try_emplace(port.name);
  if (inserted)
    it->second =
        partition::shard(in_store(port), placement, context_.options.mesh, context_.rank());
  return &it->second;
}

void ShardedStore::update_parts() {
  for (auto& [name, part] : parts_)
    part = partition::shard(context_.store.array(name), placements_.at(name), context_.options.mesh,
                            context_.rank());
}

void ShardedStore::take_parts() {
  for (auto& [name, part] : parts_) {
    Array& whole = context_.store.array(name);
    part = partition::shard(whole, placements_.at(name), context_.options.mesh, context_.rank());
    whole = Array::reserve(whole.dtype, whole.shape);
  }
  // Parameters and states of other stages.
  if (!stages_) return;
  const auto free_unheld = [&](const std::string& name, Array& value) {
    if (!is_held(name)) value = Array::reserve(value.dtype, value.shape);
  };
  for (auto& [name, parameter] : context_.store.parameters) free_unheld(name, parameter.value);
  for (auto& [name, value] : context_.store.states) free_unheld(name, value);
}

int64_t ShardedStore::stored_bytes() const {
  int64_t bytes = 0;
  const auto add = [&](const std::string& name, const Array& whole) {
    if (!is_held(name)) return;
    const partition::Placement placement = placement_of(name);
    const Dims shape = placement.empty()
                           ? whole.shape
                           : partition::shard_shape(whole.shape, placement, context_.options.mesh,
                                                    context_.rank());
    bytes += storage_bytes(whole.dtype, element_count(std::span(shape)));
  };
  for (const auto& [name, parameter] : context_.store.parameters) add(name, parameter.value);
  for (const auto& [name, value] : context_.store.states) add(name, value);
  return bytes;
}

program::ParameterStore ShardedStore::whole_store() const {
  program::ParameterStore out = context_.store.on_host();
  if (!context_.options.communicator || context_.options.communicator->size() == 1) return out;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : out.parameters) names.push_back(name);
  for (const auto& [name, value] : out.states) names.push_back(name);
  for (const std::string& name : names) gather_whole(name, out);
  return out;
}

std::optional<program::TensorPart> ShardedStore::written_part(const std::string& name) const {
  const Array& whole = context_.store.array(name);
  if (!context_.options.communicator || context_.options.communicator->size() == 1)
    return program::whole_part(whole);
  const partition::Placement placement = placement_of(name);
  const int rank = context_.rank();
  if (!sends_part(rank, placement, pipeline_owner(name))) return std::nullopt;
  const auto here = parts_.find(name);
  program::TensorPart part;
  const Array values = here != parts_.end()
                           ? here->second
                           : partition::shard(whole, placement, context_.options.mesh, rank);
  part.values = values.on_host().contiguous();
  partition::for_each_run(whole.shape, placement, context_.options.mesh, rank,
                          [&](int64_t in_whole, int64_t in_part, int64_t count) {
                            part.runs.push_back({in_whole, in_part, count});
                          });
  return part;
}

bool ShardedStore::sends_part(int rank, const partition::Placement& placement, int owner) const {
  const int pipeline = context_.options.mesh.axis("pipeline");
  for (int axis = 0; axis < static_cast<int>(context_.options.mesh.axes().size()); ++axis) {
    const bool splits = std::any_of(placement.begin(), placement.end(),
                                    [&](const auto& s) { return s.axis == axis; });
    // Of a part that is split over a view, the first ranks of the axis have all parts.
    const auto view = std::find_if(placement.begin(), placement.end(), [&](const auto& s) {
      return s.axis != axis && context_.options.mesh.whole_axis(s.axis) == axis;
    });
    if (view != placement.end()) {
      if (context_.options.mesh.coordinate(rank, axis) >=
          context_.options.mesh.axis_size(view->axis))
        return false;
      continue;
    }
    const int wanted = axis == pipeline ? owner : 0;
    if (!splits && context_.options.mesh.coordinate(rank, axis) != wanted) return false;
  }
  return true;
}

void ShardedStore::gather_whole(const std::string& name, program::ParameterStore& out) const {
  const partition::Placement placement = placement_of(name);
  const int owner = pipeline_owner(name);
  if (placement.empty() && owner == 0) return;  // rank 0 has it
  const auto part = parts_.find(name);
  const Array& mine = part != parts_.end() ? part->second : context_.store.array(name);
  Array& whole = out.array(name);
  Array gathered = gather_array(mine, whole.dtype, whole.shape, placement, owner);
  if (context_.options.communicator->is_root()) whole = std::move(gathered);
}

Array ShardedStore::gather_array(const Array& mine, DType dtype, const Dims& shape,
                                 const partition::Placement& placement, int owner) const {
  const auto sends = [&](int rank) { return sends_part(rank, placement, owner); };
  comm::Communicator& communicator = *context_.options.communicator;
  std::vector<Array> arrived(communicator.all().size());
  std::vector<std::span<std::byte>> places(communicator.all().size());
  if (communicator.is_root()) {
    for (const int rank : communicator.all()) {
      if (!sends(rank)) continue;
      Array& to = arrived[static_cast<size_t>(rank)] = Array::empty(
          dtype, partition::shard_shape(shape, placement, context_.options.mesh, rank));
      places[static_cast<size_t>(rank)] = {static_cast<std::byte*>(to.raw()),
                                           static_cast<size_t>(storage_bytes(to.dtype, to.size()))};
    }
  }
  std::span<const std::byte> bytes;
  Array sent;
  if (sends(communicator.rank())) {
    sent = mine.on_host();
    if (!sent.is_contiguous()) sent = sent.cast(sent.dtype);
    bytes = {static_cast<const std::byte*>(sent.raw()),
             static_cast<size_t>(storage_bytes(sent.dtype, sent.size()))};
  }
  communicator.gather(bytes, places, 0);
  if (!communicator.is_root()) return {};
  Array whole = Array::empty(dtype, shape);
  for (const int rank : communicator.all()) {
    if (!sends(rank)) continue;
    Array& part = arrived[static_cast<size_t>(rank)];
    if (placement.empty()) return std::move(part);
    partition::unshard(part, whole, placement, context_.options.mesh, rank);
  }
  return whole;
}

}  // namespace paddle::train
