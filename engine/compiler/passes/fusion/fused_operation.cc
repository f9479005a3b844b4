#include "compiler/passes/fusion/fused_operation.h"

#include <unordered_map>
#include <unordered_set>

namespace paddle::passes {

using ir::Operation;
using ir::Value;

std::unique_ptr<Operation> make_group(ir::Function& function, const Op& op, Members members,
                                      const std::function<bool(const Value*)>& is_used_outside) {
  auto group = std::make_unique<Operation>();
  auto inner = std::make_unique<ir::Region>();
  group->op = &op;
  group->attrs.values = op.defaults;
  group->sequence = members.back()->sequence;
  group->location = members.back()->location;
  std::unordered_set<const Value*> produced;
  for (const auto& member : members)
    produced.insert(member->results.begin(), member->results.end());
  // Values inside the region by the ones that they stand for outside: arguments, and new results.
  std::unordered_map<const Value*, Value*> inside;
  for (const auto& member : members)
    for (Value* v : member->operands) {
      if (!v || produced.count(v) > 0 || inside.count(v) > 0) continue;
      inside[v] = function.add_argument(*inner, v->type);
      ir::annotate(*inside[v], *v);
      group->operands.push_back(v);
    }
  for (const auto& member : members)
    for (Value*& result : member->results) {
      if (!is_used_outside(result)) continue;
      Value* const outside = result;
      Value* const within = function.new_value(outside->type);
      ir::annotate(*within, *outside);
      within->producer = member.get();
      within->index = outside->index;
      result = within;
      inside[outside] = within;
      outside->producer = group.get();
      outside->index = group->results.size();
      group->results.push_back(outside);
      inner->results.push_back(within);
    }
  for (auto& member : members) {
    for (Value*& v : member->operands)
      if (const auto it = inside.find(v); it != inside.end()) v = it->second;
    inner->operations.push_back(std::move(member));
  }
  group->attrs.list_sizes = {static_cast<int32_t>(group->operands.size())};
  group->regions.push_back(std::move(inner));
  return group;
}

std::unique_ptr<Operation> make_fused(ir::Function& function, Members members,
                                      const std::function<bool(const Value*)>& is_used_outside) {
  return make_group(function, get_op("fused"), std::move(members), is_used_outside);
}

Members dissolve(Operation& group) {
  ir::Region& inner = *group.regions[0];
  std::unordered_map<const Value*, Value*> outside;
  for (size_t i = 0; i < group.operands.size(); ++i)
    outside[inner.arguments[i]] = group.operands[i];
  for (size_t i = 0; i < group.results.size(); ++i) outside[inner.results[i]] = group.results[i];
  Members members;
  for (auto& member : inner.operations) {
    for (Value*& v : member->operands)
      if (const auto it = outside.find(v); it != outside.end()) v = it->second;
    for (size_t i = 0; i < member->results.size(); ++i)
      if (const auto it = outside.find(member->results[i]); it != outside.end()) {
        Value*& result = member->results[i];
        result = it->second;
        result->producer = member.get();
        result->index = i;
      }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace paddle::passes
