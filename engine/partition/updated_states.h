#pragma once
// States that the forward pass reads and a training step updates, such as moving averages. Every
// stage of a pipeline has its own copy of what it reads, so the first read and the update of such a
// state belong to one stage.

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace paddle::partition {

struct UpdatedState {
  std::string name;
  ir::Value* before = nullptr;  ///< the argument of the function
  ir::Value* after = nullptr;   ///< its result
};

/// Those of a training function, whose first result is the loss.
std::vector<UpdatedState> updated_states(const ir::Function& function);

/// Copies each updated state at the beginning of the function, which all operations read instead,
/// since later jobs of a micro-batch would find the new value in the state itself. A state that is
/// read only by the operation that updates it needs none.
void copy_updated_states(ir::Function& function);

/// Operations that read these states only to copy them.
std::unordered_set<const ir::Operation*> state_copies(const ir::Function& function,
                                                      const std::vector<UpdatedState>& states);

}  // namespace paddle::partition
