// Groups operations whose kernels convert what they read and write, such as the normalizations of
// a GPU, with the casts around them, and gradients that such a kernel writes next to each other
// with the concat that joins them. Values are then in memory once, in the narrow type.

#include <algorithm>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/passes/fusion/fused_operation.h"
#include "compiler/passes/passes.h"
#include "ops/generated/shape.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Value;

bool is_half(DType type) { return type == DType::kF16 || type == DType::kBF16; }

bool has_known_size(const Value* v) { return !v || !has_run_time_size(v->type); }

class ConversionFuser {
 public:
  ConversionFuser(ir::Function& function, const FusesAround& fuses)
      : function_(function), fuses_(fuses) {
    for (const auto& o : function.body.operations) count_reads(*o);
    for (const Value* v : function.body.results) readers_[v].push_back(nullptr);
  }

  void run() {
    auto& operations = function_.body.operations;
    for (auto it = operations.begin(); it != operations.end(); ++it) places_[it->get()] = it;
    std::vector<Operation*> candidates;
    for (const auto& o : operations)
      if (o->regions.empty() && std::ranges::all_of(o->operands, has_known_size) &&
          std::ranges::all_of(o->results, has_known_size))
        candidates.push_back(o.get());
    for (Operation* o : candidates) {
      if (fuses_(*o, Around::kConcat) && join_results(*o)) continue;
      if (fuses_(*o, Around::kCasts)) absorb_casts(*o);
    }
    remove_dead_code(function_);
  }

 private:
  void count_reads(const Operation& o) {
    ir::for_each_read(o, [&](const Value* v) { readers_[v].push_back(&o); });
  }

  /// The only reader of a value, an operation of the function's body; null if there is none.
  Operation* only_reader(const Value* v) const {
    const auto readers = readers_.find(v);
    if (readers == readers_.end() || readers->second.size() != 1 || !readers->second[0])
      return nullptr;
    const auto place = places_.find(readers->second[0]);
    return place == places_.end() ? nullptr : place->second->get();
  }
  bool is_read(const Value* v) const { return readers_.contains(v); }

  std::unique_ptr<Operation> take(const Operation* o) {
    const auto place = places_.at(o);
    std::unique_ptr<Operation> out = std::move(*place);
    function_.body.operations.erase(place);
    places_.erase(o);
    return out;
  }

  /// A cast of its own for the group, of the operand of `cast`.
  std::unique_ptr<Operation> copy_of(const Operation& cast) {
    auto out = std::make_unique<Operation>();
    out->op = cast.op;
    out->operands = cast.operands;
    out->attrs = cast.attrs;
    out->sequence = cast.sequence;
    out->location = cast.location;
    Value* const result = function_.new_value(cast.results[0]->type);
    result->producer = out.get();
    out->results = {result};
    return out;
  }

  /// Puts the group in the place of `o`, which is its member `at`.
  void put(Operation* o, Members members, size_t at,
           const std::unordered_set<const Value*>& results) {
    const auto place = places_.at(o);
    members[at] = std::move(*place);
    *place = make_fused(function_, std::move(members),
                        [&](const Value* value) { return results.contains(value); });
    places_.erase(o);
    places_[place->get()] = place;
  }

  void absorb_casts(Operation& o) {
    Members members;
    for (Value*& v : o.operands) {
      if (!v || v->type.dtype != DType::kF32 || !v->producer || v->producer->op != &cast_) continue;
      const Operation& cast = *v->producer;
      if (!is_half(cast.operands[0]->type.dtype) || !places_.contains(&cast)) continue;
      const auto same = std::ranges::find_if(
          members, [&](const auto& member) { return member->operands[0] == cast.operands[0]; });
      if (same != members.end()) {
        v = (*same)->results[0];
        continue;
      }
      members.push_back(copy_of(cast));
      v = members.back()->results[0];
    }
    const size_t at = members.size();
    members.push_back(nullptr);
    std::unordered_set<const Value*> results;
    for (const Value* v : o.results) {
      Operation* const reader = v->type.dtype == DType::kF32 ? only_reader(v) : nullptr;
      if (reader && reader->op == &cast_ && is_half(reader->results[0]->type.dtype)) {
        results.insert(reader->results[0]);
        members.push_back(take(reader));
      } else if (is_read(v)) {
        results.insert(v);
      }
    }
    if (members.size() > 1) put(&o, std::move(members), at, results);
  }

  /// The concat that reads all results, each through views of its own, and the views in order.
  bool join_results(Operation& o) {
    std::vector<const Operation*> views;
    const Operation* concat = nullptr;
    for (const Value* v : o.results) {
      Operation* reader = only_reader(v);
      while (reader && (reader->op == &reshape_ || reader->op == &unsqueeze_)) {
        views.push_back(reader);
        reader = only_reader(reader->results[0]);
      }
      if (!reader || reader->op != &concat_ || (concat && reader != concat)) return false;
      concat = reader;
    }
    if (!concat || concat->operands.size() != o.results.size()) return false;
    Members members;
    members.push_back(nullptr);
    for (const Operation* view : views) members.push_back(take(view));
    members.push_back(take(concat));
    put(&o, std::move(members), 0, {concat->results[0]});
    return true;
  }

  ir::Function& function_;
  const FusesAround& fuses_;
  const Op& cast_ = get_op("cast");
  const Op& concat_ = get_op("concat");
  const Op& reshape_ = get_op("reshape");
  const Op& unsqueeze_ = get_op("unsqueeze");
  /// Null: a result of the function.
  std::unordered_map<const Value*, std::vector<const Operation*>> readers_;
  std::unordered_map<const Operation*, std::list<std::unique_ptr<Operation>>::iterator> places_;
};

}  // namespace

void fuse_conversions(ir::Function& function, const FusesAround& fuses) {
  ConversionFuser(function, fuses).run();
}

}  // namespace paddle::passes
