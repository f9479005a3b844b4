#include "partition/stages.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "ir/clone.h"
#include "partition/updated_states.h"

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;

bool has_effect(const Operation& operation) {
  if (operation.op->has(kEffect)) return true;
  for (const auto& region : operation.regions)
    for (const auto& inner : region->operations)
      if (has_effect(*inner)) return true;
  return false;
}

/// comm.recv of a value, which keeps the location of the operation that computes it.
Value* append_recv(ir::Function& f, const Value& value, int64_t rank, int64_t tag) {
  Attrs attrs;
  attrs.values = {concrete(value.type.shape), value.type.dtype, rank, tag};
  Operation* const made = f.append(f.body, get_op("comm.recv"), {}, std::move(attrs), {value.type});
  made->location = value.producer->location;
  return made->results[0];
}

void append_send(ir::Function& f, Value* value, int64_t rank, int64_t tag) {
  Attrs attrs;
  attrs.values = {rank, tag};
  Operation* const made = f.append(f.body, get_op("comm.send"), {value}, std::move(attrs),
                                   {TensorType{DType::kU8, {Dim(0)}}});
  if (value->producer) made->location = value->producer->location;
}

}  // namespace

std::unordered_set<const Operation*> ancestors(const Value* value) {
  std::unordered_set<const Operation*> out;
  std::vector<const Value*> open = {value};
  while (!open.empty()) {
    const Value* const v = open.back();
    open.pop_back();
    if (!v->producer || !out.insert(v->producer).second) continue;
    ir::for_each_read(*v->producer, [&](const Value* read) {
      if (!read->constant) open.push_back(read);
    });
  }
  return out;
}

StageCut::StageCut(const ir::Function& function, const LeafStages& leaves, int stages,
                   bool training, bool split_backward, std::unordered_set<const Value*> dropped)
    : function_(function), stages_(stages), dropped_(std::move(dropped)) {
  place_operations(leaves, training);
  if (split_backward) split_weights();
  find_values();
}

const StageCut::Place* StageCut::place_of(const Value* value) const {
  if (!value->producer) return nullptr;
  const auto it = places_.find(value->producer);
  return it == places_.end() ? nullptr : &it->second;
}

void StageCut::place_operations(const LeafStages& leaves, bool training) {
  std::unordered_map<const Value*, Free> free;
  for (size_t i = 0; i < function_.inputs.size(); ++i) {
    const ir::Port& port = function_.inputs[i];
    Free& f = free[function_.body.arguments[i]];
    f.batch = port.kind == ir::PortKind::kValue || port.kind == ir::PortKind::kRandom;
    if (f.batch) continue;
    f.leaves.insert(port.name);
    if (const auto it = leaves.find(port.name); it != leaves.end()) f.leaf_stage = it->second;
  }
  std::unordered_set<const Operation*> forward;
  if (training) {
    forward = ancestors(function_.body.results[0]);
    // The next micro-batch reads the new value of a state.
    const std::vector<UpdatedState> states = updated_states(function_);
    for (const UpdatedState& state : states) forward.merge(ancestors(state.after));
    state_copies_ = state_copies(function_, states);
  }
  // The last stage whose forward pass reads a value.
  std::unordered_map<const Value*, int> last_read;
  for (const auto& operation : function_.body.operations) {
    const Operation& o = *operation;
    Free all;
    int placed = -1;  // the last stage of an operand's
    bool is_placed = false;
    ir::for_each_read(o, [&](const Value* v) {
      if (const Place* const place = place_of(v)) {
        is_placed = true;
        placed = std::max(placed, place->stage);
      } else if (const auto it = free.find(v); it != free.end()) {
        all.batch = all.batch || it->second.batch;
        all.leaf_stage = std::max(all.leaf_stage, it->second.leaf_stage);
        all.leaves.insert(it->second.leaves.begin(), it->second.leaves.end());
      }
    });
    const bool is_free = !is_placed && !state_copies_.contains(&o) &&
                         !(all.batch && all.leaf_stage >= 0) &&
                         !(has_effect(o) && all.leaf_stage < 0);
    if (is_free) {
      for (const Value* v : o.results) free[v] = all;
      continue;
    }
    if (!training || forward.contains(&o)) {
      const int stage = std::max({placed, all.leaf_stage, 0});
      places_[&o] = {stage, JobKind::kForward};
      for (const std::string& leaf : all.leaves) readers_[leaf].insert(stage);
      ir::for_each_read(o, [&](const Value* v) {
        if (place_of(v)) last_read[v] = std::max(last_read[v], stage);
      });
      continue;
    }
    // A gradient is computed in the last stage that has all values that it reads.
    int stage = stages_ - 1;
    if (!is_placed) {
      stage = std::max(all.leaf_stage, 0);
      for (const std::string& leaf : all.leaves)
        if (const auto it = readers_.find(leaf); it != readers_.end())
          stage = std::max(stage, *it->second.rbegin());
    }
    ir::for_each_read(o, [&](const Value* v) {
      const Place* const place = place_of(v);
      if (!place) return;
      const auto read = last_read.find(v);
      stage = std::min(stage, read == last_read.end() ? place->stage : read->second);
    });
    places_[&o] = {stage, JobKind::kBackward};
    for (const std::string& leaf : all.leaves) readers_[leaf].insert(stage);
  }
}

