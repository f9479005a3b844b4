// `if`, `while` and conditional expressions on tensors: they become control flow of the
// interpreter. What a branch or turn changes is found in the text, its kind by a run on types
// alone, and the values are carried as flat lists of tensors.
#include <algorithm>
#include <functional>

#include "model/dry_run.h"
#include "model/evaluation.h"
#include "model/value_forms.h"

namespace paddle::model {

// ---- types only
// ----------------------------------------------------------------------------------

namespace {

struct Nothing : Content {};

}  // namespace

Tensor typed_tensor(TensorType type) {
  static const auto nothing = std::make_shared<const Nothing>();
  return Tensor(std::move(type), nothing);
}

Tensors DryInterpreter::apply(const OpCall& call) {
  Tensors out;
  for (const TensorType& type : call.results) out.push_back(typed_tensor(type));
  return out;
}

Tensors DryInterpreter::branch(const Tensor&, const TensorFn& then_fn, const TensorFn& else_fn) {
  const Tensors a = then_fn({}), b = else_fn({});
  Tensors out;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    out.push_back(typed_tensor(joined_type(a[i].type(), b[i].type())));
  }
  return out;
}

Tensors DryInterpreter::loop(const TensorFn& condition, const TensorFn& body,
                             const Tensors& carried, int64_t) {
  Tensors inside;
  for (const Tensor& tensor : carried) inside.push_back(typed_tensor(tensor.type()));
  condition(inside);
  Tensors out;
  for (const Tensor& tensor : body(inside)) out.push_back(typed_tensor(tensor.type()));
  return out;
}

/// Nothing that happens inside is recorded, neither by the interpreter nor in states.
class DryScope {
 public:
  explicit DryScope(Evaluation& evaluation)
      : evaluation_(evaluation), scope_(interpreter_), states_(evaluation.states_) {
    ++evaluation_.dry_;
  }
  ~DryScope() {
    --evaluation_.dry_;
    evaluation_.states_ = std::move(states_);
  }

 private:
  Evaluation& evaluation_;
  DryInterpreter interpreter_;
  InterpreterScope scope_;
  std::map<std::string, Evaluation::StateSlot> states_;
};

// ---- what a piece of text changes
// ----------------------------------------------------------------

