// Loops. On numbers each iteration is run while tracing; on tensors the loop becomes one of the
// interpreter's, with what it changes carried from iteration to iteration. A `break` under a tensor
// in a loop on numbers leaves its further iterations under a condition.
#include <utility>

#include "lang/eval/assigned_values.h"
#include "lang/eval/flow.h"
#include "lang/eval/shape_scope.h"
#include "lang/eval/value_forms.h"

namespace paddle::lang {
namespace {

constexpr unsigned kNormalBit = Outcome::bit(Flow::kNormal);
constexpr unsigned kBreakBit = Outcome::bit(Flow::kBreak);
constexpr unsigned kReturnBit = Outcome::bit(Flow::kReturn);

}  // namespace

Outcome Statements::run_iterations(const Stmt& statement, Frame& frame,
                                   const std::function<std::optional<Side>()>& next) {
  const SourcePosition& where = statement.where;
  std::optional<Changes> changes;
  Outcome outcome;
  while (const auto iteration = next()) {
    ev_.step(where);
    if (outcome.flow == Flow::kMixed) {
      if (!changes) changes = changes_of(statement);
      outcome = run_unless_jumped(outcome, where, *changes, frame, *iteration);
    } else {
      outcome = (*iteration)(frame);
    }
    outcome = resolve_flow(outcome, Flow::kContinue, where, frame);
    if (!(outcome.flows() & kNormalBit)) break;
  }
  return resolve_flow(outcome, Flow::kBreak, where, frame);
}

Outcome Statements::run_for(const Stmt& statement, Frame& frame) {
  const SourcePosition& where = statement.value->where;
  Value range = ev_.evaluate(*statement.value, frame);
  if (range.is_tensor()) range = ev_.elements_of(range.tensor(), where);
  const ValueList* items = range.items();
  if (!items) ev_.reject(where, str("'for' needs a list, found ", range.describe()));
  // The list may change under the loop; what it held at the start counts.
  const ValueList sequence = *items;
  frame.iterations.push_back(-1);
  size_t i = 0;
  Outcome outcome = run_iterations(statement, frame, [&]() -> std::optional<Side> {
    if (i == sequence.size()) return std::nullopt;
    ++frame.iterations.back();
    return [&, &item = sequence[i++]](Frame& own) {
      assign(*statement.targets[0], item, own);
      return run(statement.branches[0].body, own);
    };
  });
  frame.iterations.pop_back();
  return outcome;
}

Outcome Statements::run_while(const Stmt& statement, Frame& frame) {
  const Expr& condition = *statement.value;
  bool on_tensor = false, first = true;
  frame.iterations.push_back(-1);
  Outcome outcome = run_iterations(statement, frame, [&]() -> std::optional<Side> {
    // The condition counts to the iteration that it starts, and to none when it stands on a tensor.
    ++frame.iterations.back();
    // Without a call, nothing happens that a second evaluation would repeat.
    const Value holds = holds_call(condition) ? ev_.evaluate_abstract(condition, frame)
                                              : ev_.evaluate(condition, frame);
    on_tensor = holds.is_tensor();
    if (on_tensor || !ev_.with_location_scope(condition.where, [&] { return truth(holds); }))
      return std::nullopt;
    const bool is_first = std::exchange(first, false);
    if (is_first && !ev_.is_abstract()) {
      const ShapeScope dry(ev_);
      Frame copy = Copier().copy(frame);
      on_tensor = becomes_tensor_loop(statement, run(statement.branches[0].body, copy), copy);
      if (on_tensor) return std::nullopt;
    }
    if (holds_call(condition)) ev_.evaluate(condition, frame);
    return [&, is_first](Frame& own) {
      if (!is_first || !ev_.is_abstract()) return run(statement.branches[0].body, own);
      // On types only, the first iteration itself shows it; it is taken back if it does.
      Frame before = Copier().copy(own);
      States states = ev_.variables().states();
      Outcome iteration = run(statement.branches[0].body, own);
      Frame after = Copier().copy(own);
      on_tensor = becomes_tensor_loop(statement, iteration, after);
      if (!on_tensor) return iteration;
      own = std::move(before);
      ev_.variables().states() = std::move(states);
      return Outcome{Flow::kBreak, {}};
    };
  });
  frame.iterations.pop_back();
  return on_tensor ? loop_on_tensor(statement, frame) : outcome;
}

bool Statements::becomes_tensor_loop(const Stmt& statement, Outcome outcome, Frame& frame) {
  if (outcome.flow == Flow::kMixed && (outcome.may & (kBreakBit | kReturnBit))) return true;
  outcome = resolve_flow(outcome, Flow::kContinue, statement.where, frame);
  if (outcome.flow != Flow::kNormal) return false;
  const ShapeScope dry(ev_);
  return ev_.evaluate(*statement.value, frame).is_tensor();
}

// --- loops on tensors ---

/// One `while` on tensors: what it carries, and how its iterations are written.
class Statements::Loop {
 public:
  Loop(Statements& statements, const Stmt& loop, Frame& frame)
      : statements_(statements),
        ev_(statements.ev_),
        loop_(loop),
        body_(loop.branches[0].body),
        where_(loop.where),
        frame_(frame),
        changes_(changes_of(loop)) {
    for (const std::string& name : changes_.changed)
      (frame_.locals.count(name) ? carried_ : inside_).push_back(name);
    for (const std::string& name : carried_)
      forms_.push_back(with_tensor_leaves(frame_.locals.at(name)));
    // Types may widen from iteration to iteration (an integer start, a float afterwards) until they
    // settle.
    for (int round = 0; !try_turn(); ++round) {
      if (round == 4) ev_.reject(where_, "the types of the loop-carried values do not converge");
    }
  }

