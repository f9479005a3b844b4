// Epilogues: what is done to the result of a convolution or matrix product, element by element,
// before anyone else reads it, joins it in one `fused` operation where a kernel takes it along.

#include <algorithm>
#include <functional>
#include <list>
#include <unordered_map>

#include "passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Operation;
using ir::Region;
using ir::Value;

using Uses = std::unordered_map<const Value*, std::vector<Operation*>>;

void collect_uses(const Region& region, Uses& uses) {
  for (const auto& o : region.operations) {
    for (const Value* v : o->operands)
      if (v) uses[v].push_back(o.get());
    for (const auto& nested : o->regions) collect_uses(*nested, uses);
  }
  for (const Value* v : region.results) uses[v].push_back(nullptr);
}

bool same_dims(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (a.shape[i].text() != b.shape[i].text()) return false;
  return true;
}

/// Puts the operations, which feed each other and whose inner results nobody else reads, into one.
std::unique_ptr<Operation> gathered(ir::Function& function,
                                    std::vector<std::unique_ptr<Operation>> members) {
  static const Op& op = get_op("fused");
  auto fused = std::make_unique<Operation>();
  auto inner = std::make_unique<Region>();
  fused->op = &op;
  fused->sequence = members.back()->sequence;
  fused->place = members.back()->place;
  std::unordered_map<const Value*, Value*> argument;
  for (const auto& m : members) {
    for (Value*& v : m->operands) {
      if (!v) continue;
      bool made_inside = false;
      for (const auto& other : members)
        made_inside = made_inside || (other != m && other->results[0] == v);
      if (made_inside) continue;
      auto [at, fresh] = argument.try_emplace(v, nullptr);
      if (fresh) {
        at->second = function.add_argument(*inner, v->type);
        fused->operands.push_back(v);
      }
      v = at->second;
    }
  }
  Value* const result = members.back()->results[0];
  Value* const within = function.new_value(result->type);
  within->producer = members.back().get();
  members.back()->results[0] = within;
  result->producer = fused.get();
  result->index = 0;
  fused->results = {result};
  inner->results = {within};
  for (auto& m : members) inner->operations.push_back(std::move(m));
  fused->attrs.list_sizes = {static_cast<int32_t>(fused->operands.size())};
  fused->regions.push_back(std::move(inner));
  return fused;
}

}  // namespace

void fuse_epilogues(ir::Function& function, const TakesAlong& takes_along) {
  Uses uses;
  collect_uses(function.body, uses);
  auto& operations = function.body.operations;
  using Place = std::list<std::unique_ptr<Operation>>::iterator;
  std::unordered_map<const Operation*, Place> places;
  for (auto it = operations.begin(); it != operations.end(); ++it) places[it->get()] = it;
  for (auto it = operations.begin(); it != operations.end();) {
    Operation* const first = (it++)->get();
    std::vector<const Operation*> chain = {first};
    const bool fixed = std::none_of(first->operands.begin(), first->operands.end(),
                                    [](const Value* v) { return v && has_run_time_size(v->type); });
    while (fixed && first->results.size() == 1 && first->regions.empty() &&
           !has_run_time_size(first->results[0]->type)) {
      const Value* const made = chain.back()->results[0];
      const auto& readers = uses[made];
      if (readers.size() != 1 || !readers[0] || places.count(readers[0]) == 0) break;
      const Operation& next = *readers[0];
      if (next.results.size() != 1 || !next.regions.empty() ||
          !same_dims(next.results[0]->type, made->type) || !takes_along(chain, next))
        break;
      chain.push_back(&next);
    }
    if (chain.size() == 1) continue;
    const Place last = places[chain.back()];
    std::vector<std::unique_ptr<Operation>> members;
    for (const Operation* o : chain) members.push_back(std::move(*places[o]));
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      const Place at = places[chain[i]];
      if (it == at) ++it;
      operations.erase(at);
    }
    for (const Operation* o : chain) places.erase(o);
    *last = gathered(function, std::move(members));
  }
}

}  // namespace paddle::passes
