#include "partition/delayed_sums.h"

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "partition/communication.h"
#include "partition/rules.h"

namespace paddle::partition {
namespace {

using ir::Operation;
using ir::Value;
using Groups = std::vector<std::vector<int64_t>>;

bool is_sum_over_ranks(const Operation& o) {
  return o.op->name() == "comm.all_reduce" && attribute(o, "reduction").as_string() == "sum";
}

bool is_number(const Value* value) { return value->type.shape.empty(); }

/// An operand that is a sum over ranks, and the part of this rank that takes its place.
struct Leaf {
  Operation* reader = nullptr;
  size_t operand = 0;
  Value* part = nullptr;
  std::vector<const Value*> sums;  ///< over one group after the other, the last one first
};

class Delay {
 public:
  explicit Delay(ir::Function& function) : function_(function), uses_(ir::count_uses(function)) {}

  /// The groups over which the new value of a state is summed; nullopt if something else is
  /// computed from the sum, or there is none. The leaves are those of the last call.
  std::optional<Groups> find(Value* result, const Value* state) {
    leaves_.clear();
    Operation* const add = result->producer;
    if (!add || add->op->name() != "add" || uses_[result] != 1 || uses_[state] != 1)
      return std::nullopt;
    const size_t at = add->operands[0] == state ? 1 : 0;
    if (add->operands[1 - at] != state) return std::nullopt;
    return groups_of(*add, at);
  }
  void take_out() {
    for (const Leaf& leaf : leaves_) {
      leaf.reader->operands[leaf.operand] = leaf.part;
      unread_.insert(leaf.sums.begin(), leaf.sums.end());
    }
  }
  /// Removes the sums that were taken out.
  void finish() {
    auto& operations = function_.body.operations;
    for (const auto& operation : operations)
      if (is_sum_over_ranks(*operation)) remove_unread(*operation);
    std::erase_if(operations,
                  [](const auto& o) { return is_sum_over_ranks(*o) && o->operands.empty(); });
  }

 private:
  std::optional<Groups> groups_of(Operation& reader, size_t operand) {
    Value* const value = reader.operands[operand];
    Operation* const producer = value ? value->producer : nullptr;
    if (!producer || uses_[value] != 1) return std::nullopt;
    const std::string_view name = producer->op->name();
    if (is_sum_over_ranks(*producer)) return add_leaf(reader, operand);
    if (name == "reshape" || name == "transpose" || name == "cast" || name == "sum")
      return groups_of(*producer, 0);
    if (name == "embedding_grad") return groups_of(*producer, 1);  // all ranks have the index
    if (name == "multiply") {
      if (is_number(producer->operands[1])) return groups_of(*producer, 0);
      return is_number(producer->operands[0]) ? groups_of(*producer, 1) : std::nullopt;
    }
    if (name != "add") return std::nullopt;
    auto groups = groups_of(*producer, 0);
    return groups && groups_of(*producer, 1) == groups ? groups : std::nullopt;
  }

  std::optional<Groups> add_leaf(Operation& reader, size_t operand) {
    Leaf leaf{&reader, operand, reader.operands[operand], {}};
    Groups groups;
    while (leaf.part->producer && is_sum_over_ranks(*leaf.part->producer) &&
           uses_[leaf.part] == 1) {
      const Operation& sum = *leaf.part->producer;
      leaf.sums.push_back(leaf.part);
      groups.insert(groups.begin(), attribute(sum, "ranks").as_ints());
      leaf.part = sum.operands[leaf.part->index];
    }
    leaves_.push_back(std::move(leaf));
    return groups;
  }

  void remove_unread(Operation& sum) {
    size_t kept = 0;
    for (size_t i = 0; i < sum.results.size(); ++i) {
      if (unread_.contains(sum.results[i])) continue;
      sum.results[kept] = sum.results[i];
      sum.operands[kept] = sum.operands[i];
      sum.results[kept]->index = kept;
      ++kept;
    }
    sum.results.resize(kept);
    sum.operands.resize(kept);
    sum.attrs.list_sizes[0] = static_cast<int32_t>(kept);
  }

