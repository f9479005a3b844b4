// Decomposes operations that the target has no kernel for, so that a saved module runs on targets
// and builds other than those it was traced for.

#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ops/core/call.h"
#include "ops/core/kernel.h"

namespace paddle::passes {
namespace {

class TargetDecomposition final : public PassingInterpreter {
 public:
  explicit TargetDecomposition(const Target& target) : target_(target) {}
  Tensors apply(const OpCall& c) override {
    // Parts of a decomposition come here as well.
    if (c.op.def->decompose && !has_kernel(c.op, target_)) return decompose(c);
    const BelowScope below(next());
    return next().apply(c);
  }

 private:
  const Target& target_;
};

}  // namespace

void for_target(ir::Function& function, const Target& target) {
  function.target = target;
  bool any = false;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    any = any || (o.op->def->decompose && !has_kernel(*o.op, target));
  });
  if (!any) return;
  TargetDecomposition decomposition(target);
  ir::retrace(function, decomposition);
}

}  // namespace paddle::passes
