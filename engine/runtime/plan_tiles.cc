// Instructions for batch tiling. While the operations of a tiled run are built, tiled values have
// the layout of one tile. Those that are produced before the run or used after it are complete in
// their buffers, and their address moves by `tile_stride` from tile to tile.

#include "runtime/plan_builder.h"

namespace paddle::runtime {

void PlanBuilder::find_tilings() {
  // A training step keeps its activations, and its parameters may be written in place.
  for (const ir::Port& port : function_.outputs)
    if (port.kind == ir::PortKind::kParameter) return;
  const auto lookup = [&](const std::string& name) { return plan_.symbol(name); };
  for (BatchTiling& tiling : find_batch_tilings(function_.body, lookup, plan_.options_.tile_bytes))
    tilings_.push_back({std::move(tiling)});
}

/// Operands from outside the run are read again for every tile, so they live until its end.
void PlanBuilder::end_tiling(TiledRun& run) {
  run.end = ++positions_;
  std::set<const ir::Value*> produced;
  for (const ir::Operation* operation : run.tiling.operations) {
    for (const ir::Value* v : operation->operands)
      if (v && produced.count(v) == 0) count_use(v, run.end);
    produced.insert(operation->results.begin(), operation->results.end());
  }
}

/// The operand whose buffer the result may take: one of the same type that is last read here.
const ir::Value* PlanBuilder::reusable_operand(const ir::Operation& operation,
                                               const ir::Value& result) const {
  const auto fits = [&](const ir::Value* v) {
    return v && same_type(v->type, result.type) &&
           last_use_[static_cast<size_t>(v->id)] <= span_.at(&operation).second;
  };
  if (operation.regions.empty()) {
    const int operand = operation.op->def->in_place;
    if (operand < 0 || result.index > 0) return nullptr;
    const ir::Value* v = operation.operands[static_cast<size_t>(operand)];
    return fits(v) ? v : nullptr;
  }
  const ir::Region& region = *operation.regions[0];
  std::vector<const ir::Operation*> steps;
  for (const auto& inner : region.operations) steps.push_back(inner.get());
  for (size_t i = 0; i < operation.operands.size(); ++i)
    if (!reads_whole(steps, region.arguments[i]) && fits(operation.operands[i]))
      return operation.operands[i];
  return nullptr;
}

void PlanBuilder::build_tiles(const TiledRun& run, std::vector<Instruction>& out) {
  const std::vector<const ir::Operation*>& operations = run.tiling.operations;
  const int64_t samples = run.tiling.batch / run.tiling.tiles;
  std::set<const ir::Value*> produced;
  for (const ir::Operation* operation : operations)
    produced.insert(operation->results.begin(), operation->results.end());
  // Values that must be complete: those that are used after the run, and the values that share
  // their buffer (bases of views, values inside fusion groups, reused operands).
  tile_outputs_.clear();
  for (auto it = operations.rbegin(); it != operations.rend(); ++it)
    for (size_t i = 0; i < (*it)->results.size(); ++i) {
      const ir::Value* v = (*it)->results[i];
      if (last_use_[static_cast<size_t>(v->id)] > run.end) tile_outputs_.insert(v);
      if (tile_outputs_.count(v) == 0) continue;
      if ((*it)->op->def->view && produced.count((*it)->operands[0]) > 0)
        tile_outputs_.insert((*it)->operands[0]);
      if (!(*it)->regions.empty()) tile_outputs_.insert((*it)->regions[0]->results[i]);
      const ir::Value* reused = reusable_operand(**it, *v);
      if (reused && produced.count(reused) > 0) tile_outputs_.insert(reused);
    }
  std::vector<std::pair<const ir::Value*, ValueBuffer>> whole;
  for (const ir::Value* v : run.tiling.tiled) {
    if (produced.count(v) > 0) continue;
    ValueBuffer& p = at(v);
    whole.push_back({v, p});
    p.tile_stride = p.layout.strides[0] * samples * item_size(p.layout.dtype);
    p.layout.shape[0] = samples;
  }

  Instruction instruction;
  instruction.kind = Instruction::Kind::kTiles;
  instruction.position = run.end;
  instruction.tiles = run.tiling.tiles;
  std::vector<Instruction>& block = instruction.blocks.emplace_back();
  tiling_ = &run;
  for (const ir::Operation* operation : operations) build_operation(*operation, block);
  tiling_ = nullptr;

  for (const ir::Value* v : tile_outputs_) {
    if (produced.count(v) == 0) continue;
    ValueBuffer p = at(v);
    p.tile_stride = 0;
    p.layout.shape[0] = run.tiling.batch;
    whole.push_back({v, p});
  }
  tile_outputs_.clear();
  // Inside the block these values get ids of their own; outside the ids mean the complete values.
  std::map<int, int> tile_id;
  for (const auto& [value, buffer] : whole) {
    tile_id[value->id] = add_value(at(value), run.end);
    at(value) = buffer;
  }
  for (Instruction& i : block)
    for (std::vector<int>* ids : {&i.operands, &i.results})
      for (int& id : *ids)
        if (const auto it = tile_id.find(id); it != tile_id.end()) id = it->second;
  out.push_back(std::move(instruction));
}

}  // namespace paddle::runtime
