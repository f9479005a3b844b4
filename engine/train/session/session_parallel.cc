// Sessions of several ranks: partitioned functions, and the parts of parameters and states.

#include <algorithm>

#include "partition/communication.h"
#include "partition/overlap.h"
#include "train/session/compiled_part.h"
#include "train/session/session.h"

namespace paddle::train {

void Session::partition(Compiled& c) {
  const bool first = placements_.empty();
  partition::PartitionOptions options;
  options.mesh = options_.mesh;
  options.rank = options_.communicator->rank();
  for (const FieldType& field : fields_) options.batch_inputs.insert(field.name);
  for (const LookupPorts& each : c.lookups)
    options.batch_inputs.insert(c.function->inputs.at(static_cast<size_t>(each.rows)).name);
  options.place = options_.place;
  options.rules = options_.rules;
  options.shards_storage = options_.sharding > 0;
  options.splits_sequence = options_.sequence;
  options.bucket_bytes = options_.bucket_bytes;
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
  for (size_t at = 1; const size_t size : c.metric_sizes) {  // after the loss
    std::vector<size_t>& group = options.row_outputs.emplace_back();
    for (size_t i = 0; i < size; ++i) group.push_back(at++);
  }
  const size_t metrics = options.row_outputs.size();
  for (const GradientPort& each : c.gradients)
    options.row_outputs.push_back({static_cast<size_t>(each.output)});
  if (options_.observe) options_.observe(*c.function, "logical");
  partition::Partitioned parted = partition::partition(*c.function, options);
  // All ranks make the same choice, as their exchanges must have one order.
  if (options_.sharding > 0 && options_.overlap.value_or(true) &&
      options_.mesh.axis_size_of("pipeline") == 1)
    partition::overlap_exchanges(*parted.function);
  for (auto& [name, placement] : parted.placements) placements_.emplace(name, std::move(placement));
  if (first) {
    gathered_ = std::move(parted.gathered);
    communication_text_ = str("rank ", options_.communicator->rank(), " sends in each ",
                              options_.accumulate > 1 ? "micro-batch" : "step", ": ",
                              partition::text(partition::communication(*parted.function)));
  }
  c.logical = std::move(c.function);
  c.function = std::move(parted.function);
  c.placement = std::move(parted.inputs);
  c.parts = std::move(parted.parts);
  c.output_placement = std::move(parted.outputs);
  c.shapes = shapes_;
  c.metric_rows.clear();
  for (const std::vector<size_t>& group : std::span(options.row_outputs).first(metrics)) {
    const bool by_rows = !c.output_placement.at(group[0]).empty();
    const int here = data < 0 ? 0 : options.mesh.coordinate(options.rank, data);
    const int64_t rows = shapes_.at(0).at(0);
    const auto [begin, end] =
        by_rows ? partition::shard_bounds(rows, here, options.mesh.axis_size(data))
                : std::pair<int64_t, int64_t>{0, here == 0 ? rows : 0};
    c.metric_rows.push_back({begin, end});
  }
  const bool trains = c.logical->name == "train" || c.logical->name == "accumulate" ||
                      c.logical->name == "statistics";
  ensure(!has_local_rows_only_ || !trains || splits_rows(c),
         "a batch of another size is not split by rows");
}

bool Session::splits_rows(const Compiled& c) const {
  const int data = options_.mesh.axis("data");
  for (size_t i = 0; i < fields_.size(); ++i) {
    const auto& placement = c.placement[i];
    const int64_t rows = c.shapes.at(i).at(0);
    const bool by_rows =
        std::any_of(placement.begin(), placement.end(), [&](const partition::Split& s) {
          return s.axis == data && s.dim == 0 && s.outer == 1 && s.units == rows;
        });
    if (!by_rows && rows > 1) return false;
  }
  return true;
}

bool Session::reads_local_rows_only() const {
  const int data = options_.mesh.axis("data");
  if (data < 0 || options_.mesh.axis_size(data) == 1) return false;
  for (const Part part : {Part::kTrain, Part::kAccumulate})
    if (const auto it = parts_.find(part); it != parts_.end())
      for (const auto& c : it->second)
        if (!splits_rows(*c)) return false;
  return true;
}

Array& Session::in_store(const ir::Port& port) {
  return port.kind == ir::PortKind::kParameter ? store_.parameters.at(port.name).value
                                               : store_.states.at(port.name);
}

Array* Session::stored(const ir::Port& port, const partition::Placement& placement) {
  if (placement.empty()) return &in_store(port);
  const auto [it, inserted] = parts_here_.try_emplace(port.name);
  if (inserted)
    it->second =
        partition::shard(in_store(port), placement, options_.mesh, options_.communicator->rank());
  return &it->second;
}

void Session::take_parts() {
  for (auto& [name, part] : parts_here_) {
    Array& whole = store_.array(name);
    part =
        partition::shard(whole, placements_.at(name), options_.mesh, options_.communicator->rank());
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

int64_t Session::stored_bytes() const {
  int64_t bytes = 0;
  const auto add = [&](const std::string& name, const Array& whole) {
    if (!is_held(name)) return;
    const partition::Placement placement = placement_of(name);
    const Dims shape = placement.empty()
                           ? whole.shape
                           : partition::shard_shape(whole.shape, placement, options_.mesh,
                                                    options_.communicator->rank());
    bytes += storage_bytes(whole.dtype, element_count(std::span(shape)));
  };
  for (const auto& [name, parameter] : store_.parameters) add(name, parameter.value);
  for (const auto& [name, value] : store_.states) add(name, value);
  return bytes;
}

program::ParameterStore Session::whole_store() {
  program::ParameterStore out = store_.on_host();
  if (!options_.communicator || options_.communicator->size() == 1) return out;
  std::vector<std::string> names;
  for (const auto& [name, parameter] : out.parameters) names.push_back(name);
  for (const auto& [name, value] : out.states) names.push_back(name);
  for (const std::string& name : names) gather_whole(name, out);
  return out;
}

partition::Placement Session::placement_of(const std::string& name) const {
  const auto placed = placements_.find(name);
  return placed == placements_.end() ? partition::Placement{} : placed->second;
}

std::optional<program::TensorPart> Session::written_part(const std::string& name) {
  const Array& whole = store_.array(name);
  if (!options_.communicator || options_.communicator->size() == 1)
    return program::whole_part(whole);
  const partition::Placement placement = placement_of(name);
  const int rank = options_.communicator->rank();
  if (!sends_part(rank, placement, pipeline_owner(name))) return std::nullopt;
  const auto here = parts_here_.find(name);
  program::TensorPart part;
  const Array values = here != parts_here_.end()
                           ? here->second
                           : partition::shard(whole, placement, options_.mesh, rank);
  part.values = values.on_host().contiguous();
  partition::for_each_run(whole.shape, placement, options_.mesh, rank,
                          [&](int64_t in_whole, int64_t in_part, int64_t count) {
                            part.runs.push_back({in_whole, in_part, count});
                          });
  return part;
}

bool Session::sends_part(int rank, const partition::Placement& placement, int owner) const {
  const int pipeline = options_.mesh.axis("pipeline");
  for (int axis = 0; axis < static_cast<int>(options_.mesh.axes().size()); ++axis) {
    const bool splits = std::any_of(placement.begin(), placement.end(),
                                    [&](const auto& s) { return s.axis == axis; });
    // Of a part that is split over a view, the first ranks of the axis have all parts.
    const auto view = std::find_if(placement.begin(), placement.end(), [&](const auto& s) {
      return s.axis != axis && options_.mesh.whole_axis(s.axis) == axis;
    });
    if (view != placement.end()) {
      if (options_.mesh.coordinate(rank, axis) >= options_.mesh.axis_size(view->axis)) return false;
      continue;
    }
    const int wanted = axis == pipeline ? owner : 0;
    if (!splits && options_.mesh.coordinate(rank, axis) != wanted) return false;
  }
  return true;
}

void Session::gather_whole(const std::string& name, program::ParameterStore& out) {
  const partition::Placement placement = placement_of(name);
  const int owner = pipeline_owner(name);
  if (placement.empty() && owner == 0) return;  // rank 0 has it
  const auto part = parts_here_.find(name);
  const Array& mine = part != parts_here_.end() ? part->second : store_.array(name);
  Array& whole = out.array(name);
  Array gathered = gather_array(mine, whole.dtype, whole.shape, placement, owner);
  if (options_.communicator->is_root()) whole = std::move(gathered);
}

Array Session::gather_array(const Array& mine, DType dtype, const Dims& shape,
                            const partition::Placement& placement, int owner) {
  const auto sends = [&](int rank) { return sends_part(rank, placement, owner); };
  comm::Communicator& communicator = *options_.communicator;
  std::vector<Array> arrived(communicator.all().size());
  std::vector<std::span<std::byte>> places(communicator.all().size());
  if (communicator.is_root()) {
    for (const int rank : communicator.all()) {
      if (!sends(rank)) continue;
      Array& to = arrived[static_cast<size_t>(rank)] =
          Array::empty(dtype, partition::shard_shape(shape, placement, options_.mesh, rank));
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
    partition::unshard(part, whole, placement, options_.mesh, rank);
  }
  return whole;
}

}  // namespace paddle::train
