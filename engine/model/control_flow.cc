// `if`, `while` and conditional expressions on tensors: they become control flow of the
// interpreter. What a branch or turn changes is found in the text, its kind by a run on types
// alone, and the values are carried as flat lists of tensors.
#include <algorithm>
#include <functional>

#include "model/dry_run.h"
#include "model/evaluation.h"

namespace paddle::model {

// ---- types only
// ----------------------------------------------------------------------------------

namespace {

struct Nothing : Content {};

TensorType joined_type(const TensorType& a, const TensorType& b) {
  TensorType out = a;
  out.dtype = a.dtype == b.dtype ? a.dtype : promote(a.dtype, b.dtype);
  if (a.shape.size() != b.shape.size()) {
    out.shape = a.shape.size() > b.shape.size() ? a.shape : b.shape;
    return out;
  }
  for (size_t i = 0; i < out.shape.size(); ++i) {
    if (!a.shape[i].same(b.shape[i])) out.shape[i] = Dim::unknown();
  }
  return out;
}

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
      : evaluation_(evaluation),
        scope_(interpreter_),
        states_(evaluation.states_),
        steps_(evaluation.steps_) {
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
  int64_t steps_;
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

// ---- copies of frames
// ----------------------------------------------------------------------------

/// Copies lists and cells, so that what happens to the copy is not seen by the original. One list
/// that has two names keeps both.
class Copier {
 public:
  Value copy(const Value& value, int depth = 0) {
    if (value.is_tensor())
      return value.tensor().defined() ? Value(value.tensor().fresh_cell()) : value;
    const ValueList* items = value.items();
    if (!items || depth > kMaxNesting) return value;
    const auto known = copies_.find(items);
    if (known != copies_.end()) return known->second;
    ValueList out;
    for (const Value& item : *items) out.push_back(copy(item, depth + 1));
    Value copied =
        value.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
    copies_.emplace(items, copied);
    return copied;
  }

  Frame copy(const Frame& frame) {
    Frame out = frame;
    for (auto& [name, value] : out.locals) value = copy(value);
    return out;
  }

 private:
  std::map<const ValueList*, Value> copies_;
};

// ---- values as flat lists of tensors
// -------------------------------------------------------------

bool is_scalar(const Value& value) { return value.is_number() || value.is_dim(); }

TensorType scalar_type(const Value& value) {
  TensorType type;
  type.dtype = value.is<bool>() ? DType::kBool : value.is<double>() ? DType::kF32 : DType::kI64;
  return type;
}

bool is_same_constant(const Value& a, const Value& b) {
  if (is_scalar(a) != is_scalar(b)) return false;
  if (a.is<bool>() != b.is<bool>() || a.is<double>() != b.is<double>()) return false;
  if (a.is_dim() || b.is_dim()) {
    return a.is_dim() && b.is_dim() && a.get<Dim>()->same(*b.get<Dim>());
  }
  return same_value(a, b);
}

[[noreturn]] void different_kinds(const std::string& name, const Value& a, const Value& b,
                                  std::string_view what) {
  fail(ErrorCode::kConfig, what, ": '", name, "' is ", a.describe(), " in one case and ",
       b.describe(), " in the other");
}

/// The common form of a value in two cases: tensors where they may differ, constants elsewhere.
Value join(const std::string& name, const Value& a, const Value& b, std::string_view what,
           int depth = 0) {
  const ValueList *left = a.items(), *right = b.items();
  if (left && right) {
    if (a.is<Value::List>() != b.is<Value::List>() || left->size() != right->size() ||
        depth > kMaxNesting) {
      different_kinds(name, a, b, what);
    }
    ValueList out;
    for (size_t i = 0; i < left->size(); ++i) {
      out.push_back(join(str(name, "[", i, "]"), (*left)[i], (*right)[i], what, depth + 1));
    }
    return a.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  if (!a.is_tensor() && !b.is_tensor() && !left && !right && is_same_constant(a, b)) return a;
  const bool tensors = (a.is_tensor() || is_scalar(a)) && (b.is_tensor() || is_scalar(b));
  if (!tensors) different_kinds(name, a, b, what);
  const TensorType x = a.is_tensor() ? a.tensor().type() : scalar_type(a);
  const TensorType y = b.is_tensor() ? b.tensor().type() : scalar_type(b);
  TensorType type = joined_type(x, y);
  const bool weak_x = !a.is_tensor() || x.weak, weak_y = !b.is_tensor() || y.weak;
  if (weak_x && !weak_y) type.dtype = promote_weak(y.dtype, x.dtype);
  if (weak_y && !weak_x) type.dtype = promote_weak(x.dtype, y.dtype);
  type.weak = false;
  return typed_tensor(type);
}

/// Numbers as tensors: what a loop may change.
Value loosen(const Value& value, int depth = 0) {
  if (is_scalar(value)) return typed_tensor(scalar_type(value));
  if (value.is_tensor()) {
    TensorType type = value.tensor().type();
    if (type.weak && type.dtype == DType::kF64) type.dtype = DType::kF32;
    type.weak = false;
    return typed_tensor(type);
  }
  const ValueList* items = value.items();
  if (!items || depth > kMaxNesting) return value;
  ValueList out;
  for (const Value& item : *items) out.push_back(loosen(item, depth + 1));
  return value.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
}

bool same_types(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor()) return a.tensor().dtype() == b.tensor().dtype();
  const ValueList *left = a.items(), *right = b.items();
  if (left && right) {
    if (left->size() != right->size()) return false;
    for (size_t i = 0; i < left->size(); ++i) {
      if (!same_types((*left)[i], (*right)[i])) return false;
    }
    return true;
  }
  return !a.is_tensor() && !b.is_tensor();
}

/// Appends the tensors of `value` in the places where `form` has tensors.
void flatten(Evaluation& ev, const Value& form, const Value& value, const Where& where,
             Tensors& out) {
  if (form.is_tensor()) {
    const TensorType& type = form.tensor().type();
    Tensor tensor = ev.to_tensor(value, where, "if");
    if (tensor.dtype() != type.dtype || tensor.type().weak) {
      tensor = ev.op("cast", {tensor, Value(text(type.dtype))}, where).tensor();
    }
    const bool known = std::none_of(type.shape.begin(), type.shape.end(),
                                    [](const Dim& dim) { return dim.is_unknown(); });
    if (tensor.ndim() == 0 && !type.shape.empty() && known) {
      ValueList shape;
      for (const Dim& dim : type.shape) shape.emplace_back(dim);
      tensor = ev.op("expand", {tensor, Value::list(std::move(shape))}, where).tensor();
    }
    out.push_back(tensor);
    return;
  }
  const ValueList *forms = form.items(), *items = value.items();
  if (!forms) return;
  if (!items || items->size() != forms->size()) {
    ev.refuse(where, str("a list changes its length under a condition on a tensor"));
  }
  for (size_t i = 0; i < forms->size(); ++i) flatten(ev, (*forms)[i], (*items)[i], where, out);
}

/// The value of a form, its tensors taken from a flat list.
Value restore(const Value& form, const Tensors& flat, size_t& next) {
  if (form.is_tensor()) return flat.at(next++).fresh_cell();
  const ValueList* forms = form.items();
  if (!forms) return form;
  ValueList out;
  for (const Value& item : *forms) out.push_back(restore(item, flat, next));
  return form.is<Value::List>() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
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

Names bound_in(const std::vector<Stmt>& a, const std::vector<Stmt>& b) {
  Names names = assigned_names(a);
  for (const std::string& name : assigned_names(b)) add_name(names, name);
  return names;
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

Value Evaluation::evaluate_dry(const Expr& expr, const Frame& frame) {
  const DryScope dry(*this);
  Frame copy = Copier().copy(frame);
  return evaluate(expr, copy);
}

Value Evaluation::conditional_on_tensor(const Tensor& condition, const Expr& expr, Frame& frame) {
  const Where& where = expr.where;
  Value form;
  {
    const Value a = evaluate_dry(*expr.children[0], frame);
    const Value b = evaluate_dry(*expr.children[2], frame);
    form = placed(where, [&] { return join("the value", a, b, "if"); });
  }
  const auto side = [&](size_t child) {
    return [&, child](const Tensors&) {
      Frame copy = Copier().copy(frame);
      Tensors flat;
      flatten(*this, form, evaluate(*expr.children[child], copy), where, flat);
      return flat;
    };
  };
  const Tensor chosen = condition_tensor(condition, where);
  const Tensors flat =
      placed(where, [&] { return current_interpreter().branch(chosen, side(0), side(2)); });
  size_t next = 0;
  return restore(form, flat, next);
}

Outcome Evaluation::branch_on_tensor(const Tensor& condition, const std::vector<Stmt>& then_body,
                                     const std::vector<Stmt>& else_body, const Where& where,
                                     Frame& frame) {
  for (const auto* body : {&then_body, &else_body}) {
    if (const Stmt* jump = find_jump(*body, false)) {
      const char* word = jump->kind == StmtKind::kReturn  ? "return"
                         : jump->kind == StmtKind::kBreak ? "break"
                                                          : "continue";
      refuse(jump->where, str("'", word,
                              "' under a condition on a tensor is not supported: assign a "
                              "name in both branches and use it after the 'if'"));
    }
  }
  Names changed;
  changed_by(then_body, changed);
  changed_by(else_body, changed);
  const Names bound = bound_in(then_body, else_body);
  // The forms of all changed names that have a value after either branch.
  std::vector<std::pair<std::string, Value>> forms;
  {
    const DryScope dry(*this);
    Frame a = Copier().copy(frame), b = Copier().copy(frame);
    run(then_body, a);
    run(else_body, b);
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
  const auto side = [&](const std::vector<Stmt>& body) {
    return [&](const Tensors&) {
      const auto states = states_;
      Frame copy = Copier().copy(frame);
      run(body, copy);
      Tensors flat;
      for (const auto& [name, form] : forms)
        flatten(*this, form, copy.locals.at(name), where, flat);
      for (const auto& [path, slot] : states_) {
        const auto before = states.find(path);
        if (before != states.end() && !slot.current.is_same_cell(before->second.current)) {
          refuse(where, str("the state '", path,
                            "' is updated under a condition on a tensor: give "
                            "update(…) a value that where(…) or an 'if' chose"));
        }
      }
      return flat;
    };
  };
  const Tensor chosen = condition_tensor(condition, where);
  const Tensors flat = placed(where, [&] {
    return current_interpreter().branch(chosen, side(then_body), side(else_body));
  });
  size_t next = 0;
  for (const auto& [name, form] : forms)
    put_back(frame, name, restore(form, flat, next), has(bound, name));
  return {};
}

void Evaluation::loop_on_tensor(const Stmt& loop, Frame& frame) {
  const std::vector<Stmt>& body = loop.branches[0].body;
  const Where& where = loop.where;
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
  for (size_t i = 0; i < carried.size(); ++i) {
    put_back(frame, carried[i], restore(forms[i], flat, next), has(bound, carried[i]));
  }
  for (const std::string& name : inside) {
    frame.poisoned[name] = str("'", name, "' is assigned only inside the loop in line ", where.line,
                               ", which may run no turn");
  }
}

}  // namespace paddle::model
