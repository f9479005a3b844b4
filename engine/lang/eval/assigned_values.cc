#include "lang/eval/assigned_values.h"

#include <algorithm>

namespace paddle::lang {
namespace {

void add_name(Names& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// The name at the bottom of `a[i].b[j]`, or "".
std::string base_name(const Expr& expr) {
  const Expr* e = &expr;
  while (e->kind == ExprKind::kIndex || e->kind == ExprKind::kAttribute) e = e->children[0].get();
  return e->kind == ExprKind::kName ? e->text : "";
}

void changed_by(const Expr& expr, Names& names) {
  if (expr.kind == ExprKind::kCall && expr.children[0]->kind == ExprKind::kAttribute) {
    const Expr& method = *expr.children[0];
    const std::string name = base_name(*method.children[0]);
    if ((method.text == "append" || method.text == "pop") && !name.empty()) add_name(names, name);
  }
  for (const ExprPtr& child : expr.children) {
    if (child) changed_by(*child, names);
  }
  for (const Argument& argument : expr.arguments) changed_by(*argument.value, names);
}

void changed_targets(const Expr& target, Names& names) {
  if (target.kind == ExprKind::kName || target.kind == ExprKind::kIndex) {
    const std::string name = base_name(target);
    if (!name.empty()) add_name(names, name);
    return;
  }
  for (const ExprPtr& child : target.children) changed_targets(*child, names);
}

void changed_by(const Stmt& statement, Changes& out) {
  for (const ExprPtr& target : statement.targets) {
    changed_targets(*target, out.changed);
    visit_target_names(*target, [&](const std::string& name, const SourcePosition&) {
      add_name(out.bound, name);
    });
  }
  if (statement.value) changed_by(*statement.value, out.changed);
  for (const Branch& branch : statement.branches) {
    if (branch.condition) changed_by(*branch.condition, out.changed);
    for (const Stmt& inner : branch.body) changed_by(inner, out);
  }
}

bool always_jumps(const std::vector<Stmt>& statements) {
  if (statements.empty()) return false;
  const Stmt& last = statements.back();
  switch (last.kind) {
    case StmtKind::kReturn:
    case StmtKind::kBreak:
    case StmtKind::kContinue:
      return true;
    case StmtKind::kScope:
      return always_jumps(last.branches[0].body);
    case StmtKind::kIf:
      return !last.branches.back().condition &&
             std::all_of(last.branches.begin(), last.branches.end(),
                         [](const Branch& branch) { return always_jumps(branch.body); });
    default:
      return false;
  }
}

}  // namespace

Changes changes_of(const std::vector<Stmt>& statements, size_t from) {
  Changes out;
  for (size_t i = from; i < statements.size(); ++i) changed_by(statements[i], out);
  return out;
}

Changes changes_of_branches(const Stmt& statement, size_t from) {
  Changes out;
  for (size_t i = from; i < statement.branches.size(); ++i) {
    const Branch& branch = statement.branches[i];
    if (i > from && branch.condition) changed_by(*branch.condition, out.changed);
    for (const Stmt& inner : branch.body) changed_by(inner, out);
  }
  return out;
}

Changes changes_of(const Stmt& loop) {
  Changes out;
  changed_by(loop, out);
  return out;
}

Changes changes_of(const Expr& expr) {
  Changes out;
  changed_by(expr, out.changed);
  return out;
}

bool holds_call(const Expr& expr) {
  if (expr.kind == ExprKind::kCall) return true;
  return std::any_of(expr.children.begin(), expr.children.end(),
                     [](const ExprPtr& child) { return child && holds_call(*child); });
}

const Stmt* find_jump(const std::vector<Stmt>& statements, bool in_loop) {
  for (const Stmt& statement : statements) {
    if (statement.kind == StmtKind::kReturn) return &statement;
    if (!in_loop && (statement.kind == StmtKind::kBreak || statement.kind == StmtKind::kContinue)) {
      return &statement;
    }
    const bool loop = statement.kind == StmtKind::kFor || statement.kind == StmtKind::kWhile;
    for (const Branch& branch : statement.branches) {
      if (const Stmt* jump = find_jump(branch.body, in_loop || loop)) return jump;
    }
  }
  return nullptr;
}

bool other_branches_jump(const Stmt& statement) {
  size_t jumping = 0;
  bool any = false;
  for (const Branch& branch : statement.branches) {
    jumping += always_jumps(branch.body);
    any = any || find_jump(branch.body);
  }
  const size_t sides = statement.branches.size() + (statement.branches.back().condition ? 1 : 0);
  return any && jumping + 1 >= sides;
}

}  // namespace paddle::lang
