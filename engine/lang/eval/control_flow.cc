// `if` and conditional expressions on tensors: they become control flow of the interpreter. What a
// side changes is found in the text, its kind by a run on types only, and the values are carried
// as flat lists of tensors. A side that jumps away (`return`, `break`, `continue`) leaves the
// number of its flow in a tensor, and what follows runs where that is 0.
#include <algorithm>

#include "lang/eval/assigned_values.h"
#include "lang/eval/flow.h"
#include "lang/eval/shape_scope.h"
#include "lang/eval/value_forms.h"

namespace paddle::lang {

// --- conditions ---

Tensor Statements::condition_tensor(const Value& value, const SourcePosition& where) {
  Tensor tensor = ev_.operations().to_tensor(value, where, "condition");
  const Dim count = element_count(std::span<const Dim>(tensor.shape()));
  if (!count.equals(Dim(1)).value_or(false)) {
    ev_.reject(where, str("a condition must be a tensor of one element, found ", tensor.type(),
                          " (any(…) or all(…) reduce it, where(…) chooses element by element)"));
  }
  if (tensor.ndim() > 0)
    tensor = ev_.operations().op("reshape", {tensor, Value::list({})}, where).tensor();
  if (is_bool(tensor.dtype())) return tensor;
  return ev_.operations().op("not_equal", {tensor, Value(int64_t{0})}, where).tensor();
}

// --- what happens after a side ---

void store_local(Frame& frame, const std::string& name, const Value& value, const Names& bound) {
  const auto found = frame.locals.find(name);
  const bool rebound = std::find(bound.begin(), bound.end(), name) != bound.end();
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
  frame.unavailable.erase(name);
  frame.locals[name] = value;
}

const Value* returned_value(const Outcome& outcome, const Frame& frame) {
  if (outcome.flow == Flow::kReturn) return &outcome.value;
  if (!(outcome.flows() & Outcome::bit(Flow::kReturn))) return nullptr;
  return &frame.locals.at(kReturned);
}

Value flow_number(const Outcome& outcome, const Frame& frame) {
  if (outcome.flow == Flow::kMixed) return frame.locals.at(kJump);
  return Value(static_cast<int64_t>(outcome.flow));
}

Outcome mixed_outcome(unsigned flows, Frame& frame) {
  for (const Flow flow : {Flow::kNormal, Flow::kBreak, Flow::kContinue, Flow::kReturn}) {
    if (flows != Outcome::bit(flow)) continue;
    Outcome out{flow, {}};
    if (flow == Flow::kReturn) out.value = frame.locals.at(kReturned);
    frame.locals.erase(kJump);
    frame.locals.erase(kReturned);
    return out;
  }
  return {Flow::kMixed, {}, flows};
}

// --- forks ---

/// One `if` on a tensor between what its sides are and what comes of them.
class Statements::Fork {
 public:
  Fork(Evaluation& evaluation, const SourcePosition& where, const Changes& changes, Frame& frame,
       const Side& first, const Side& second)
      : ev_(evaluation), where_(where), changes_(changes), frame_(frame), sides_{&first, &second} {
    const ShapeScope dry(ev_);
    const BranchResult a = end(first), b = end(second);
    flows_ = a.outcome.flows() | b.outcome.flows();
    mixed_ = (flows_ & (flows_ - 1)) != 0;
    // After a `return` the names are not read.
    const unsigned returned = Outcome::bit(Flow::kReturn);
    gone_[0] = a.outcome.flows() == returned;
    gone_[1] = b.outcome.flows() == returned;
    join_names(a, b);
    join_returned(a, b);
    states_ = changed_states(ev_.variables().states(), a.states);
    states_.merge(changed_states(ev_.variables().states(), b.states));
    met_ = a.states;
    met_.insert(b.states.begin(), b.states.end());
  }

  Outcome finish_dry() {
    for (const auto& [name, form] : forms_) store_local(frame_, name, form, changes_.bound);
    for (const std::string& path : states_) {
      Variables::StateSlot& slot =
          ev_.variables().states().try_emplace(path, met_.at(path)).first->second;
      slot.current = abstract_tensor(slot.current.type());
      ++slot.writes;
    }
    if (mixed_) frame_.locals[kJump] = abstract_tensor({DType::kI64, {}});
    if (returned_) frame_.locals[kReturned] = *returned_;
    return mixed_outcome(flows_, frame_);
  }

