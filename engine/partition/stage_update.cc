#include "partition/stage_update.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ir/clone.h"
#include "ir/tracer.h"
#include "ops/generated/comm.h"
#include "ops/generated/shape.h"

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;

constexpr int kAll = -1;  ///< computed by all ranks

class StageUpdate {
 public:
  StageUpdate(const ir::Function& update, const StageUpdateOptions& options)
      : update_(update),
        options_(options),
        function_(std::make_unique<ir::Function>(update.name, update.target)),
        tracer_(*function_) {}

  std::unique_ptr<ir::Function> run() {
    const InterpreterScope scope(tracer_);
    for (size_t i = 0; i < update_.inputs.size(); ++i) {
      const Value* const argument = update_.body.arguments[i];
      owner_[argument] = owner_of(update_.inputs[i]);
      arguments_[argument] = i;
    }
    for (const auto& operation : update_.body.operations) take(*operation);
    for (size_t i = 0; i < update_.outputs.size(); ++i) output(i);
    return std::move(function_);
  }

 private:
  int owner_of(const ir::Port& port) const {
    const auto it = options_.owners.find(port.name);
    const bool stored = port.kind == ir::PortKind::kParameter || port.kind == ir::PortKind::kState;
    return stored && it != options_.owners.end() ? it->second : kAll;
  }
  int owner(const Value* v) const {
    const auto it = owner_.find(v);
    return it == owner_.end() ? kAll : it->second;
  }
  bool is_here(int owner) const { return owner == kAll || owner == options_.position; }

  void take(const Operation& o) {
    std::set<int> owners;
    ir::for_each_read(o, [&](const Value* v) {
      if (owner(v) != kAll) owners.insert(owner(v));
    });
    const int where = owners.size() == 1 ? *owners.begin() : kAll;
    for (const Value* v : o.results) owner_[v] = where;
    // All ranks take part where a value of one of them is needed by all.
    if (where == kAll)
      ir::for_each_read(o, [&](const Value* v) {
        if (owner(v) != kAll) gather(v);
      });
    if (!is_here(where)) return;
    ir::for_each_read(o, [&](const Value* v) { provide(v); });
    // Gathered values stand for the owner's value in what all compute.
    ir::Copies own;
    if (where == kAll)
      ir::for_each_read(o, [&](const Value* v) {
        if (owner(v) == kAll) return;
        if (const auto it = copies_.find(v); it != copies_.end()) own.insert(*it);
        copies_[v] = gathered_.at(v);
      });
    ir::clone_operation(*function_, function_->body, o, copies_);
    if (where == kAll)
      ir::for_each_read(o, [&](const Value* v) {
        if (owner(v) == kAll) return;
        if (const auto it = own.find(v); it != own.end())
          copies_[v] = it->second;
        else
          copies_.erase(v);
      });
  }

  /// The input of this rank's function for an argument of the whole one.
  void provide(const Value* v) {
    const auto it = arguments_.find(v);
    if (it == arguments_.end() || copies_.contains(v) || !is_here(owner(v))) return;
    copies_[v] = function_->add_input(update_.inputs[it->second], v->type);
  }

  /// The value of its owner on all ranks.
  Value* gather(const Value* v) {
    const auto [it, inserted] = gathered_.try_emplace(v, nullptr);
    if (!inserted) return it->second;
    const Dims shape = concrete(v->type.shape);
    const int64_t count = element_count(std::span(shape));
    std::vector<int64_t> sizes(options_.group.size(), 0);
    sizes[static_cast<size_t>(owner(v))] = count;
    Tensor part;
    if (owner(v) == options_.position) {
      provide(v);
      part = ops::reshape(tracer_.tensor_of(copies_.at(v)), {Dim(count)});
    } else {
      part = Tensor(Array::zeros(v->type.dtype, {0}));
    }
    const Tensor whole = ops::comm_all_gather(part, options_.group, 0, sizes);
    return it->second = tracer_.value_of(ops::reshape(whole, to_shape(shape)));
  }

  void output(size_t i) {
    const ir::Port& port = update_.outputs[i];
    const Value* const v = update_.body.results[i];
    const auto copy = options_.copies.find(port.name);
    const bool shared = owner(v) != kAll && port.kind != ir::PortKind::kValue &&
                        copy != options_.copies.end() && !copy->second.empty();
    Value* everywhere = shared ? gather(v) : nullptr;
    const bool mine = is_here(owner(v));
    if (!mine && !(shared && copy->second.contains(options_.position))) return;
    if (mine) provide(v);
    Value* result = mine ? copied(v) : everywhere;
    // An updated parameter or state is written over the old one.
    for (size_t j = 0; j < update_.inputs.size(); ++j) {
      const Value* const argument = update_.body.arguments[j];
      if (update_.inputs[j].kind == port.kind && update_.inputs[j].name == port.name &&
          port.kind != ir::PortKind::kValue && !copies_.contains(argument))
        copies_[argument] = function_->add_input(port, argument->type);
    }
    function_->add_output(port, result);
  }

  Value* copied(const Value* v) {
    if (v->constant) return function_->add_constant(*v->constant);
    return copies_.at(v);
  }

  const ir::Function& update_;
  const StageUpdateOptions& options_;
  std::unique_ptr<ir::Function> function_;
  ir::Tracer tracer_;
  std::unordered_map<const Value*, int> owner_;
  std::unordered_map<const Value*, size_t> arguments_;
  ir::Copies copies_, gathered_;
};

}  // namespace

std::unique_ptr<ir::Function> stage_update(const ir::Function& update,
                                           const StageUpdateOptions& options) {
  return StageUpdate(update, options).run();
}

}  // namespace paddle::partition
