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
  explicit KernelsOnly(const TargetInfo& target) : target_(target) {}
  Tensors apply(const OpCall& call) override {
    return is_decomposed(call, target_) ? decompose(call) : next().apply(call);
  }

 private:
  const TargetInfo& target_;
};

}  // namespace

void for_target(ir::Function& function, const TargetInfo& target) {
  function.target = target;
  bool any = false;
  ir::for_each_operation(function.body, [&](const ir::Operation& o) {
    if (any || !o.op->def->decompose) return;
    std::vector<DType> operands;
    for (const ir::Value* v : o.operands)
      if (v) operands.push_back(v->type.dtype);
    any = !has_kernel(*o.op, target, operands);
  });
  if (!any) return;
  KernelsOnly interpreter(target);
  ir::retrace(function, interpreter);
}

}  // namespace paddle::passes
