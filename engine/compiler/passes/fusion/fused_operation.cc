#include "compiler/passes/fusion/fused_operation.h"

#include <unordered_map>
#include <unordered_set>

namespace paddle::passes {

using ir::Operation;
using ir::Value;

std::unique_ptr<Operation> make_fused(ir::Function& function, std::vector<FusedMember> members) {
  static const Op& op = get_op("fused");
  auto fused = std::make_unique<Operation>();
  auto inner = std::make_unique<ir::Region>();
  fused->op = &op;
  fused->sequence = members.back().operation->sequence;
  fused->location = members.back().operation->location;
  std::unordered_set<const Value*> produced;
  for (const FusedMember& member : members) produced.insert(member.operation->results[0]);
  // Values inside the region by the ones that they stand for outside: arguments, and new results.
  std::unordered_map<const Value*, Value*> inside;
  for (const FusedMember& member : members)
    for (Value* v : member.operation->operands) {
      if (!v || produced.count(v) > 0 || inside.count(v) > 0) continue;
      inside[v] = function.add_argument(*inner, v->type);
      ir::annotate(*inside[v], *v);
      fused->operands.push_back(v);
    }
  for (FusedMember& member : members) {
    if (!member.used_outside) continue;
    Value* const result = member.operation->results[0];
    Value* const within = function.new_value(result->type);
    ir::annotate(*within, *result);
    within->producer = member.operation.get();
    member.operation->results[0] = within;
    inside[result] = within;
    result->producer = fused.get();
    result->index = fused->results.size();
    fused->results.push_back(result);
    inner->results.push_back(within);
  }
  for (FusedMember& member : members) {
    for (Value*& v : member.operation->operands)
      if (const auto it = inside.find(v); it != inside.end()) v = it->second;
    inner->operations.push_back(std::move(member.operation));
  }
  fused->attrs.list_sizes = {static_cast<int32_t>(fused->operands.size())};
  fused->regions.push_back(std::move(inner));
  return fused;
}

}  // namespace paddle::passes
