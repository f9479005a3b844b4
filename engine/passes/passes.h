#pragma once
// Passes: each takes a function and changes it in place. They ask traits, never names, and keep
// types (symbolic dims included) as they are.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/module.h"

namespace paddle::passes {

/// Computes an operation on constants; given by the runtime, because passes hold no kernels.
using Evaluate = std::function<std::vector<Array>(const Op& op, const Attrs& attrs,
                                                  const std::vector<const Array*>& operands,
                                                  const std::vector<TensorType>& results)>;

/// Removes operations without effect whose results nobody uses.
void remove_dead_code(ir::Function& function);
/// Merges operations that compute the same from the same operands. Random operations differ by
/// their stream and stay apart.
void merge_common_subexpressions(ir::Function& function);
/// Replaces operations on constants by their value, up to `max_elements` per result.
void fold_constants(ir::Function& function, const Evaluate& evaluate, int64_t max_elements = 4096);

/// A pass by name, as `--passes` and `--dump-ir` call it.
struct Pass {
  std::string name;
  std::function<void(ir::Function&)> run;
};
/// The passes of the compiled mode, in order.
std::vector<Pass> standard_passes(Evaluate evaluate);
std::vector<std::string> pass_names();

}  // namespace paddle::passes
