#include <algorithm>

#include "compiler/passes/passes.h"

namespace paddle::passes {

bool has_effect(const ir::Operation& operation) {
  if (operation.op->has(kEffect)) return true;
  for (const auto& region : operation.regions)
    for (const auto& inner : region->operations)
      if (has_effect(*inner)) return true;
  return false;
}

bool has_run_time_size(const TensorType& type) {
  std::vector<std::string> names;
  for (const Dim& d : type.shape) d.collect_symbols(names);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& n) { return n.starts_with('$'); });
}

}  // namespace paddle::passes