/// Gradients that no other stage waits for get jobs of their own.
void StageCut::split_weights() {
  std::unordered_set<const Operation*> awaited;
  std::vector<const Operation*> order;
  for (const auto& operation : function_.body.operations) order.push_back(operation.get());
  for (const Operation* reader : order) {
    const auto place = places_.find(reader);
    if (place == places_.end()) continue;
    ir::for_each_read(*reader, [&](const Value* v) {
      const Place* const from = place_of(v);
      if (from && from->kind == JobKind::kBackward && from->stage != place->second.stage)
        awaited.insert(v->producer);
    });
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (!awaited.contains(*it)) continue;
    ir::for_each_read(**it, [&](const Value* v) {
      const Place* const from = place_of(v);
      if (from && from->kind == JobKind::kBackward) awaited.insert(v->producer);
    });
  }
  for (auto& [operation, place] : places_)
    if (place.kind == JobKind::kBackward && !awaited.contains(operation))
      place.kind = JobKind::kWeights;
}

int StageCut::value_number(const Value* value) {
  const auto [it, inserted] = numbers_.emplace(value, static_cast<int>(values_.size()));
  if (inserted) values_.push_back(value);
  return it->second;
}

bool StageCut::is_recomputed(const Value* value, const Place& reader) const {
  const Place* const from = place_of(value);
  return from && from->kind == JobKind::kForward && reader.kind != JobKind::kForward &&
         from->stage == reader.stage && !state_copies_.contains(value->producer) &&
         dropped_.contains(value) && !numbers_.contains(value);
}

void StageCut::keep_recompute_inputs(const Value* value, const Place& reader,
                                     std::unordered_set<const Value*>& seen) {
  if (!seen.insert(value).second) return;
  ir::for_each_read(*value->producer, [&](const Value* v) {
    if (is_recomputed(v, reader))
      keep_recompute_inputs(v, reader, seen);
    else if (place_of(v))
      value_number(v);
  });
}

void StageCut::find_values() {
  // The first kind of job of a stage that reads a value of another one.
  std::map<std::pair<int, int>, Transfer> transfers;
  for (const auto& operation : function_.body.operations) {
    const auto place = places_.find(operation.get());
    if (place == places_.end()) continue;
    const Place& to = place->second;
    ir::for_each_read(*operation, [&](const Value* v) {
      const Place* const from = place_of(v);
      if (!from || *from == to || is_recomputed(v, to)) return;
      const int number = value_number(v);
      if (from->stage == to.stage) return;
      Transfer& t = transfers
                        .try_emplace({number, to.stage},
                                     Transfer{number, from->stage, to.stage, from->kind, to.kind})
                        .first->second;
      t.before = std::min(t.before, to.kind);
    });
  }
  for (const auto& [key, transfer] : transfers) transfers_.push_back(transfer);
  if (dropped_.empty()) return;
  std::unordered_set<const Value*> seen;
  for (const auto& operation : function_.body.operations) {
    const auto place = places_.find(operation.get());
    if (place == places_.end() || place->second.kind == JobKind::kForward) continue;
    ir::for_each_read(*operation, [&](const Value* v) {
      if (is_recomputed(v, place->second)) keep_recompute_inputs(v, place->second, seen);
    });
  }
}

StageCut::Place StageCut::output_place(size_t output) const {
  if (const Place* const place = place_of(function_.body.results[output])) return *place;
  // Results that need no stage are computed in the last one.
  return {stages_ - 1, JobKind::kForward};
}

int StageCut::stage_of_output(size_t output) const { return output_place(output).stage; }

int StageCut::received(int value, const Place& reader, const StageMessages* messages) const {
  if (!messages) return -1;
  for (size_t t = 0; t < transfers_.size(); ++t) {
    const Transfer& transfer = transfers_[t];
    if (transfer.value == value && transfer.to == reader.stage && transfer.before == reader.kind &&
        messages->ranks[static_cast<size_t>(transfer.from)] != messages->here)
      return static_cast<int>(t);
  }
  return -1;
}

