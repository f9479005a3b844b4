// Common-subexpression elimination.

#include <map>

#include "compiler/passes/canonicalize/replacement.h"
#include "compiler/passes/passes.h"

namespace paddle::passes {
namespace {

using ir::Function;
using ir::Operation;
using ir::Region;
using ir::Value;

std::string key_of(const Operation& operation) {
  std::string key(operation.op->name());
  for (const Value* v : operation.operands) key += v ? "%" + std::to_string(v->id) : "_";
  for (const AttrValue& v : operation.attrs.values) key += "|" + v.text();
  for (const int32_t n : operation.attrs.list_sizes) key += "#" + std::to_string(n);
  return key;
}

void merge(Region& region, Replacement& map, std::map<std::string, Operation*> known) {
  for (auto it = region.operations.begin(); it != region.operations.end();) {
    Operation& operation = **it;
    replace_operands(operation, map);
    for (const auto& nested : operation.regions) merge(*nested, map, known);
    // Each operation of a run-time shape binds dims of its own, so it has to stay.
    if (!operation.regions.empty() || has_effect(operation) || operation.op->has(kRunTimeShape)) {
      ++it;
      continue;
    }
    auto [found, inserted] = known.try_emplace(key_of(operation), &operation);
    if (inserted) {
      ++it;
      continue;
    }
    for (size_t i = 0; i < operation.results.size(); ++i)
      replace(map, *operation.results[i], *found->second->results[i]);
    it = region.operations.erase(it);
  }
  replace_results(region, map);
}

/// Merges small equal constants, so that operations on them become equal too.
void merge_constants(Function& function, Replacement& map) {
  std::map<std::string, Value*> known;
  for (const Value& v : function.values()) {
    if (!v.constant || v.constant->size() > 16) continue;
    const Array a = v.constant->contiguous();
    std::string key = v.type.text();
    key.append(static_cast<const char*>(a.raw()),
               static_cast<size_t>(storage_bytes(a.dtype, a.size())));
    auto [found, inserted] = known.try_emplace(key, const_cast<Value*>(&v));
    if (!inserted) replace(map, v, *found->second);
  }
}

}  // namespace

void merge_common_subexpressions(Function& function) {
  Replacement map;
  merge_constants(function, map);
  merge(function.body, map, {});
}

}  // namespace paddle::passes