namespace {

using Names = std::vector<std::string>;

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

/// Names that statements bind, write into, append to or pop from.
void changed_by(const std::vector<Stmt>& statements, Names& names) {
  for (const Stmt& statement : statements) {
    for (const ExprPtr& target : statement.targets) changed_targets(*target, names);
    if (statement.value) changed_by(*statement.value, names);
    for (const Branch& branch : statement.branches) {
      if (branch.condition) changed_by(*branch.condition, names);
      changed_by(branch.body, names);
    }
  }
}

bool holds_call(const Expr& expr) {
  if (expr.kind == ExprKind::kCall) return true;
  return std::any_of(expr.children.begin(), expr.children.end(),
                     [](const ExprPtr& child) { return child && holds_call(*child); });
}

/// A jump out of statements whose condition is a tensor; loops keep their own breaks.
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

/// Gives a name its value after control flow. A list or cell that has other names as well changes
/// in place, as it would have without the control flow.
void put_back(Frame& frame, const std::string& name, const Value& value, bool rebound) {
  const auto found = frame.locals.find(name);
  if (!rebound && found != frame.locals.end()) {
    if (ValueList* items = found->second.mutable_items(); items && value.items()) {
      *items = *value.items();
      return;
    }
    if (found->second.is_tensor() && value.is_tensor() &&
        same_type(found->second.tensor().type(), value.tensor().type())) {
      found->second.tensor().assign(value.tensor());
      return;
    }
  }
  frame.poisoned.erase(name);
  frame.locals[name] = value;
}

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

// ---- conditions
// ----------------------------------------------------------------------------------

Tensor Evaluation::condition_tensor(const Value& value, const Where& where) {
  Tensor tensor = to_tensor(value, where, "condition");
  const Dim count = element_count(std::span<const Dim>(tensor.shape()));
  if (!count.equals(Dim(1)).value_or(false)) {
    refuse(where, str("a condition must be a tensor of one element, found ", tensor.type(),
                      " (any(…) or all(…) reduce it, where(…) chooses element by element)"));
  }
  if (tensor.ndim() > 0) tensor = op("reshape", {tensor, Value::list({})}, where).tensor();
  if (is_bool(tensor.dtype())) return tensor;
  return op("not_equal", {tensor, Value(int64_t{0})}, where).tensor();
}

void Evaluation::dry(const std::function<void()>& f) {
  const DryScope scope(*this);
  f();
}

Tensors Evaluation::without_updates(const Where& where, const std::function<Tensors()>& f) {
  const auto states = states_;
  Tensors results = f();
  for (const auto& [path, slot] : states_) {
    const auto before = states.find(path);
    if (before != states.end() && !slot.current.is_same_cell(before->second.current)) {
      refuse(where, str("the state '", path,
                        "' is updated under a condition on a tensor: give update(…) a value that "
                        "where(…) or an 'if' chose"));
    }
  }
  return results;
}

Value Evaluation::evaluate_dry(const Expr& expr, const Frame& frame) {
  const DryScope dry(*this);
  Frame copy = Copier().copy(frame);
  return evaluate(expr, copy);
}

Value Evaluation::loop_condition(const Expr& expr, Frame& frame) {
  // Without a call, nothing happens that a second evaluation would repeat.
  return holds_call(expr) ? evaluate_dry(expr, frame) : evaluate(expr, frame);
}

Value Evaluation::conditional_on_tensor(const Tensor& condition, const Expr& expr, Frame& frame) {
  const Where& where = expr.where;
  step(where);
  Value form;
  {
    const Value a = evaluate_dry(*expr.children[0], frame);
    const Value b = evaluate_dry(*expr.children[2], frame);
    form = placed(where, [&] { return join("the value", a, b, "if"); });
  }
  const Tensor chosen = condition_tensor(condition, where);
  if (is_dry()) return form;
  const auto side = [&](size_t child) {
    return [&, child](const Tensors&) {
      Frame copy = Copier().copy(frame);
      Tensors flat;
      flatten(*this, form, evaluate(*expr.children[child], copy), where, flat);
      return flat;
    };
  };
  const Tensors flat =
      placed(where, [&] { return current_interpreter().branch(chosen, side(0), side(2)); });
  size_t next = 0;
  return restore(form, flat, next);
}

Outcome Evaluation::branch_on_tensor(const Tensor& condition, const Stmt& statement, size_t index,
                                     Frame& frame) {
  const Where& where = statement.branches[index].where;
  step(where);
  Names changed, bound;
  for (size_t i = index; i < statement.branches.size(); ++i) {
    const Branch& branch = statement.branches[i];
    if (const Stmt* jump = find_jump(branch.body, false)) {
      const char* word = jump->kind == StmtKind::kReturn  ? "return"
                         : jump->kind == StmtKind::kBreak ? "break"
                                                          : "continue";
      refuse(jump->where, str("'", word,
                              "' under a condition on a tensor is not supported: assign a name in "
                              "both branches and use it after the 'if'"));
    }
    if (i > index && branch.condition) changed_by(*branch.condition, changed);
    changed_by(branch.body, changed);
    for (const std::string& name : assigned_names(branch.body)) add_name(bound, name);
  }
  const auto run_side = [&](bool first, Frame& copy) {
    if (first) {
      run(statement.branches[index].body, copy);
    } else {
      run_if(statement, index + 1, copy);
    }
  };
  // The forms of all changed names that have a value after either branch.
  std::vector<std::pair<std::string, Value>> forms;
  {
    const DryScope dry(*this);
    Frame a = Copier().copy(frame), b = Copier().copy(frame);
    run_side(true, a);
    run_side(false, b);
    for (const std::string& name : changed) {
      const auto x = a.locals.find(name), y = b.locals.find(name);
      if (x != a.locals.end() && y != b.locals.end()) {
        forms.emplace_back(name,
                           placed(where, [&] { return join(name, x->second, y->second, "if"); }));
      } else if (x != a.locals.end() || y != b.locals.end()) {
        frame.poisoned[name] =
            str("'", name, "' is assigned in only one branch of the 'if' in line ", where.line);
      }
    }
  }
  const Tensor chosen = condition_tensor(condition, where);
  const auto finish = [&](const auto& value_of) {
    for (const auto& [name, form] : forms) {
      put_back(frame, name, value_of(form), has(bound, name));
    }
    return Outcome{};
  };
  if (is_dry()) return finish([](const Value& form) { return form; });
  const auto side = [&](bool first) {
    return [&, first](const Tensors&) {
      return without_updates(where, [&] {
        Frame copy = Copier().copy(frame);
        run_side(first, copy);
        Tensors flat;
        for (const auto& [name, form] : forms) {
          flatten(*this, form, copy.locals.at(name), where, flat);
        }
        return flat;
      });
    };
  };
  const Tensors flat =
      placed(where, [&] { return current_interpreter().branch(chosen, side(true), side(false)); });
  size_t next = 0;
  return finish([&](const Value& form) { return restore(form, flat, next); });
}

void Evaluation::loop_on_tensor(const Stmt& loop, Frame& frame) {
  const std::vector<Stmt>& body = loop.branches[0].body;
  const Where& where = loop.where;
  step(where);
  if (const Stmt* jump = find_jump(body, false)) {
    refuse(jump->where,
           "'return', 'break' and 'continue' in a loop on a tensor are not supported: put the "
           "condition into 'while', or keep a flag");
  }
  Names changed;
  changed_by(body, changed);
  const Names bound = assigned_names(body);
  Names carried, inside;
  for (const std::string& name : changed) {
    (frame.locals.count(name) ? carried : inside).push_back(name);
  }
  std::vector<Value> forms;
  for (const std::string& name : carried) forms.push_back(loosen(frame.locals.at(name)));
  const auto with_values = [&](const std::vector<Value>& values) {
    Frame copy = Copier().copy(frame);
    for (size_t i = 0; i < carried.size(); ++i) copy.locals[carried[i]] = Copier().copy(values[i]);
    return copy;
  };
  // Types may widen from turn to turn (an integer start, a float afterwards) until they settle.
  for (int round = 0;; ++round) {
    const DryScope dry(*this);
    Frame copy = with_values(forms);
    run(body, copy);
    bool settled = true;
    for (size_t i = 0; i < carried.size(); ++i) {
      const Value next = placed(
          where, [&] { return join(carried[i], forms[i], copy.locals.at(carried[i]), "while"); });
      settled = settled && same_types(forms[i], next);
      forms[i] = loosen(next);
    }
    if (settled) break;
    if (round == 4) refuse(where, "the types of the values that this loop carries do not settle");
  }
  const auto finish = [&](const auto& value_of) {
    for (size_t i = 0; i < carried.size(); ++i) {
      put_back(frame, carried[i], value_of(forms[i]), has(bound, carried[i]));
    }
    for (const std::string& name : inside) {
      frame.poisoned[name] = str("'", name, "' is assigned only inside the loop in line ",
                                 where.line, ", which may run no turn");
    }
  };
  if (is_dry()) return finish([](const Value& form) { return form; });
  const auto restored = [&](const Tensors& flat) {
    std::vector<Value> values;
    size_t next = 0;
    for (const Value& form : forms) values.push_back(restore(form, flat, next));
    return with_values(values);
  };
  Tensors start;
  for (size_t i = 0; i < carried.size(); ++i)
    flatten(*this, forms[i], frame.locals.at(carried[i]), where, start);
  const TensorFn condition = [&](const Tensors& flat) -> Tensors {
    Frame copy = restored(flat);
    return {condition_tensor(evaluate(*loop.value, copy), loop.value->where)};
  };
  const TensorFn turn = [&](const Tensors& flat) {
    Frame copy = restored(flat);
    run(body, copy);
    Tensors out;
    for (size_t i = 0; i < carried.size(); ++i)
      flatten(*this, forms[i], copy.locals.at(carried[i]), where, out);
    return out;
  };
  const Tensors flat =
      placed(where, [&] { return current_interpreter().loop(condition, turn, start, -1); });
  size_t next = 0;
  finish([&](const Value& form) { return restore(form, flat, next); });
}

}  // namespace paddle::model
