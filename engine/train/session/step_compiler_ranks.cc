// Functions of several ranks: each rank runs its part of them.

#include <algorithm>
#include <limits>

#include "partition/communication.h"
#include "partition/overlap.h"
#include "train/session/step_compiler.h"

namespace paddle::train {

void StepCompiler::partition(CompiledFunction& c) {
  const bool first = shards_.placements().empty();
  partition::PartitionOptions options;
  options.mesh = context_.options.mesh;
  options.rank = context_.rank();
  for (const FieldType& field : context_.fields) options.batch_inputs.insert(field.name);
  for (const LookupPorts& each : c.lookups)
    options.batch_inputs.insert(c.function->inputs.at(static_cast<size_t>(each.rows)).name);
  options.place = context_.options.place;
  options.rules = context_.options.rules;
  const bool delays = delays_sums();
  // Stage 1 stores nothing in parts that gradients are added up from.
  const bool accumulates = c.kind == StepFunction::kAccumulate;
  options.shards_storage = context_.options.sharding > (delays && accumulates ? 1 : 0);
  options.splits_sequence = context_.options.sequence;
  // Sums that are taken out of the function need not begin early.
  options.bucket_bytes =
      delays && accumulates ? std::numeric_limits<int64_t>::max() : context_.options.bucket_bytes;
  const int data = options.mesh.axis("data");
  // Parts over `data` are optimizer states from stage 1 on, sums of gradients from stage 2 on, and
  // parameters in stage 3.
  options.may_split = [data, stage = context_.options.sharding](const ir::Port& port, int axis) {
    if (port.kind == ir::PortKind::kState && program::is_model_state(port.name)) return false;
    if (axis != data) return true;
    if (port.kind == ir::PortKind::kParameter) return stage >= 3;
    return stage >= (program::is_accumulated(port.name) ? 2 : 1);
  };
  options.placements = shards_.placements();
  for (size_t at = 1; const size_t size : c.metric_sizes) {  // after the loss
    std::vector<size_t>& group = options.row_outputs.emplace_back();
    for (size_t i = 0; i < size; ++i) group.push_back(at++);
  }
  const size_t metrics = options.row_outputs.size();
  for (const GradientPort& each : c.gradients) {
    const auto output = static_cast<size_t>(each.output);
    options.row_outputs.push_back({output});
    options.outputs_like_inputs.emplace_back(output,
                                             static_cast<size_t>(c.lookups[each.lookup].rows));
  }
  if (context_.options.observe.stage) context_.options.observe.stage(*c.function, "logical");
  partition::Partitioned parted = partition::partition(*c.function, options);
  // All ranks make the same choice, as their exchanges must have one order.
  if (context_.options.sharding > 0 && context_.options.overlap.value_or(true) &&
      context_.options.mesh.axis_size_of("pipeline") == 1)
    partition::overlap_exchanges(*parted.function);
  shards_.add_placements(std::move(parted.placements));
  if (delays) delay_sums(c.kind, *parted.function);
  if (first) {
    gathered_ = std::move(parted.gathered);
    communication_text_ = str("rank ", context_.rank(), " sends in each ",
                              context_.options.accumulate > 1 ? "micro-batch" : "step", ": ",
                              partition::text(partition::communication(*parted.function)));
  }
  if (c.kind == StepFunction::kApply && update_text_.empty())
    update_text_ =
        str("; in each update: ", partition::text(partition::communication(*parted.function)));
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
  const bool reads_rows = trains(c.kind) || c.kind == StepFunction::kStatistics;
  ensure(!has_local_rows_only_ || !reads_rows || splits_rows(c),
         "a batch of another size is not split by rows");
}

bool StepCompiler::delays_sums() const {
  return !context_.options.sums_each && context_.options.sharding < 2 &&
         !context_.step->minimizer();
}

void StepCompiler::delay_sums(StepFunction kind, ir::Function& function) {
  const auto settled = delayed_sums_.find(phase_);
  if (kind == StepFunction::kAccumulate) {
    partition::DelayedSums sums =
        partition::delay_sums(function, program::is_accumulated, context_.rank(),
                              settled == delayed_sums_.end() ? nullptr : &settled->second);
    delayed_sums_.try_emplace(phase_, std::move(sums));
  } else if (kind == StepFunction::kApply) {
    ensure(settled != delayed_sums_.end(), "an update before the gradients that it applies");
    // Each stage of a pipeline sums what it owns.
    const int64_t bucket = context_.is_pipelined() ? 0 : context_.options.bucket_bytes;
    partition::sum_states(function, settled->second, bucket);
  }
}

bool StepCompiler::splits_rows(const CompiledFunction& c) const {
  const int data = context_.options.mesh.axis("data");
  for (size_t i = 0; i < context_.fields.size(); ++i) {
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

bool StepCompiler::reads_local_rows_only() const {
  const int data = context_.options.mesh.axis("data");
  if (data < 0 || context_.options.mesh.axis_size(data) == 1) return false;
  for (const StepFunction kind : {StepFunction::kTrain, StepFunction::kAccumulate})
    if (const auto it = functions_.find(kind); it != functions_.end())
      for (const auto& c : it->second)
        if (!splits_rows(*c)) return false;
  return true;
}

}  // namespace paddle::train
