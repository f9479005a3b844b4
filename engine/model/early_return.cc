// `return` under a condition on a tensor. Each side of such an `if` is run to the end of the whole
// body, what stands after the `if` included, so that both sides give the body's value.
#include "model/evaluation.h"
#include "model/value_forms.h"

namespace paddle::model {

/// The statements that follow when a list of statements is done.
struct Evaluation::Rest {
  const std::vector<Stmt>* statements;
  size_t from;
  const Rest* outer;
};

namespace {

bool returns_inside(const Stmt& statement) {
  if (statement.kind != StmtKind::kIf) return false;
  for (const Branch& branch : statement.branches) {
    for (const Stmt& inner : branch.body) {
      if (inner.kind == StmtKind::kReturn || returns_inside(inner)) return true;
    }
  }
  return false;
}

}  // namespace

Outcome Evaluation::run_body(const std::vector<Stmt>& statements, Frame& frame) {
  return run_tail(statements, 0, nullptr, frame);
}

Outcome Evaluation::run_tail(const std::vector<Stmt>& statements, size_t from, const Rest* rest,
                             Frame& frame) {
  const DepthGuard guard(depth_);
  for (size_t i = from; i < statements.size(); ++i) {
    if (guard.too_deep()) refuse(statements[i].where, "more than 200 levels of nesting");
    if (returns_inside(statements[i])) {
      const Rest after{&statements, i + 1, rest};
      return run_if_tail(statements[i], 0, after, frame);
    }
    Outcome outcome =
        located(statements[i].where, [&] { return run_statement(statements[i], frame); });
    if (outcome.flow != Flow::kNormal) return outcome;
  }
  if (!rest) return {};
  return run_tail(*rest->statements, rest->from, rest->outer, frame);
}

Outcome Evaluation::run_if_tail(const Stmt& statement, size_t branch, const Rest& rest,
                                Frame& frame) {
  for (; branch < statement.branches.size(); ++branch) {
    const Branch& chosen = statement.branches[branch];
    if (!chosen.condition) return run_tail(chosen.body, 0, &rest, frame);
    const Value condition = evaluate(*chosen.condition, frame);
    if (!condition.is_tensor()) {
      if (placed(chosen.condition->where, [&] { return truth(condition); })) {
        return run_tail(chosen.body, 0, &rest, frame);
      }
      continue;
    }
    const Where& where = chosen.where;
    step(where);
    const auto run_side = [&](bool first) {
      Frame copy = Copier().copy(frame);
      Outcome outcome = first ? run_tail(chosen.body, 0, &rest, copy)
                              : run_if_tail(statement, branch + 1, rest, copy);
      if (outcome.flow != Flow::kReturn) {
        refuse(where,
               "'return' on one side of a condition on a tensor needs a 'return' on the other");
      }
      return outcome.value;
    };
    Value form;
    dry([&] {
      const Value a = run_side(true), b = run_side(false);
      form = placed(where, [&] { return join("the returned value", a, b, "if"); });
    });
    const Tensor test = condition_tensor(condition, where);
    if (is_dry()) return {Flow::kReturn, form};
    const auto side = [&](bool first) {
      return [&, first](const Tensors&) {
        return without_updates(where, [&] {
          Tensors flat;
          flatten(*this, form, run_side(first), where, flat);
          return flat;
        });
      };
    };
    const Tensors flat =
        placed(where, [&] { return current_interpreter().branch(test, side(true), side(false)); });
    size_t next = 0;
    return {Flow::kReturn, restore(form, flat, next)};
  }
  return run_tail(*rest.statements, rest.from, rest.outer, frame);
}

}  // namespace paddle::model
