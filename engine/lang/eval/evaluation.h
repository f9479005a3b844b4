#pragma once
// The evaluator's inside: one Evaluation is one run of one entry. Its methods are spread over the
// files named in the sections below. Not for use outside the room.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/source_location.h"
#include "ir/tracer.h"
#include "lang/eval/evaluator.h"
#include "ops/core/op.h"

namespace paddle::lang {

/// Puts a name in front of the layers that operations are marked with: `with range("name"):`. It
/// holds for all evaluations on this thread, since a step calls models.
class RangeScope {
 public:
  explicit RangeScope(const std::string& name);
  ~RangeScope();
  RangeScope(const RangeScope&) = delete;
  RangeScope& operator=(const RangeScope&) = delete;
  /// The layer within the ranges that are open.
  static std::string within(const std::string& layer);

 private:
  size_t outer_;  ///< length of the ranges around this one
};

/// The names and the place in the tree of parameters of one running body or chain.
struct Frame {
  const Code* code = nullptr;
  std::string file;
  std::unordered_map<std::string, Value> locals;
  /// Names that the code binds somewhere: locals even before they have a value.
  const std::unordered_set<std::string>* bound = nullptr;
  /// Why a bound name has no value, where there is more to say than "not assigned yet".
  std::unordered_map<std::string, std::string> unavailable;
  std::string path;
  std::vector<int64_t> iterations;  ///< of the enclosing loops, outermost first
  /// Names that held references, with their targets' names.
  std::map<std::string, std::set<std::string>> references;
  bool sees_program = true;  ///< params, dims and blocks
};

/// Levels of evaluation over all open blocks, which bound the stack.
class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  bool too_deep() const { return depth_ > 1500; }

 private:
  int& depth_;
};

enum class Flow { kNormal, kBreak, kContinue, kReturn, kMixed };

/// How a piece of code ended. kMixed: which way depends on a tensor. Then the frame's local `%jump`
/// holds the number of the Flow and `%value` what is returned, where that may have happened.
struct Outcome {
  Flow flow = Flow::kNormal;
  Value value;
  unsigned may = 0;        ///< of kMixed: bits of the flows that are possible
  bool continued = false;  ///< of an `if`: what stands after it has run as well
  static constexpr unsigned bit(Flow flow) { return 1u << static_cast<unsigned>(flow); }
  unsigned flows() const { return flow == Flow::kMixed ? may : bit(flow); }
};

/// Names of locals, in order of appearance.
using Names = std::vector<std::string>;
/// Changes that a piece of code makes.
struct Changes {
  Names changed;  ///< names that are bound, written into, appended to or popped from
  Names bound;    ///< those that get a value of their own
};

/// Evaluated arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  NamedValues named;
  std::map<std::string, SourcePosition> places = {};  ///< of named ones, for messages
  const Value* find(std::string_view name) const;
  /// Takes a named argument out; nullopt if it was not given.
  std::optional<Value> take(std::string_view name);
};

/// A call's identity in the text, for the names of parameters.
struct Site {
  const void* key = nullptr;  ///< the syntax node
  int index = -1;             ///< in Code::sites, -1 for calls that name nothing
  SourcePosition where;
};

class Evaluation {
 public:
  Evaluation(const Program* program, const EvaluationOptions& options);

  // --- evaluation.cc: frames, statements, names ---
  /// Runs statements from number `from` on.
  Outcome run(const std::vector<Stmt>& statements, Frame& frame, size_t from = 0);
  Frame make_frame(const Code& code, const std::string& file);
  Value evaluate_name(const Expr& name, Frame& frame);
  void assign(const Expr& target, Value value, Frame& frame);
  /// Counts a loop iteration or operation.
  void step(const SourcePosition& where);
  [[noreturn]] void refuse(const SourcePosition& where, std::string message) const;
  /// Calls `f` with operations marked by this place; errors without a place get it, and kUsage
  /// becomes kConfig.
  template <class F>
  auto with_location_scope(const SourcePosition& where, F&& f) -> decltype(f());