  ir::Function& function_;
  std::unordered_map<const Value*, int> uses_;
  std::vector<Leaf> leaves_;
  std::set<const Value*> unread_;
};

Value* input_of(const ir::Function& function, const ir::Port& port) {
  for (size_t i = 0; i < function.inputs.size(); ++i)
    if (function.inputs[i].kind == port.kind && function.inputs[i].name == port.name)
      return function.body.arguments[i];
  return nullptr;
}

void replace_reads(ir::Region& region, const std::unordered_map<const Value*, Value*>& by) {
  const auto replace = [&](Value*& value) {
    if (const auto it = by.find(value); it != by.end()) value = it->second;
  };
  for (const auto& operation : region.operations) {
    for (Value*& operand : operation->operands) replace(operand);
    for (const auto& nested : operation->regions) replace_reads(*nested, by);
  }
  for (Value*& result : region.results) replace(result);
}

}  // namespace

DelayedSums delay_sums(ir::Function& function,
                       const std::function<bool(const std::string&)>& accumulates, int64_t rank,
                       const DelayedSums* settled) {
  DelayedSums out;
  Delay delay(function);
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    const ir::Port& port = function.outputs[i];
    if (port.kind != ir::PortKind::kState || !accumulates(port.name)) continue;
    Value* const state = input_of(function, port);
    Value*& result = function.body.results[i];
    if (!state || result == state) continue;
    const auto groups = delay.find(result, state);
    const Groups* wanted = groups ? &*groups : nullptr;
    if (settled) {
      const auto it = settled->find(port.name);
      wanted = it == settled->end() ? nullptr : &it->second;
    }
    if (!wanted) continue;
    out[port.name] = *wanted;
    if (groups && *groups == *wanted) {
      delay.take_out();
    } else {
      const bool adds = std::all_of(wanted->begin(), wanted->end(),
                                    [&](const auto& group) { return group[0] == rank; });
      if (!adds) result = state;
    }
  }
  delay.finish();
  return out;
}

void sum_states(ir::Function& function, const DelayedSums& sums, int64_t bucket_bytes) {
  struct Bucket {
    Groups groups;
    DType dtype;
    int64_t bytes = 0;
    std::vector<Value*> states;
  };
  std::vector<Bucket> buckets;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const auto it = sums.find(function.inputs[i].name);
    if (function.inputs[i].kind != ir::PortKind::kState || it == sums.end()) continue;
    Value* const state = function.body.arguments[i];
    const int64_t bytes = bytes_of(*state);
    auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& b) {
      return b.groups == it->second && b.dtype == state->type.dtype &&
             b.bytes + bytes <= bucket_bytes;
    });
    if (bucket == buckets.end())
      bucket = buckets.insert(buckets.end(), {it->second, state->type.dtype, 0, {}});
    bucket->bytes += bytes;
    bucket->states.push_back(state);
  }
  auto& operations = function.body.operations;
  std::list<std::unique_ptr<Operation>> others;
  others.swap(operations);
  std::unordered_map<const Value*, Value*> by;
  for (const Bucket& bucket : buckets) {
    std::vector<Value*> parts = bucket.states;
    std::vector<TensorType> types;
    for (const Value* part : parts) types.push_back(part->type);
    for (const std::vector<int64_t>& group : bucket.groups) {
      Attrs attrs;
      attrs.values = {group, "sum"};
      attrs.list_sizes = {static_cast<int32_t>(parts.size())};
      parts = function
                  .append(function.body, get_op("comm.all_reduce"), std::move(parts),
                          std::move(attrs), types)
                  ->results;
    }
    for (size_t i = 0; i < parts.size(); ++i) by[bucket.states[i]] = parts[i];
  }
  // The sums come first, and what read the states reads them.
  others.swap(operations);
  replace_reads(function.body, by);
  operations.splice(operations.begin(), others);
}

}  // namespace paddle::partition
