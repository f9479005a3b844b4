#include "compiler/passes/group.h"

#include <unordered_map>
#include <unordered_set>

namespace paddle::passes {

using ir::Operation;
using ir::Value;

std::unique_ptr<Operation> make_group(ir::Function& function, std::vector<GroupPart> parts) {
  static const Op& op = get_op("fused");
  auto fused = std::make_unique<Operation>();
  auto inner = std::make_unique<ir::Region>();
  fused->op = &op;
  fused->sequence = parts.back().operation->sequence;
  fused->place = parts.back().operation->place;
  std::unordered_set<const Value*> made;
  for (const GroupPart& part : parts) made.insert(part.operation->results[0]);
  // What a value is called inside: an argument of the region, or what a part computes anew.
  std::unordered_map<const Value*, Value*> inside;
  for (const GroupPart& part : parts)
    for (Value* v : part.operation->operands) {
      if (!v || made.count(v) > 0 || inside.count(v) > 0) continue;
      inside[v] = function.add_argument(*inner, v->type);
      fused->operands.push_back(v);
    }
  for (GroupPart& part : parts) {
    if (!part.read_outside) continue;
    Value* const result = part.operation->results[0];
    Value* const within = function.new_value(result->type);
    within->producer = part.operation.get();
    part.operation->results[0] = within;
    inside[result] = within;
    result->producer = fused.get();
    result->index = fused->results.size();
    fused->results.push_back(result);
    inner->results.push_back(within);
  }
  for (GroupPart& part : parts) {
    for (Value*& v : part.operation->operands)
      if (const auto it = inside.find(v); it != inside.end()) v = it->second;
    inner->operations.push_back(std::move(part.operation));
  }
  fused->attrs.list_sizes = {static_cast<int32_t>(fused->operands.size())};
  fused->regions.push_back(std::move(inner));
  return fused;
}

}  // namespace paddle::passes