  /// Runs a whole body and gives what it returns.
  Value run_body(const std::vector<Stmt>& statements, Frame& frame);

  /// Calls `f` and gives errors that still have no place this one.
  template <class F>
  auto with_location(const SourcePosition& where, F&& f) -> decltype(f());

  // --- expressions.cc ---
  Value evaluate(const Expr& expr, Frame& frame);
  Value evaluate_attribute(const Expr& expr, Frame& frame);

  // --- arithmetic.cc ---
  Value binary(std::string_view op, const Value& a, const Value& b, const SourcePosition& where);
  Value unary(std::string_view op, const Value& a, const SourcePosition& where);
  Value compare(std::string_view op, const Value& a, const Value& b, const SourcePosition& where);
  /// A number, dim or tensor as a tensor.
  Tensor to_tensor(const Value& value, const SourcePosition& where, std::string_view what);

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
  Value op(std::string_view name, std::vector<Value> positional, const SourcePosition& where,
           NamedValues named = {});
  Value invoke(const Op& op, const Arguments& arguments, const SourcePosition& where,
               Tensors* all = nullptr);
  /// Gives an error about one argument of a call that argument's place.
  template <class F>
  auto with_argument_location(const std::map<std::string, SourcePosition>& places, F&& f)
      -> decltype(f());

  // --- layers.cc ---
  /// The call of an operation in its layer form; nullopt if it has none.
  std::optional<Value> call_layer(const Op& op, Arguments& arguments, const Site& site,
                                  Frame& frame);

  // --- indexing.cc ---
  Value index(const Value& base, const Expr& expr, Frame& frame);
  void assign_index(const Expr& target, const Value& value, Frame& frame);

  // --- naming.cc ---
  /// The path of a layer or block; `name` and `share` are taken out of the arguments.
  std::string layer_path(const std::string& callee, Arguments& arguments, const Site& site,
                         Frame& frame);
  std::string literal_path(const std::string& name, const Frame& frame) const;
  int occurrence(const std::string& callee, const Site& site, const Frame& frame);
  Tensor parameter(const std::string& path, const Dims& shape, DType dtype, const Initializer& init,
                   const SourcePosition& where);
  Value state(const std::string& path, const Dims& shape, DType dtype, const Initializer& init,
              StateScope scope, const SourcePosition& where);
  void update_state(const std::string& path, const Tensor& value, const SourcePosition& where);
  Value call_param(Arguments& arguments, const SourcePosition& where, Frame& frame);
  Value call_state(Arguments& arguments, const SourcePosition& where, Frame& frame);
  Value call_update(Arguments& arguments, const SourcePosition& where);
  Value call_get(Arguments& arguments, const SourcePosition& where);

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

  // --- dry_run.cc ---
  /// The value of an expression as far as types go, without recording anything.
  Value evaluate_abstract(const Expr& expr, const Frame& frame);

  // --- chains.cc ---
  Value run_chain(const Code& code, Value first, Frame& frame);
  /// Evaluates a YAML value as an expression (text where it is quoted and may be text).
  Value evaluate_yaml(const YamlValue& value, Frame& frame, bool quoted_is_text);

  const EvaluationOptions& options() const { return options_; }
  const Program* program() const { return program_; }
  void bind_dim(const std::string& name, const Dim& dim) { dims_[name] = dim; }
  std::optional<Dim> bound_dim(const std::string& name) const;
  Value param(const Param& param, const SourcePosition& where);
  void record(CallRecord record);
  bool is_abstract() const { return abstract_depth_ > 0; }

 private:
  friend class ShapeScope;
  friend class RegionScope;
  friend class LayerCall;

  /// Sets the path that operations are marked with (`layer_`) in a scope.
  class LayerScope {
   public:
    LayerScope(Evaluation& evaluation, std::string path)
        : layer_(evaluation.layer_), outer_(std::exchange(evaluation.layer_, std::move(path))) {}
    ~LayerScope() { layer_ = std::move(outer_); }
    LayerScope(const LayerScope&) = delete;
    LayerScope& operator=(const LayerScope&) = delete;

