#pragma once
// Rules of operations that plug-ins have in C (paddle/plugin/operation.h) as rules of OpDef.

#include <string>

#include "ops/core/rules.h"
#include "paddle/plugin/operation.h"

namespace paddle::plugin {

/// The rules of one operation. It outlives the registry.
struct NativeRules {
  std::string plugin;     ///< "acme 1.0.0"
  std::string operation;  ///< "acme.twice"
  std::string file;       ///< for messages of expressions
  paddle_rules rules{};
};

/// Rules of OpDef for operations whose TextRules have native ones.
void infer_by_c(InferContext& c);
Tensors decompose_by_c(CallContext& c);
Tensors vjp_by_c(VjpContext& c);
/// Infers as the other rules of the operation say, and checks that its result can be a view of its
/// first operand.
void infer_of_view(InferContext& c);
/// Functions that get no operation, one of their own for these rules. kDevice if too many are in
/// use.
ViewFn view_by_c(const NativeRules& rules);
CostFn cost_by_c(const NativeRules& rules);

/// The tables that rules call, by host->table.
const paddle_types_functions& types_functions();
const paddle_build_functions& build_functions();

}  // namespace paddle::plugin
