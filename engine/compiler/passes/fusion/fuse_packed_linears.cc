// Products of one x with several packed weights (query, key and value, or the two halves of a gated
// feed-forward) as one operation, with the RMS norm of x where nothing else reads it.

#include <algorithm>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/passes/passes.h"
#include "ops/generated/generation.h"
#include "ops/generated/nn.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Region;
using ir::Value;
using Operations = std::list<std::unique_ptr<Operation>>;
using Group = std::vector<Operations::iterator>;

bool is(const Operation& operation, std::string_view name) { return operation.op->name() == name; }

/// Whether the value is there before the first operation of the function.
bool is_given(const Value* value) { return !value || !value->producer; }

/// Whether one operation can compute both.
bool fit(const Operation& a, const Operation& b) {
  const PackedLinearAttrs left(a.attrs), right(b.attrs);
  return a.operands[0] == b.operands[0] && left.features == right.features &&
         left.activation_bits == right.activation_bits &&
         (a.operands[2] == nullptr) == (b.operands[2] == nullptr);
}

/// The groups of a region, single operations too, in the order of their first.
std::vector<Group> find_groups(Region& region) {
  std::vector<Group> out;
  std::unordered_map<const Value*, std::vector<size_t>> by_x;
  for (auto at = region.operations.begin(); at != region.operations.end(); ++at) {
    const Operation& operation = **at;
    if (!is(operation, "packed_linear") || !is_given(operation.operands[1]) ||
        !is_given(operation.operands[2]))
      continue;
    std::vector<size_t>& known = by_x[operation.operands[0]];
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](size_t i) { return fit(**out[i].front(), operation); });
    if (found != known.end()) {
      out[*found].push_back(at);
      continue;
    }
    known.push_back(out.size());
    out.push_back({at});
  }
  return out;
}

/// The RMS norm whose result only this group reads; null if it stays an operation of its own.
Operation* norm_of(const Group& group, const Region& region,
                   const std::unordered_map<const Value*, int>& uses) {
  const Operation& first = **group.front();
  Value* const x = first.operands[0];
  Operation* const norm = x->producer;
  if (!norm || !is(*norm, "rms_norm") || uses.at(x) != std::ssize(group)) return nullptr;
  const bool here = std::any_of(region.operations.begin(), region.operations.end(),
                                [&](const auto& operation) { return operation.get() == norm; });
  const Value *const input = norm->operands[0], *const weight = norm->operands[1];
  const TensorType wanted{DType::kF32, {Dim(PackedLinearAttrs(first.attrs).features)}};
  const bool fits = here && weight && is_given(weight) && same_type(weight->type, wanted) &&
                    same_type(input->type, x->type) && x->type.dtype == DType::kF32;
  return fits ? norm : nullptr;
}

void fuse(ir::Function& function, Region& region, const Group& group, const Operation* norm) {
  Operation& first = **group.front();
  std::vector<Value*> operands = {norm ? norm->operands[0] : first.operands[0]}, results;
  std::vector<Value*> biases;
  AttrValue::List formats;
  for (const auto at : group) {
    const Operation& operation = **at;
    operands.push_back(operation.operands[1]);
    if (operation.operands[2]) biases.push_back(operation.operands[2]);
    formats.push_back(operation.attrs[0]);
    results.push_back(operation.results[0]);
  }
  const auto weights = static_cast<int32_t>(group.size());
  operands.insert(operands.end(), biases.begin(), biases.end());
  operands.push_back(norm ? norm->operands[1] : nullptr);
  Attrs attrs;
  attrs.values = {AttrValue(std::move(formats)), first.attrs[1], first.attrs[2],
                  AttrValue(norm ? RmsNormAttrs(norm->attrs).eps : 1e-5)};
  attrs.list_sizes = {weights, static_cast<int32_t>(biases.size())};
  Operation* const fused = function.append(region, *find_op("packed_linears"), std::move(operands),
                                           std::move(attrs), {});
  fused->location = first.location;
  fused->results = std::move(results);
  for (size_t i = 0; i < fused->results.size(); ++i) {
    fused->results[i]->producer = fused;
    fused->results[i]->index = i;
  }
  region.operations.splice(group.front(), region.operations, std::prev(region.operations.end()));
  for (const auto at : group) region.operations.erase(at);
}

void fuse_region(ir::Function& function, Region& region,
                 const std::unordered_map<const Value*, int>& uses) {
  for (const auto& operation : region.operations)
    for (const auto& nested : operation->regions) fuse_region(function, *nested, uses);
  for (const Group& group : find_groups(region)) {
    Operation* const norm = norm_of(group, region, uses);
    if (group.size() > 1 || norm) fuse(function, region, group, norm);
  }
}

}  // namespace

void fuse_packed_linears(ir::Function& function) {
  fuse_region(function, function.body, ir::count_uses(function));
  remove_dead_code(function);
}

}  // namespace paddle::passes
