#pragma once
// Statements of running code: their order, assignments, and control flow on numbers and on tensors.
// Its methods are spread over the files named in the sections below. Not for use outside the room.

#include <functional>
#include <optional>
#include <vector>

#include "lang/eval/frame.h"
#include "lang/eval/variables.h"

namespace paddle::lang {

class Evaluation;

class Statements {
 public:
  explicit Statements(Evaluation& evaluation) : ev_(evaluation) {}

  // --- statements.cc ---
  /// Runs statements from number `from` on.
  Outcome run(const std::vector<Stmt>& statements, Frame& frame, size_t from = 0);
  /// Runs a whole body and gives what it returns.
  Value run_body(const std::vector<Stmt>& statements, Frame& frame);

  // --- control_flow.cc ---
  /// An expression `a if condition else b` on a tensor.
  Value conditional_on_tensor(const Tensor& condition, const Expr& expr, Frame& frame);

 private:
  using Side = std::function<Outcome(Frame&)>;
  using States = Variables::States;
  /// Result of one branch of control flow, by types.
  struct BranchResult {
    Outcome outcome;
    Frame frame;
    States states;
  };
  class Fork;
  class Loop;

  struct Continuation {
    const std::vector<Stmt>& statements;
    size_t from;
  };

  // --- statements.cc ---
  Outcome run_statement(const Stmt& statement, Frame& frame);
  void assign(const Expr& target, Value value, Frame& frame);
  void augment(const Stmt& statement, Frame& frame);
  void unpack(const Expr& target, const Value& value, Frame& frame);

  // --- control_flow.cc ---
  Outcome run_if(const Stmt& statement, size_t branch, const Continuation* rest, Frame& frame);
  Outcome run_continuation(Outcome outcome, const Continuation& rest, Frame& frame);
  /// Runs one of two sides by a tensor. Each works on a copy of the frame; what they change of it,
  /// of states and how they end comes together afterwards.
  Outcome fork(const Tensor& condition, const SourcePosition& where, const Changes& changes,
               Frame& frame, const Side& first, const Side& second);
  Tensor condition_tensor(const Value& value, const SourcePosition& where);
  /// Runs `rest` where nothing before it jumped away.
  Outcome run_unless_jumped(const Outcome& before, const SourcePosition& where,
                            const Changes& changes, Frame& frame, const Side& rest);
  /// Clears `flow` and resumes normal control flow where it happened.
  Outcome resolve_flow(const Outcome& outcome, Flow flow, const SourcePosition& where,
                       Frame& frame);

  // --- loops.cc ---
  /// Runs iterations until `next` gives none or all paths have left the loop.
  Outcome run_iterations(const Stmt& statement, Frame& frame,
                         const std::function<std::optional<Side>()>& next);
  Outcome run_for(const Stmt& statement, Frame& frame);
  Outcome run_while(const Stmt& statement, Frame& frame);
  Outcome loop_on_tensor(const Stmt& loop, Frame& frame);
  /// Whether a `while` on numbers turned out, after its first iteration, to stand on tensors.
  bool becomes_tensor_loop(const Stmt& statement, Outcome outcome, Frame& frame);

  Evaluation& ev_;
};

}  // namespace paddle::lang
