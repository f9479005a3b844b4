#pragma once
// The evaluator's inside: one Evaluation is one run of one entry. It runs statements and
// expressions in frames; Operations (operations.h) computes on values, Variables (variables.h)
// keeps parameters and states. Its methods are spread over the files named in the sections below.
// Not for use outside the room.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/eval/frame.h"
#include "lang/eval/operations.h"
#include "lang/eval/trace_context.h"
#include "lang/eval/variables.h"

namespace paddle::lang {

class Evaluation : public TraceContext {
 public:
  Evaluation(const Program* program, const EvaluationOptions& options);

  // --- evaluation.cc: frames, statements, names ---
  /// Runs statements from number `from` on.
  Outcome run(const std::vector<Stmt>& statements, Frame& frame, size_t from = 0);
  Frame make_frame(const Code& code, const std::string& file);
  Value evaluate_name(const Expr& name, Frame& frame);
  void assign(const Expr& target, Value value, Frame& frame);
  /// Runs a whole body and gives what it returns.
  Value run_body(const std::vector<Stmt>& statements, Frame& frame);

  // --- expressions.cc ---
  Value evaluate(const Expr& expr, Frame& frame);
  Value evaluate_attribute(const Expr& expr, Frame& frame);

  // --- calls.cc ---
  Value call(const Expr& expr, Frame& frame);
  Value call_target(const Callable& target, Arguments arguments, const Site& site, Frame& frame);
  Value call_block(const Block& block, Arguments arguments, const Site& site, Frame& frame);
  std::optional<Callable> find_callable(const std::string& name, const Frame& frame) const;
  Callable resolve_callee(const std::string& name, const SourcePosition& where,
                          const Frame& frame) const;
  /// `initializer_at`: the position of an argument that may be an initializer's word.
  Arguments evaluate_arguments(const Expr& call, Frame& frame, size_t initializer_at = SIZE_MAX);
  Value evaluate_initializer(const Expr& expr, Frame& frame);

  // --- builtins.cc ---
  Value call_builtin(const std::string& name, Arguments arguments, const Site& site, Frame& frame);

  // --- op_calls.cc ---
  Value call_op(const Op& op, Arguments arguments, const Site& site, Frame& frame);

  // --- layers.cc ---
  /// The call of an operation in its layer form; nullopt if it has none.
  std::optional<Value> call_layer(const Op& op, Arguments& arguments, const Site& site,
                                  Frame& frame);

  // --- indexing.cc ---
  Value index(const Value& base, const Expr& expr, Frame& frame);
  void assign_index(const Expr& target, const Value& value, Frame& frame);

  // --- control_flow.cc ---
  using Side = std::function<Outcome(Frame&)>;
  /// Runs one of two sides by a tensor. Each works on a copy of the frame; what they change of it,
  /// of states and how they end comes together afterwards.
  Outcome fork(const Tensor& condition, const SourcePosition& where, const Changes& changes,
               Frame& frame, const Side& first, const Side& second);
  Value conditional_on_tensor(const Tensor& condition, const Expr& expr, Frame& frame);
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

  // --- shape_interpreter.cc ---
  /// The value of an expression as far as types go, without recording anything.
  Value evaluate_abstract(const Expr& expr, const Frame& frame);

  // --- chains.cc ---
  Value run_chain(const Code& code, Value first, Frame& frame);
  /// Evaluates a YAML value as an expression (text where it is quoted and may be text).
  Value evaluate_yaml(const YamlValue& value, Frame& frame, bool quoted_is_text);

  Operations& operations() { return operations_; }
  Variables& variables() { return variables_; }
  const Program* program() const { return program_; }
  void bind_dim(const std::string& name, const Dim& dim) { dims_[name] = dim; }
  std::optional<Dim> bound_dim(const std::string& name) const;
  Value param(const Param& param, const SourcePosition& where);
  void record(CallRecord record);

 private:
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
  Outcome run_statement(const Stmt& statement, Frame& frame);
  Outcome run_if(const Stmt& statement, size_t branch, const Continuation* rest, Frame& frame);
  Outcome run_continuation(Outcome outcome, const Continuation& rest, Frame& frame);
  /// Whether a `while` on numbers turned out, after its first iteration, to stand on tensors.
  bool becomes_tensor_loop(const Stmt& statement, Outcome outcome, Frame& frame);
  void augment(const Stmt& statement, Frame& frame);
  void unpack(const Expr& target, const Value& value, Frame& frame);
  [[noreturn]] void unknown_name(const Expr& name, const Frame& frame) const;
  Value evaluate_from(const Name& name, Frame& frame);
  Value chain_item(const ChainItem& item, const Value& current, Frame& frame);
  Arguments chain_arguments(const ChainItem& item, const Callable& target,
                            std::vector<Value> operands, Frame& frame);
  Value chain_value(const Op& op, const std::string& parameter, const YamlValue& value,
                    Frame& frame);
  Value method(const Value& base, const std::string& name, Arguments arguments, const Site& site,
               Frame& frame);

  const Program* program_;
  Operations operations_{*this};
  Variables variables_{*this, operations_};
  std::map<std::string, Dim> dims_;
  std::map<const Code*, std::unordered_set<std::string>> bound_names_;
  std::map<std::string, Value> params_;
  std::set<std::string> open_params_;
  std::vector<const Block*> open_blocks_;
  int depth_ = 0;
};

}  // namespace paddle::lang
