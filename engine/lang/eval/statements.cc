// Statements in their order, and assignments.
#include "lang/eval/statements.h"

#include "lang/eval/assigned_values.h"

namespace paddle::lang {

Outcome Statements::run(const std::vector<Stmt>& statements, Frame& frame, size_t from) {
  const DepthGuard guard = ev_.nest();
  for (size_t i = from; i < statements.size(); ++i) {
    const Stmt& statement = statements[i];
    if (guard.too_deep()) ev_.reject(statement.where, "more than 200 levels of nesting");
    const Continuation rest{statements, i + 1};
    Outcome outcome = ev_.with_location(statement.where, [&] {
      if (statement.kind != StmtKind::kIf) return run_statement(statement, frame);
      return run_if(statement, 0, other_branches_jump(statement) ? &rest : nullptr, frame);
    });
    if (outcome.continued) {
      outcome.continued = false;
      return outcome;
    }
    if (outcome.flow != Flow::kNormal) return run_continuation(std::move(outcome), rest, frame);
  }
  return {};
}

Value Statements::run_body(const std::vector<Stmt>& statements, Frame& frame) {
  Outcome outcome = run(statements, frame);
  if (outcome.flow == Flow::kMixed) {
    ev_.reject(find_jump(statements)->where,
               "'return' on one side of a condition on a tensor needs a 'return' on the other");
  }
  return std::move(outcome.value);
}

Outcome Statements::run_statement(const Stmt& statement, Frame& frame) {
  switch (statement.kind) {
    case StmtKind::kExpression:
      ev_.evaluate(*statement.value, frame);
      return {};
    case StmtKind::kAssign: {
      const Value value = ev_.evaluate(*statement.value, frame);
      for (const ExprPtr& target : statement.targets) assign(*target, value, frame);
      return {};
    }
    case StmtKind::kAugment:
      augment(statement, frame);
      return {};
    case StmtKind::kIf:
      return run_if(statement, 0, nullptr, frame);
    case StmtKind::kFor:
      return run_for(statement, frame);
    case StmtKind::kWhile:
      return run_while(statement, frame);
    case StmtKind::kScope: {
      const RangeScope range(statement.text);
      return run(statement.branches[0].body, frame);
    }
    case StmtKind::kBreak:
      return {Flow::kBreak, {}};
    case StmtKind::kContinue:
      return {Flow::kContinue, {}};
    case StmtKind::kReturn:
      return {Flow::kReturn, statement.value ? ev_.evaluate(*statement.value, frame) : Value()};
    case StmtKind::kPass:
      return {};
  }
  return {};
}

void Statements::augment(const Stmt& statement, Frame& frame) {
  const Expr& target = *statement.targets[0];
  const Value before = ev_.evaluate(target, frame);
  const Value other = ev_.evaluate(*statement.value, frame);
  Value result = ev_.operations().binary(statement.text, before, other, statement.where);
  assign(target, std::move(result), frame);
}

void Statements::assign(const Expr& target, Value value, Frame& frame) {
  switch (target.kind) {
    case ExprKind::kName:
      frame.unavailable.erase(target.text);
      if (value.is_tensor()) ir::name_traced(value.tensor(), target.text);
      if (const auto* reference = value.get<Callable>())
        frame.references[target.text].insert(reference->name);
      frame.locals[target.text] = std::move(value);
      return;
    case ExprKind::kIndex:
      return ev_.assign_index(target, value, frame);
    case ExprKind::kTuple:
    case ExprKind::kList:
      return unpack(target, value, frame);
    default:
      ev_.reject(target.where, "this cannot be assigned");
  }
}

void Statements::unpack(const Expr& target, const Value& value, Frame& frame) {
  const ValueList* items = value.items();
  const size_t wanted = target.children.size();
  if (!items) {
    ev_.reject(target.where,
               str("expected ", wanted, " values to unpack, found ", value.describe()));
  }
  if (items->size() != wanted) {
    ev_.reject(target.where, str("expected ", wanted, " values to unpack, found ", items->size()));
  }
  const ValueList copy = *items;
  for (size_t i = 0; i < wanted; ++i) assign(*target.children[i], copy[i], frame);
}

}  // namespace paddle::lang
