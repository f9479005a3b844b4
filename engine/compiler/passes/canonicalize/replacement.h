#pragma once
// Replaced values of a pass that walks a function once and patches operands as it goes.

#include <unordered_map>

#include "ir/module.h"

namespace paddle::passes {

using Replacement = std::unordered_map<const ir::Value*, ir::Value*>;

/// From now on `to` is read in place of `from`, and has its name unless it has one.
inline void replace(Replacement& map, const ir::Value& from, ir::Value& to) {
  ir::annotate(to, from);
  map[&from] = &to;
}

inline ir::Value* replaced(const Replacement& map, ir::Value* value) {
  const auto it = map.find(value);
  return it == map.end() ? value : it->second;
}

inline void replace_operands(ir::Operation& operation, const Replacement& map) {
  for (ir::Value*& v : operation.operands)
    if (v) v = replaced(map, v);
}

inline void replace_results(ir::Region& region, const Replacement& map) {
  for (ir::Value*& v : region.results) v = replaced(map, v);
}

}  // namespace paddle::passes
