#pragma once
// The rules of an operation that are text: types, and in the model language its body, from which
// shapes and the decomposition follow, and gradients. They run under whatever interpreter is
// active.

#include <string>
#include <vector>

#include "config/document.h"
#include "lang/eval/values.h"
#include "lang/syntax/program.h"
#include "ops/core/rules.h"
#include "partition/factor_text.h"
#include "plugin/type_text.h"

namespace paddle::plugin {

struct NativeRules;

/// The target of OpDef::context.
struct TextRules {
  std::string file;  ///< for messages
  lang::Code body;
  std::vector<lang::Code> gradients;    ///< one per declared operand, or none
  std::vector<TypeText> types = {};     ///< one per result, or none: they follow from the body
  bool surrogate_gradient = false;      ///< the gradients are not those of the function
  const NativeRules* native = nullptr;  ///< rules in C (rules_adapter.h)
  InferFn infer_before_view = nullptr;  ///< of an operation with the rule `view`
};
/// Those of an operation of a plug-in.
const TextRules& text_rules_of(const Op& op);

/// Reads `body` and `vjp` of an entry. kConfig with the place of what does not fit.
TextRules read_text_rules(const config::Node& entry, const std::string& file);

/// A rule for the operation on several ranks (partition/factor_text.h); kConfig with its place.
partition::RuleFn read_sharding_rule(const config::Node& node);

/// Rules of OpDef for operations with TextRules.
Tensors decompose_by_text(CallContext& c);
Tensors vjp_by_text(VjpContext& c);
void infer_by_text(InferContext& c);

/// Operands and attributes by name, for expressions.
lang::NamedValues names_of(const CallContext& c);
lang::NamedValues names_of(const VjpContext& c);
/// The operands, the elements of lists one by one.
Tensors flat_operands(const CallContext& c);
Tensors flat_operands(const VjpContext& c);
/// The value of an expression, which `file` names in messages. Texts are read once.
Tensor value_of_text(const Op& op, const std::string& text, const std::string& file,
                     const lang::NamedValues& names);

/// Whether an operation of a plug-in states that its gradient is not that of the function.
bool has_surrogate_gradient(const Op& op);

}  // namespace paddle::plugin
