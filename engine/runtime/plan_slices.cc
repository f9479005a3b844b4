// Operations that are computed for one part of their rows after the other. While they are built,
// what is cut has the layout of a part; what they read from before them or give to after them
// stands whole in its buffer, and its parts advance through it.

#include "runtime/plan_builder.h"

namespace paddle::runtime {

void PlanBuilder::find_runs() {
  // A training step keeps its activations, and its parameters may be written in place.
  for (const ir::Port& port : function_.outputs)
    if (port.kind == ir::PortKind::kParameter) return;
  const auto lookup = [&](const std::string& name) { return plan_.symbol(name); };
  for (RowSlices& slices : find_row_slices(function_.body, lookup, plan_.options_.slice_bytes))
    runs_.push_back({std::move(slices)});
}

/// Every part reads again what the one before has read.
void PlanBuilder::end_run(Run& run) {
  run.end = ++positions_;
  std::set<const ir::Value*> given;
  for (const ir::Operation* operation : run.slices.operations) {
    for (const ir::Value* v : operation->operands)
      if (v && given.count(v) == 0) count_use(v, run.end);
    given.insert(operation->results.begin(), operation->results.end());
  }
}

/// An operand that is read last by this operation and has the result's type, if it is one that the
/// result may be written over.
const ir::Value* PlanBuilder::ends_in(const ir::Operation& operation,
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
  for (size_t i = 0; i < operation.operands.size(); ++i)
    if (!reads_whole(*region.operations.front(), region.arguments[i]) &&
        fits(operation.operands[i]))
      return operation.operands[i];
  return nullptr;
}

void PlanBuilder::build_slices(const Run& run, std::vector<Instruction>& out) {
  const std::vector<const ir::Operation*>& operations = run.slices.operations;
  const int64_t rows = run.slices.rows / run.slices.slices;
  std::set<const ir::Value*> given;
  for (const ir::Operation* operation : operations)
    given.insert(operation->results.begin(), operation->results.end());
  // Needed whole: what is read later, and what that is a view of or stands for.
  gives_.clear();
  for (auto it = operations.rbegin(); it != operations.rend(); ++it)
    for (size_t i = 0; i < (*it)->results.size(); ++i) {
      const ir::Value* v = (*it)->results[i];
      if (last_use_[static_cast<size_t>(v->id)] > run.end) gives_.insert(v);
      if (gives_.count(v) == 0) continue;
      if ((*it)->op->def->view && given.count((*it)->operands[0]) > 0)
        gives_.insert((*it)->operands[0]);
      if (!(*it)->regions.empty()) gives_.insert((*it)->regions[0]->results[i]);
      // What this may take the place of, as a residual sum does, lies there from the start.
      const ir::Value* before = ends_in(**it, *v);
      if (before && given.count(before) > 0) gives_.insert(before);
    }
  std::vector<std::pair<const ir::Value*, Placement>> whole;
  for (const ir::Value* v : run.slices.cut) {
    if (given.count(v) > 0) continue;
    Placement& p = at(v);
    whole.push_back({v, p});
    p.advance = p.layout.strides[0] * rows * item_size(p.layout.dtype);
    p.layout.shape[0] = rows;
  }

  Instruction instruction;
  instruction.kind = Instruction::Kind::kSlices;
  instruction.position = run.end;
  instruction.slices = run.slices.slices;
  std::vector<Instruction>& block = instruction.blocks.emplace_back();
  run_ = &run;
  for (const ir::Operation* operation : operations) build_operation(*operation, block);
  run_ = nullptr;

  for (const ir::Value* v : gives_) {
    if (given.count(v) == 0) continue;
    Placement p = at(v);
    p.advance = 0;
    p.layout.shape[0] = run.slices.rows;
    whole.push_back({v, p});
  }
  gives_.clear();
  // The block keeps the parts under numbers of their own; outside of it the values are whole.
  std::map<int, int> part;
  for (const auto& [value, placement] : whole) {
    part[value->id] = add_value(at(value), run.end);
    at(value) = placement;
  }
  for (Instruction& i : block)
    for (std::vector<int>* ids : {&i.operands, &i.results})
      for (int& id : *ids)
        if (const auto it = part.find(id); it != part.end()) id = it->second;
  out.push_back(std::move(instruction));
}

}  // namespace paddle::runtime
