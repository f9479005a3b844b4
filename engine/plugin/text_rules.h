#pragma once
// The rules of an operation that are text in the model language: its body, from which shapes and
// the decomposition follow, and gradients. They run under whatever interpreter is active.

#include <string>
#include <vector>

#include "config/document.h"
#include "lang/syntax/program.h"
#include "ops/core/rules.h"

namespace paddle::plugin {

/// The target of OpDef::context.
struct TextRules {
  std::string file;  ///< for messages
  lang::Code body;
  std::vector<lang::Code> gradients;  ///< one per declared operand, or none
};

/// Reads `body` and `vjp` of an entry. kConfig with the place of what does not fit.
TextRules read_text_rules(const config::Node& entry, const std::string& file);

/// Rules of OpDef for operations with TextRules.
Tensors decompose_by_text(CallContext& c);
Tensors vjp_by_text(VjpContext& c);

}  // namespace paddle::plugin
