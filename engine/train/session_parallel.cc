// Sessions of several ranks: partitioned functions, and the parts of parameters and states.

#include <algorithm>

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
  if (first) gathered_ = std::move(parted.gathered);
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
    const auto parameter = store_.parameters.find(name);
    Array& whole =
        parameter != store_.parameters.end() ? parameter->second.value : store_.states.at(name);
    part = partition::shard(whole, placements_.at(name), options_.mesh, options_.peers->rank());
    whole = Array::reserve(whole.dtype, whole.shape);
  }
}

program::ParameterStore Session::whole_store() {
  program::ParameterStore out = store_.on_host();
  if (parts_here_.empty()) return out;
  comm::Communicator& peers = *options_.peers;
  for (const auto& [name, part] : parts_here_) {
    const partition::Placement& placement = placements_.at(name);
    // Of ranks with the same part, the first one along each other axis sends it.
    const auto sends = [&](int rank) {
      for (int axis = 0; axis < static_cast<int>(options_.mesh.axes().size()); ++axis) {
        const bool splits = std::any_of(placement.begin(), placement.end(),
                                        [&](const auto& s) { return s.axis == axis; });
        if (!splits && options_.mesh.coordinate(rank, axis) != 0) return false;
      }
      return true;
    };
    const auto parameter = out.parameters.find(name);
    Array& whole =
        parameter != out.parameters.end() ? parameter->second.value : out.states.at(name);
    std::vector<Array> arrived(peers.all().size());
    std::vector<std::span<std::byte>> places(peers.all().size());
    if (peers.is_root()) {
      whole = Array::empty(part.dtype, whole.shape);
      for (const int rank : peers.all()) {
        if (!sends(rank)) continue;
        Array& to = arrived[static_cast<size_t>(rank)] = Array::empty(
            part.dtype, partition::shard_shape(whole.shape, placement, options_.mesh, rank));
        places[static_cast<size_t>(rank)] = {
            static_cast<std::byte*>(to.raw()),
            static_cast<size_t>(storage_bytes(to.dtype, to.size()))};
      }
    }
    std::span<const std::byte> mine;
    const Array sent = part.on_host();
    if (sends(peers.rank()))
      mine = {static_cast<const std::byte*>(sent.raw()),
              static_cast<size_t>(storage_bytes(sent.dtype, sent.size()))};
    peers.gather(mine, places, 0);
    if (!peers.is_root()) continue;
    for (const int rank : peers.all())
      if (sends(rank))
        partition::unshard(arrived[static_cast<size_t>(rank)], whole, placement, options_.mesh,
                           rank);
  }
  return out;
}

}  // namespace paddle::train
