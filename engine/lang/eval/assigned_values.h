#pragma once
// Finds the names that code changes, without running it. Internal to this folder.

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// Changes by the statements from number `from` on.
Changes changes_of(const std::vector<Stmt>& statements, size_t from = 0);
/// Changes by the branches of an `if` from number `from` on, including their conditions except the
/// first.
Changes changes_of_branches(const Stmt& statement, size_t from);
/// Changes by a loop: its targets, its condition and its body.
Changes changes_of(const Stmt& loop);
/// Changes by an expression (`list.pop()`).
Changes changes_of(const Expr& expr);
bool holds_call(const Expr& expr);
/// A `return`, or a `break` or `continue` that leaves these statements; null if there is none.
const Stmt* find_jump(const std::vector<Stmt>& statements, bool in_loop = false);
/// Whether what stands after this `if` belongs to one of its sides only, because all others jump.
bool other_branches_jump(const Stmt& statement);

}  // namespace paddle::lang
