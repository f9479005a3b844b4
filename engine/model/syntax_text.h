#pragma once
// Syntax trees as text: fully bracketed, for messages and tests.

#include <string>

#include "model/syntax.h"

namespace paddle::model {

std::string text(const Expr& expr);
std::string text(const std::vector<Stmt>& statements, int indent = 0);

}  // namespace paddle::model