  Outcome finish(const Tensor& condition) {
    ev_.variables().open_states(states_, met_, where_);
    const Tensors flat = ev_.with_location_scope(where_, [&] {
      return current_interpreter().branch(
          condition, [&](const Tensors&) { return run(0); },
          [&](const Tensors&) { return run(1); });
    });
    size_t next = 0;
    for (const auto& [name, form] : forms_)
      store_local(frame_, name, restore(form, flat, next), changes_.bound);
    for (const std::string& path : states_) {
      Variables::StateSlot& slot = ev_.variables().states().at(path);
      slot.current = flat.at(next++);
      ++slot.writes;
    }
    if (mixed_) frame_.locals[kJump] = Value(flat.at(next++));
    if (returned_) frame_.locals[kReturned] = restore(*returned_, flat, next);
    ev_.variables().publish(states_);
    return mixed_outcome(flows_, frame_);
  }

 private:
  BranchResult end(const Side& side) {
    const RegionScope region(ev_);
    Frame copy = Copier().copy(frame_);
    Outcome outcome = side(copy);
    return {std::move(outcome), std::move(copy), ev_.variables().states()};
  }

  void join_names(const BranchResult& a, const BranchResult& b) {
    if (gone_[0] && gone_[1]) return;
    for (const std::string& name : changes_.changed) {
      const auto x = a.frame.locals.find(name), y = b.frame.locals.find(name);
      const bool in_a = !gone_[0] && x != a.frame.locals.end();
      const bool in_b = !gone_[1] && y != b.frame.locals.end();
      if (in_a && in_b) {
        const std::string called = name == kChosen ? "the value" : "'" + name + "'";
        forms_.emplace_back(name, ev_.with_location_scope(where_, [&] {
          return join_values(called, x->second, y->second, "if");
        }));
      } else if (in_a && gone_[1]) {
        forms_.emplace_back(name, x->second);
      } else if (in_b && gone_[0]) {
        forms_.emplace_back(name, y->second);
      } else if (in_a || in_b) {
        frame_.locals.erase(name);
        frame_.unavailable[name] =
            str("'", name, "' is assigned in only one branch of the 'if' in line ", where_.line);
      } else {
        // Both sides may have lost it, each for its own reason.
        for (const BranchResult* ending : {&a, &b}) {
          const auto reason = ending->frame.unavailable.find(name);
          if (reason == ending->frame.unavailable.end()) continue;
          frame_.locals.erase(name);
          frame_.unavailable[name] = reason->second;
        }
      }
    }
  }

  void join_returned(const BranchResult& a, const BranchResult& b) {
    const Value *x = returned_value(a.outcome, a.frame), *y = returned_value(b.outcome, b.frame);
    if (x && y) {
      returned_ = ev_.with_location_scope(
          where_, [&] { return join_values("the returned value", *x, *y, "if"); });
    } else if (x || y) {
      returned_ = x ? *x : *y;
    }
  }

  Tensors run(size_t which) {
    const RegionScope region(ev_);
    Frame copy = Copier().copy(frame_);
    const Outcome outcome = (*sides_[which])(copy);
    Tensors flat;
    for (const auto& [name, form] : forms_) {
      if (gone_[which]) {
        flatten_zeros(ev_, form, where_, flat);
      } else {
        flatten(ev_, form, copy.locals.at(name), where_, flat);
      }
    }
    for (const std::string& path : states_)
      flat.push_back(ev_.variables().states().at(path).current);
    if (mixed_)
      flatten(ev_, Value(abstract_tensor({DType::kI64, {}})), flow_number(outcome, copy), where_,
              flat);
    if (returned_) {
      if (const Value* value = returned_value(outcome, copy)) {
        flatten(ev_, *returned_, *value, where_, flat);
      } else {
        flatten_zeros(ev_, *returned_, where_, flat);
      }
    }
    return flat;
  }

