#pragma once
// Syntax trees as text: fully bracketed, for messages and tests.

#include <string>

#include "lang/syntax/syntax.h"

namespace paddle::lang {

std::string text(const Expr& expr);
std::string text(const std::vector<Stmt>& statements, int indent = 0);

}  // namespace paddle::lang