   private:
    std::string& layer_;
    std::string outer_;
  };

  struct Claim {
    const void* site;
    std::string callee;
    bool shared;
    SourcePosition where;
  };
  struct StateSlot {
    Tensor current;
    StateScope scope;
    Initializer init;
    DType declared;
    int64_t writes = 0;
  };
  using States = std::map<std::string, StateSlot>;
  /// Result of one branch of control flow, by types.
  struct BranchResult {
    Outcome outcome;
    Frame frame;
    States states;
  };
  class Fork;
  class Loop;

  void claim(const std::string& path, const std::string& callee, bool shared, const Site& site);
  struct Continuation {
    const std::vector<Stmt>& statements;
    size_t from;
  };
  Outcome run_statement(const Stmt& statement, Frame& frame);
  Outcome run_if(const Stmt& statement, size_t branch, const Continuation* rest, Frame& frame);
  Outcome run_continuation(Outcome outcome, const Continuation& rest, Frame& frame);
  /// Whether a `while` on numbers turned out, after its first iteration, to stand on tensors.
  bool becomes_tensor_loop(const Stmt& statement, Outcome outcome, Frame& frame);
  /// Tells the store of states that control flow changed, once outside of it.
  void publish(const std::set<std::string>& paths);
  /// Makes states for real that a run on types met first.
  void open_states(const std::set<std::string>& paths, const States& met,
                   const SourcePosition& where);
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
  const EvaluationOptions& options_;
  std::map<std::string, Dim> dims_;
  std::map<const Code*, std::unordered_set<std::string>> bound_names_;
  /// The callees that each call had, for calls whose name alone does not identify one.
  std::map<const Code*, std::vector<std::set<std::string>>> called_;
  std::map<std::string, Value> params_;
  std::set<std::string> open_params_;
  std::unordered_map<std::string, Claim> claims_;
  std::unordered_map<std::string, Tensor> parameters_;
  States states_;
  /// Made during runs on types alone, to be forgotten afterwards.
  std::vector<std::string> abstract_parameters_, abstract_claims_;
  std::vector<std::pair<std::string, TensorType>> used_parameters_;  ///< since the last record
  std::vector<const Block*> open_blocks_;
  int64_t steps_ = 0, abstract_steps_ = 0;
  std::string layer_;  ///< path of the layer or block that is being called
  int depth_ = 0;
  int abstract_depth_ = 0;
  int regions_ = 0;  ///< control flow on tensors that is being written
};

template <class F>
auto Evaluation::with_location(const SourcePosition& where, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.location().line > 0 || !error.location().file.empty()) throw;
    const ErrorCode code = error.code() == ErrorCode::kUsage ? ErrorCode::kConfig : error.code();
    Error with_location_error(code, error.message(), where.location());
    for (const std::string& note : error.notes()) with_location_error.note(note);
    throw with_location_error;
  }
}

template <class F>
auto Evaluation::with_location_scope(const SourcePosition& where, F&& f) -> decltype(f()) {
  const ir::LocationScope scope(text(Origin{where.location().text(), RangeScope::within(layer_)}));
  return with_location(where, f);
}

template <class F>
auto Evaluation::with_argument_location(const std::map<std::string, SourcePosition>& places, F&& f)
    -> decltype(f()) {
  try {
    return f();
  } catch (const Error& error) {
    if (error.location().line > 0 || !error.location().file.empty()) throw;
    // Messages name the argument as "operation: argument: …" or "… argument 'name'…".
    const std::string& message = error.message();
    for (const auto& [name, where] : places) {
      if (message.find(": " + name + ": ") == std::string::npos &&
          message.find(": " + name + " ") == std::string::npos &&
          message.find("argument '" + name + "'") == std::string::npos) {
        continue;
      }
      const ErrorCode code = error.code() == ErrorCode::kUsage ? ErrorCode::kConfig : error.code();
      throw Error(code, message, where.location());
    }
    throw;
  }
}

}  // namespace paddle::lang