  Outcome finish_dry() {
    for (const std::string& path : states_) {
      Variables::StateSlot& slot =
          ev_.variables().states().try_emplace(path, met_.at(path)).first->second;
      slot.current = abstract_tensor(slot.current.type());
      ++slot.writes;
    }
    return finish(forms_, abstract_tensor({DType::kI64, {}}), returned_);
  }

  Outcome write() {
    ev_.variables().open_states(states_, met_, where_);
    Tensors start;
    for (size_t i = 0; i < carried_.size(); ++i)
      flatten(ev_, forms_[i], frame_.locals.at(carried_[i]), where_, start);
    for (const std::string& path : states_)
      start.push_back(ev_.variables().states().at(path).current);
    if (leaves()) flatten(ev_, jump_form(), Value(int64_t{0}), where_, start);
    if (returned_) flatten_zeros(ev_, *returned_, where_, start);
    const Tensors flat = ev_.with_location_scope(where_, [&] {
      return current_interpreter().loop([&](const Tensors& now) { return Tensors{condition(now)}; },
                                        [&](const Tensors& now) { return iteration(now); }, start,
                                        -1);
    });
    size_t next = 0;
    std::vector<Value> values;
    for (const Value& form : forms_) values.push_back(restore(form, flat, next));
    for (const std::string& path : states_) {
      Variables::StateSlot& slot = ev_.variables().states().at(path);
      slot.current = flat.at(next++);
      ++slot.writes;
    }
    const Value jump = leaves() ? Value(flat.at(next++)) : Value();
    std::optional<Value> returned;
    if (returned_) returned = restore(*returned_, flat, next);
    ev_.variables().publish(states_);
    return finish(values, jump, returned);
  }

 private:
  static Value jump_form() { return Value(abstract_tensor({DType::kI64, {}})); }
  bool leaves() const { return (flows_ & (kBreakBit | kReturnBit)) != 0; }

  Frame frame_with(const std::vector<Value>& values) {
    Frame copy = Copier().copy(frame_);
    for (size_t i = 0; i < carried_.size(); ++i)
      copy.locals[carried_[i]] = Copier().copy(values[i]);
    return copy;
  }

  /// Runs an iteration on types; false if it widens what is carried.
  bool try_turn() {
    const ShapeScope dry(ev_);
    const RegionScope region(ev_);
    const States before = ev_.variables().states();
    Frame copy = frame_with(forms_);
    const Value holds = ev_.evaluate(*loop_.value, copy);
    endless_ = !holds.is_tensor();
    const Outcome outcome = statements_.run(body_, copy);
    flows_ = outcome.flows();
    if (const Value* value = returned_value(outcome, copy)) returned_ = *value;
    states_ = changed_states(before, ev_.variables().states());
    met_ = ev_.variables().states();
    if (flows_ == kReturnBit) return true;
    bool resolve_flow = true;
    for (size_t i = 0; i < carried_.size(); ++i) {
      const auto now = copy.locals.find(carried_[i]);
      if (now == copy.locals.end()) {
        const auto reason = copy.unavailable.find(carried_[i]);
        ev_.reject(where_, reason != copy.unavailable.end()
                               ? reason->second
                               : str("'", carried_[i], "' has no value after an iteration"));
      }
      const Value next = ev_.with_location_scope(where_, [&] {
        return join_values("'" + carried_[i] + "'", forms_[i], now->second, "while");
      });
      check_type(carried_[i], forms_[i], now->second, next);
      resolve_flow = resolve_flow && same_types(forms_[i], next);
      forms_[i] = with_tensor_leaves(next);
    }
    return resolve_flow;
  }

  /// The last assignment of a name in the body, for messages.
  SourcePosition assignment_of(const std::string& name) const {
    SourcePosition found = where_;
    visit_bound_names(body_, [&](const std::string& bound, const SourcePosition& where) {
      if (bound == name) found = where;
    });
    return found;
  }

