// Decomposes operations that the target has no kernel for, so that a saved module runs on targets
// and builds other than those it was traced for.

#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ops/core/call.h"
#include "ops/core/kernel.h"

namespace paddle::passes {
namespace {

class KernelsOnly final : public ForwardingInterpreter {
 public:
  explicit KernelsOnly(const Target& target) : target_(target) {}
  Tensors apply(const OpCall& call) override {
    return call.op.def->decompose && !has_kernel(call.op, target_) ? decompose(call)
                                                                   : next().apply(call);
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
  KernelsOnly interpreter(target);
  ir::retrace(function, interpreter);
}

}  // namespace paddle::passes