  Evaluation& ev_;
  const SourcePosition& where_;
  const Changes& changes_;
  Frame& frame_;
  const Side* sides_[2];
  unsigned flows_ = 0;
  bool mixed_ = false;
  bool gone_[2] = {false, false};
  std::vector<std::pair<std::string, Value>> forms_;  ///< of the changed names
  std::optional<Value> returned_;
  std::set<std::string> states_;  ///< paths of those that a side updates
  States met_;
};

Outcome Statements::fork(const Tensor& condition, const SourcePosition& where,
                         const Changes& changes, Frame& frame, const Side& first,
                         const Side& second) {
  ev_.step(where);
  const Tensor chosen = condition_tensor(condition, where);
  Fork fork(ev_, where, changes, frame, first, second);
  return ev_.is_abstract() ? fork.finish_dry() : fork.finish(chosen);
}

Value Statements::conditional_on_tensor(const Tensor& condition, const Expr& expr, Frame& frame) {
  Changes changes = changes_of(expr);
  changes.changed.emplace_back(kChosen);
  changes.bound.emplace_back(kChosen);
  const auto side = [&](size_t child) {
    return [&, child](Frame& copy) {
      copy.locals[kChosen] = ev_.evaluate(*expr.children[child], copy);
      return Outcome{};
    };
  };
  fork(condition, expr.where, changes, frame, side(0), side(2));
  Value out = frame.locals.at(kChosen);
  frame.locals.erase(kChosen);
  return out;
}

// --- statements ---

Outcome Statements::run_if(const Stmt& statement, size_t branch, const Continuation* rest,
                           Frame& frame) {
  for (; branch < statement.branches.size(); ++branch) {
    const Branch& chosen = statement.branches[branch];
    if (!chosen.condition) return run(chosen.body, frame);
    const Value condition = ev_.evaluate(*chosen.condition, frame);
    if (!condition.is_tensor()) {
      if (ev_.with_location_scope(chosen.condition->where, [&] { return truth(condition); }))
        return run(chosen.body, frame);
      continue;
    }
    Changes changes = changes_of_branches(statement, branch);
    if (rest) {
      const Changes after = changes_of(rest->statements, rest->from);
      changes.changed.insert(changes.changed.end(), after.changed.begin(), after.changed.end());
      changes.bound.insert(changes.bound.end(), after.bound.begin(), after.bound.end());
      std::sort(changes.changed.begin(), changes.changed.end());
      changes.changed.erase(std::unique(changes.changed.begin(), changes.changed.end()),
                            changes.changed.end());
    }
    const auto onward = [&](Outcome outcome, Frame& copy) {
      if (rest && !outcome.continued) outcome = run_continuation(std::move(outcome), *rest, copy);
      outcome.continued = false;
      return outcome;
    };
    Outcome outcome = fork(
        condition.tensor(), chosen.where, changes, frame,
        [&](Frame& copy) { return onward(run(chosen.body, copy), copy); },
        [&](Frame& copy) { return onward(run_if(statement, branch + 1, rest, copy), copy); });
    outcome.continued = rest != nullptr;
    return outcome;
  }
  return {};
}

Outcome Statements::run_continuation(Outcome outcome, const Continuation& rest, Frame& frame) {
  if (rest.from >= rest.statements.size()) return outcome;
  if (outcome.flow == Flow::kNormal) return run(rest.statements, frame, rest.from);
  if (!(outcome.flows() & Outcome::bit(Flow::kNormal))) return outcome;
  return run_unless_jumped(outcome, rest.statements[rest.from].where,
                           changes_of(rest.statements, rest.from), frame,
                           [&](Frame& copy) { return run(rest.statements, copy, rest.from); });
}

Outcome Statements::run_unless_jumped(const Outcome& before, const SourcePosition& where,
                                      const Changes& changes, Frame& frame, const Side& rest) {
  const Value idle =
      ev_.operations().op("equal", {frame.locals.at(kJump), Value(int64_t{0})}, where);
  const unsigned jumped = before.may & ~Outcome::bit(Flow::kNormal);
  return fork(
      idle.tensor(), where, changes, frame,
      [&](Frame& copy) {
        copy.locals.erase(kJump);
        copy.locals.erase(kReturned);
        return rest(copy);
      },
      [&](Frame& copy) { return mixed_outcome(jumped, copy); });
}

Outcome Statements::resolve_flow(const Outcome& outcome, Flow flow, const SourcePosition& where,
                                 Frame& frame) {
  const unsigned flows = outcome.flows();
  if (!(flows & Outcome::bit(flow))) return outcome;
  const unsigned left = (flows & ~Outcome::bit(flow)) | Outcome::bit(Flow::kNormal);
  if ((left & (left - 1)) != 0) {
    const Value jump = frame.locals.at(kJump);
    const Value done =
        ev_.operations().op("equal", {jump, Value(static_cast<int64_t>(flow))}, where);
    const Value zero = ev_.operations().op("zeros_like", {jump}, where);
    frame.locals[kJump] = ev_.operations().op("where", {done, zero, jump}, where);
  }
  return mixed_outcome(left, frame);
}

}  // namespace paddle::lang
