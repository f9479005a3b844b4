// Sessions of several ranks: partitioned functions, and the parts of parameters and states.

#include <algorithm>

#include "partition/communication.h"
#include "train/compiled_part.h"
#include "train/session.h"

namespace paddle::train {

void Session::partition(Compiled& c) {
  const bool first = placements_.empty();
  partition::PartitionOptions options;
  options.mesh = options_.mesh;
  options.rank = options_.peers->rank();
  for (const FieldType& field : fields_) options.batch_inputs.insert(field.name);
  options.place = options_.place;
  options.shards_storage = options_.sharding > 0;
  options.splits_sequence = options_.sequence;
  const int data = options.mesh.axis("data");
  // Parts over `data` are optimizer states from stage 1 on, sums of gradients from stage 2 on, and
  // parameters in stage 3.
  options.may_split = [data, stage = options_.sharding](const ir::Port& port, int axis) {
    if (port.kind == ir::PortKind::kState && program::is_model_state(port.name)) return false;
    if (axis != data) return true;
    if (port.kind == ir::PortKind::kParameter) return stage >= 3;
    return stage >= (program::is_accumulated(port.name) ? 2 : 1);
  };
  options.placements = placements_;
  if (options_.observe) options_.observe(*c.function, "logical");
  partition::Partitioned parted = partition::partition(*c.function, options);
  for (auto& [name, placement] : parted.placements) placements_.emplace(name, std::move(placement));
  if (first) {
    gathered_ = std::move(parted.gathered);
    communication_text_ = str("rank ", options_.peers->rank(), " sends in each ",
                              options_.accumulate > 1 ? "micro-batch" : "step", ": ",
                              partition::text(partition::communication(*parted.function)));
  }
  c.logical = std::move(c.function);
  c.function = std::move(parted.function);
  c.placement = std::move(parted.inputs);
  c.shapes = shapes_;
}

Array& Session::in_store(const ir::Port& port) {
  return port.kind == ir::PortKind::kParameter ? store_.parameters.at(port.name).value
                                               : store_.states.at(port.name);
}

Array* Session::stored(const ir::Port& port, const partition::Placement& placement) {
  if (placement.empty()) return &in_store(port);
  const auto [it, inserted] = parts_here_.try_emplace(port.name);
  if (inserted)
    it->second = partition::shard(in_store(port), placement, options_.mesh, options_.peers->rank());
  return &it->second;
}

void Session::take_parts() {
  for (auto& [name, part] : parts_here_) {
    Array& whole = whole_in(store_, name);
    part = partition::shard(whole, placements_.at(name), options_.mesh, options_.peers->rank());
    whole = Array::reserve(whole.dtype, whole.shape);
  }
  // Parameters and states of other stages.
  if (!pipeline_) return;
  const auto give_up = [&](const std::string& name, Array& value) {
    if (!is_held(name)) value = Array::reserve(value.dtype, value.shape);
  };
  for (auto& [name, parameter] : store_.parameters) give_up(name, parameter.value);
  for (auto& [name, value] : store_.states) give_up(name, value);
}

Array& Session::whole_in(program::ParameterStore& store, const std::string& name) {
  const auto parameter = store.parameters.find(name);
  return parameter != store.parameters.end() ? parameter->second.value : store.states.at(name);
}

program::ParameterStore Session::whole_store() {
  program::ParameterStore out = store_.on_host();
  if (!options_.peers || options_.peers->size() == 1) return out;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : out.parameters) names.push_back(name);
  for (const auto& [name, value] : out.states) names.push_back(name);
  for (const std::string& name : names) gather_whole(name, out);
  return out;
}

void Session::gather_whole(const std::string& name, program::ParameterStore& out) {
  const auto placed = placements_.find(name);
  const partition::Placement placement =
      placed == placements_.end() ? partition::Placement{} : placed->second;
  const int owner = pipeline_owner(name), pipeline = options_.mesh.axis("pipeline");
  if (placement.empty() && owner == 0) return;  // rank 0 has it
  // Of ranks with the same part, the first one along each other axis sends it.
  const auto sends = [&](int rank) {
    for (int axis = 0; axis < static_cast<int>(options_.mesh.axes().size()); ++axis) {
      const bool splits = std::any_of(placement.begin(), placement.end(),
                                      [&](const auto& s) { return s.axis == axis; });
      const int wanted = axis == pipeline ? owner : 0;
      if (!splits && options_.mesh.coordinate(rank, axis) != wanted) return false;
    }
    return true;
  };
  comm::Communicator& peers = *options_.peers;
  Array& whole = whole_in(out, name);
  std::vector<Array> arrived(peers.all().size());
  std::vector<std::span<std::byte>> places(peers.all().size());
  if (peers.is_root()) {
    whole = Array::empty(whole.dtype, whole.shape);
    for (const int rank : peers.all()) {
      if (!sends(rank)) continue;
      Array& to = arrived[static_cast<size_t>(rank)] = Array::empty(
          whole.dtype, partition::shard_shape(whole.shape, placement, options_.mesh, rank));
      places[static_cast<size_t>(rank)] = {static_cast<std::byte*>(to.raw()),
                                           static_cast<size_t>(storage_bytes(to.dtype, to.size()))};
    }
  }
  std::span<const std::byte> mine;
  Array sent;
  if (sends(peers.rank())) {
    const auto part = parts_here_.find(name);
    sent = (part != parts_here_.end() ? part->second : whole_in(store_, name)).on_host();
    mine = {static_cast<const std::byte*>(sent.raw()),
            static_cast<size_t>(storage_bytes(sent.dtype, sent.size()))};
  }
  peers.gather(mine, places, 0);
  if (!peers.is_root()) return;
  for (const int rank : peers.all())
    if (sends(rank))
      partition::unshard(arrived[static_cast<size_t>(rank)], whole, placement, options_.mesh, rank);
}

}  // namespace paddle::train