  /// Shapes are fixed, and so is the dtype of a tensor; numbers widen to what the body makes of
  /// them. `joined` is what holds both the value before and the value after an iteration.
  void check_type(const std::string& name, const Value& form, const Value& now,
                  const Value& joined) {
    const Value& start = frame_.locals.at(name);
    if (start.is_tensor() && !start.tensor().type().weak && joined.is_tensor() &&
        joined.tensor().dtype() != start.tensor().dtype()) {
      ev_.reject(assignment_of(name),
                 str("while: '", name, "' changes its dtype from ", text(start.tensor().dtype()),
                     " to ", text(joined.tensor().dtype()),
                     ": a loop-carried tensor must keep its dtype (cast it)"));
    }
    if (!form.is_tensor() || !now.is_tensor()) return;
    const TensorType &before = form.tensor().type(), &after = now.tensor().type();
    // A number may become a tensor, which the next round takes for granted.
    if (before.shape.size() != after.shape.size()) return;
    bool differs = false;
    for (size_t i = 0; i < before.shape.size(); ++i)
      differs = differs || !before.shape[i].same(after.shape[i]);
    if (!differs) return;
    ev_.reject(assignment_of(name),
               str("while: '", name, "' changes its shape from ", before, " to ", after,
                   ": a loop-carried tensor must keep its shape"));
  }

  /// The frame and the states at the start of an iteration; gives the place after them in `flat`.
  size_t enter(const Tensors& flat, Frame& copy) {
    size_t next = 0;
    std::vector<Value> values;
    for (const Value& form : forms_) values.push_back(restore(form, flat, next));
    copy = frame_with(values);
    for (const std::string& path : states_)
      ev_.variables().states().at(path).current = flat.at(next++);
    return next;
  }

  Tensor condition(const Tensors& flat) {
    const RegionScope region(ev_);
    Frame copy;
    const size_t next = enter(flat, copy);
    const auto test = [&] {
      return statements_.condition_tensor(ev_.evaluate(*loop_.value, copy), loop_.value->where);
    };
    if (!leaves()) return test();
    const Tensor idle =
        ev_.operations().op("equal", {flat.at(next), Value(int64_t{0})}, where_).tensor();
    if (endless_) return idle;
    // After a jump the condition is not asked any more.
    return current_interpreter().branch(
        idle, [&](const Tensors&) { return Tensors{test()}; },
        [&](const Tensors&) {
          return Tensors{statements_.condition_tensor(Value(false), where_)};
        })[0];
  }

  Tensors iteration(const Tensors& flat) {
    const RegionScope region(ev_);
    Frame copy;
    enter(flat, copy);
    Outcome outcome = statements_.run(body_, copy);
    Tensors out;
    for (size_t i = 0; i < carried_.size(); ++i) {
      if (flows_ == kReturnBit) {
        flatten_zeros(ev_, forms_[i], where_, out);
      } else {
        flatten(ev_, forms_[i], copy.locals.at(carried_[i]), where_, out);
      }
    }
    for (const std::string& path : states_)
      out.push_back(ev_.variables().states().at(path).current);
    const Value* returned = returned_value(outcome, copy);
    const Value value = returned ? *returned : Value();
    if (leaves()) {
      outcome = statements_.resolve_flow(outcome, Flow::kContinue, where_, copy);
      flatten(ev_, jump_form(), flow_number(outcome, copy), where_, out);
    }
    if (returned_) flatten(ev_, *returned_, value, where_, out);
    return out;
  }

  Outcome finish(const std::vector<Value>& values, const Value& jump,
                 const std::optional<Value>& returned) {
    for (size_t i = 0; i < carried_.size(); ++i)
      store_local(frame_, carried_[i], values[i], changes_.bound);
    for (const std::string& name : inside_) {
      frame_.unavailable[name] = str("'", name, "' is assigned only inside the loop in line ",
                                     where_.line, ", which may run zero times");
    }
    if (!returned) return {};
    frame_.locals[kReturned] = *returned;
    if (endless_ && !(flows_ & kBreakBit)) return mixed_outcome(kReturnBit, frame_);
    frame_.locals[kJump] = jump;
    unsigned flows = kNormalBit | kReturnBit | (flows_ & kBreakBit);
    return statements_.resolve_flow({Flow::kMixed, {}, flows}, Flow::kBreak, where_, frame_);
  }

  Statements& statements_;
  Evaluation& ev_;
  const Stmt& loop_;
  const std::vector<Stmt>& body_;
  const SourcePosition& where_;
  Frame& frame_;
  const Changes changes_;
  Names carried_, inside_;
  std::vector<Value> forms_;  ///< of the carried names
  unsigned flows_ = 0;        ///< how an iteration may end
  bool endless_ = false;      ///< the condition is the number true
  std::optional<Value> returned_;
  std::set<std::string> states_;
  States met_;
};

Outcome Statements::loop_on_tensor(const Stmt& statement, Frame& frame) {
  ev_.step(statement.where);
  Loop loop(*this, statement, frame);
  return ev_.is_abstract() ? loop.finish_dry() : loop.write();
}

}  // namespace paddle::lang
