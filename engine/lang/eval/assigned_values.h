#pragma once
// What pieces of text do to the names around them, found without running them. Not for use outside
// the room.

#include "lang/eval/evaluation.h"

namespace paddle::lang {

/// What statements from number `from` on change.
Changes changes_of(const std::vector<Stmt>& statements, size_t from = 0);
/// What the branches of an `if` from number `from` on change, their conditions included (the first
/// one's excluded).
Changes changes_of_branches(const Stmt& statement, size_t from);
/// What a loop changes: its targets, its condition and its body.
Changes changes_of(const Stmt& loop);
/// What an expression changes (`list.pop()`).
Changes changes_of(const Expr& expr);
bool holds_call(const Expr& expr);
/// A `return`, or a `break` or `continue` that leaves these statements; null if there is none.
const Stmt* find_jump(const std::vector<Stmt>& statements, bool in_loop = false);
/// Whether what stands after this `if` belongs to one of its sides alone, because all others jump.
bool other_branches_jump(const Stmt& statement);

}  // namespace paddle::lang
