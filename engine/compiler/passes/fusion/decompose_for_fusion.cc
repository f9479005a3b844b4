// Decomposes operations whose schema entry has `decompose_for_fusion`, such as batch normalization,
// into parts that fusion can merge with their neighbors.

#include "compiler/passes/passes.h"
#include "ir/replay.h"
#include "ops/core/rules.h"

namespace paddle::passes {
namespace {

class FusionDecomposition final : public ForwardingInterpreter {
 public:
  Tensors apply(const OpCall& c) override {
    const ScopedInterpreter below(next());
    if (c.op.def->decompose_for_fusion) {
      CallContext context(c.op, c.attrs, c.operands, c.results);
      Tensors results = c.op.def->decompose_for_fusion(context);
      if (!results.empty()) return results;
    }
    return next().apply(c);
  }
};

}  // namespace

void decompose_for_fusion(ir::Function& function) {
  bool any = false;
  ir::for_each_operation(
      function.body, [&](const ir::Operation& o) { any = any || o.op->def->decompose_for_fusion; });
  if (!any) return;
  FusionDecomposition decomposition;
  ir::retrace(function, decomposition);
}

}  // namespace paddle::passes