std::set<int> StageCut::kept_values(const StageMessages& messages) const {
  std::set<int> out;
  for (int stage = 0; stage < stages_; ++stage) {
    if (messages.ranks[static_cast<size_t>(stage)] != messages.here) continue;
    for (const JobKind kind : {JobKind::kForward, JobKind::kBackward, JobKind::kWeights})
      for (const StageFunction::Source& source : function(kind, stage).inputs)
        if (source.value >= 0 && received(source.value, {stage, kind}, &messages) < 0)
          out.insert(source.value);
  }
  return out;
}

StageFunction StageCut::function(JobKind kind, int stage, const StageMessages* messages) const {
  StageFunction out;
  const Place here{stage, kind};
  auto f = std::make_unique<ir::Function>(str(function_.name, ".",
                                              kind == JobKind::kForward    ? "forward"
                                              : kind == JobKind::kBackward ? "backward"
                                                                           : "weights",
                                              stage),
                                          function_.target);
  ir::Copies copies;
  std::vector<int> received_values;
  std::unordered_map<const Value*, size_t> arguments;
  for (size_t i = 0; i < function_.inputs.size(); ++i) arguments[function_.body.arguments[i]] = i;
  // Makes a value available that the jobs' operations read.
  const auto provide = [&](const auto& self, const Value* v) -> void {
    if (v->constant || copies.contains(v)) return;
    if (const auto it = arguments.find(v); it != arguments.end()) {
      copies[v] = f->add_input(function_.inputs[it->second], v->type);
      out.inputs.push_back({static_cast<int>(it->second), -1});
      return;
    }
    if (!v->producer) return;  // an argument of a region
    if (place_of(v) && !is_recomputed(v, here)) {
      const auto it = numbers_.find(v);
      if (it == numbers_.end()) return;
      if (const int t = received(it->second, here, messages); t >= 0) {
        const int from = transfers_[static_cast<size_t>(t)].from;
        copies[v] = append_recv(*f, *v, messages->ranks[static_cast<size_t>(from)],
                                messages->first_tag + t);
        received_values.push_back(it->second);
        return;
      }
      copies[v] = f->add_input({ir::PortKind::kValue, str("value.", it->second)}, v->type);
      out.inputs.push_back({-1, it->second});
      return;
    }
    ir::for_each_read(*v->producer, [&](const Value* read) { self(self, read); });
    ir::clone_operation(*f, f->body, *v->producer, copies);
  };
  bool works = false;
  for (const auto& operation : function_.body.operations) {
    const auto place = places_.find(operation.get());
    if (place == places_.end() || !(place->second == here)) continue;
    works = true;
    ir::for_each_read(*operation, [&](const Value* v) { provide(provide, v); });
    ir::clone_operation(*f, f->body, *operation, copies);
  }
  for (size_t i = 0; i < function_.outputs.size(); ++i) {
    if (!(output_place(i) == here)) continue;
    works = true;
    Value* const result = function_.body.results[i];
    provide(provide, result);
    if (result->constant && !copies.contains(result))
      copies[result] = f->add_constant(*result->constant);
    // An updated parameter or state is written over the old one.
    if (function_.outputs[i].kind != ir::PortKind::kValue)
      for (size_t j = 0; j < function_.inputs.size(); ++j)
        if (function_.inputs[j].kind == function_.outputs[i].kind &&
            function_.inputs[j].name == function_.outputs[i].name)
          provide(provide, function_.body.arguments[j]);
    f->add_output(function_.outputs[i], copies.at(result));
    out.outputs.push_back({static_cast<int>(i), -1});
  }
  const auto put_out = [&](int n) {
    if (messages && !messages->kept.contains(n)) return;
    f->add_output({ir::PortKind::kValue, str("value.", n)},
                  copies.at(values_[static_cast<size_t>(n)]));
    out.outputs.push_back({-1, n});
  };
  for (size_t n = 0; n < values_.size(); ++n)
    if (*place_of(values_[n]) == here) put_out(static_cast<int>(n));
  for (const int n : received_values) put_out(n);
  for (size_t t = 0; t < transfers_.size(); ++t) {
    const Transfer& transfer = transfers_[t];
    works = works || (transfer.to == stage && transfer.before == kind);
    if (!messages || transfer.from != stage || transfer.after != kind) continue;
    const int64_t to = messages->ranks[static_cast<size_t>(transfer.to)];
    if (to != messages->here)
      append_send(*f, copies.at(values_[static_cast<size_t>(transfer.value)]), to,
                  messages->first_tag + static_cast<int64_t>(t));
  }
  if (works) out.function = std::move(f);
  return out;
}

}  // namespace paddle::partition
