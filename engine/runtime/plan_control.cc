// Instructions of control flow, of run-time sizes, and of copies between devices.

#include "runtime/plan_builder.h"
#include "runtime/plan_streams.h"
#include "tensor/device_functions.h"

namespace paddle::runtime {

void PlanBuilder::build_dynamic(const ir::Operation& operation, std::vector<Instruction>& out) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kDynamic;
  instruction.operation = &operation;
  instruction.position = span_[&operation].first;
  for (const ir::Value* v : operation.operands) instruction.operands.push_back(v ? v->id : -1);
  for (const ir::Value* v : operation.results) {
    place_new(v, instruction.position, std::string(operation.op->name()));
    instruction.results.push_back(v->id);
  }
  out.push_back(std::move(instruction));
}

void PlanBuilder::build_branch(const ir::Operation& operation, std::vector<Instruction>& out) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kBranch;
  instruction.operation = &operation;
  const auto [first, end] = span_[&operation];
  instruction.position = end;
  instruction.operands = {operation.operands[0]->id};
  read_back(operation.operands[0]->id, first, out);
  for (const ir::Value* v : operation.results) {
    place_new(v, first, "if");
    instruction.results.push_back(v->id);
  }
  instruction.blocks.resize(2);
  instruction.block_copies.resize(2);
  for (size_t b = 0; b < 2; ++b) {
    const ir::Region& region = *operation.regions[b];
    build_region(region, instruction.blocks[b]);
    for (size_t i = 0; i < region.results.size(); ++i)
      instruction.block_copies[b].push_back({region.results[i]->id, operation.results[i]->id});
  }
  out.push_back(std::move(instruction));
}

void PlanBuilder::build_loop(const ir::Operation& operation, std::vector<Instruction>& out) {
  Instruction instruction;
  instruction.kind = Instruction::Kind::kLoop;
  instruction.operation = &operation;
  instruction.max_steps = operation.attrs[0].as_int();
  const auto [first, end] = span_[&operation];
  instruction.position = end;
  const ir::Region &condition = *operation.regions[0], &body = *operation.regions[1];
  // Each carried value has one buffer, which condition, body and result share.
  for (size_t i = 0; i < body.arguments.size(); ++i) {
    place_new(body.arguments[i], first, "while");
    at(condition.arguments[i]) = at(body.arguments[i]);
    at(operation.results[i]) = at(body.arguments[i]);
    instruction.initial_copies.push_back({operation.operands[i]->id, body.arguments[i]->id});
    instruction.results.push_back(operation.results[i]->id);
  }
  instruction.blocks.resize(2);
  instruction.block_copies.resize(3);
  ++loops_;
  build_region(condition, instruction.blocks[0]);
  instruction.operands = {condition.results[0]->id};
  read_back(condition.results[0]->id, end, instruction.blocks[0]);
  build_region(body, instruction.blocks[1]);
  --loops_;
  // New values that share a buffer with carried ones are moved aside before those are overwritten.
  const auto shares = [&](const ir::Value* v) {
    for (const ir::Value* a : body.arguments)
      if (at(v).dynamic || (at(a).buffer >= 0 && at(a).buffer == at(v).buffer)) return true;
    return false;
  };
  for (size_t i = 0; i < body.results.size(); ++i) {
    const ir::Value* v = body.results[i];
    int from = v->id;
    if (!at(v).dynamic && shares(v)) {
      from = temporary(at(v).layout, first);
      last_use_[static_cast<size_t>(from)] = end;
      instruction.block_copies[1].push_back({v->id, from});
    }
    instruction.block_copies[2].push_back({from, body.arguments[i]->id});
  }
  out.push_back(std::move(instruction));
}

// --- devices ---

void PlanBuilder::build_copies_in(std::vector<Instruction>& out) {
  constexpr size_t kMaxPacked = size_t{4} << 20;  // bytes of an input; larger ones are on their own
  const Device device = plan_.options_.target.device;
  const size_t alignment = device_properties(device).alignment;
  std::vector<std::vector<const ir::Value*>> blocks(1);
  for (const ir::Value* value : function_.body.arguments) {
    const Buffer& buffer = plan_.buffers_[static_cast<size_t>(at(value).buffer)];
    if (buffer.kind != BufferKind::kStaged) continue;
    if (buffer.bytes > kMaxPacked)
      blocks.push_back({value});
    else
      blocks[0].push_back(value);
  }
  for (const auto& values : blocks) {
    if (values.empty()) continue;
    Instruction instruction;
    instruction.kind = Instruction::Kind::kCopyIn;
    instruction.copies = true;
    instruction.records = plan_.streams_->new_event();
    std::vector<PlanStreams::Staged> staged;
    size_t bytes = 0;
    for (const ir::Value* value : values) {
      const int id = at(value).buffer;
      Buffer& buffer = plan_.buffers_[static_cast<size_t>(id)];
      buffer.offset = bytes;
      staged.push_back({buffer.input, bytes, buffer.bytes});
      bytes += (buffer.bytes + alignment - 1) / alignment * alignment;
      copied_[id] = instruction.records;
      instruction.results.push_back(value->id);
    }
    std::array<std::shared_ptr<Storage>, 2> memory;
    for (auto& each : memory) each = Storage::allocate(bytes, device);
    for (const ir::Value* value : values)
      plan_.buffers_[static_cast<size_t>(at(value).buffer)].staged = memory;
    instruction.staging =
        plan_.streams_->add_staging(std::move(staged), std::move(memory), instruction.records);
    out.push_back(std::move(instruction));
  }
}

void PlanBuilder::read_back(int value, int position, std::vector<Instruction>& out) {
  if (!plan_.streams_ || plan_.value_buffers_[static_cast<size_t>(value)].dynamic) return;
  plan_.streams_->add_condition(value);
  Instruction instruction;
  instruction.kind = Instruction::Kind::kReadBack;
  instruction.operands = {value};
  instruction.position = position;
  out.push_back(std::move(instruction));
}

void PlanBuilder::set_waits() {
  const auto note = [&](int value, std::vector<int>& waits) {
    if (value < 0) return;
    const auto copy = copied_.find(plan_.value_buffers_[static_cast<size_t>(value)].buffer);
    if (copy == copied_.end()) return;
    const int event = copy->second;
    waits.push_back(event);
    // Later instructions on the stream for kernels are after this one.
    std::erase_if(copied_, [&](const auto& each) { return each.second == event; });
  };
  const auto reads = [&](const auto& self, const Instruction& instruction,
                         std::vector<int>& waits) -> void {
    for (const int value : instruction.operands) note(value, waits);
    for (const auto& [from, to] : instruction.initial_copies) note(from, waits);
    for (const auto& copies : instruction.block_copies)
      for (const auto& [from, to] : copies) note(from, waits);
    for (const auto& block : instruction.blocks)
      for (const Instruction& nested : block) self(self, nested, waits);
  };
  for (Instruction& instruction : plan_.instructions_)
    if (!instruction.copies) reads(reads, instruction, instruction.waits);
}

}  // namespace paddle::runtime
