#pragma once
// The evaluator's inside: one Evaluation is one run of one entry. It evaluates expressions in
// frames; Statements (statements.h) runs what holds them, Operations (operations.h) computes on
// values, Variables (variables.h) keeps parameters and states. Its methods are spread over the
// files named in the sections below. Not for use outside the room.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lang/eval/frame.h"
#include "lang/eval/operations.h"
#include "lang/eval/statements.h"
#include "lang/eval/trace_context.h"
#include "lang/eval/variables.h"

namespace paddle::lang {

class Evaluation : public TraceContext {
 public:
  Evaluation(const Program* program, const EvaluationOptions& options);

  // --- evaluation.cc: frames, names ---
  Frame make_frame(const Code& code, const std::string& file);
  Value evaluate_name(const Expr& name, Frame& frame);

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
  /// The operation that `plugin.operation` names, unless the first word is a value.
  std::optional<Callable> plugin_operation(const Expr& callee, const Frame& frame) const;
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

  // --- sparse_embedding.cc ---
  /// `sparse_embedding(x, dim, weight_init, mask, pool)`: rows of a table by unbounded keys.
  Value call_sparse_embedding(Arguments arguments, const Site& site, Frame& frame);

  // --- experts.cc ---
  /// `experts(x, count, chosen, inner, …)`: a mixture of experts.
  Value call_experts(Arguments arguments, const Site& site, Frame& frame);

  // --- indexing.cc ---
  Value index(const Value& base, const Expr& expr, Frame& frame);
  /// The list x[0], x[1], ... for loops; rejected if the first size is not known while tracing.
  Value elements_of(const Tensor& x, const SourcePosition& where);
  void assign_index(const Expr& target, const Value& value, Frame& frame);

  // --- shape_interpreter.cc ---
  /// The value of an expression as far as types go, without recording anything.
  Value evaluate_abstract(const Expr& expr, const Frame& frame);

  // --- chains.cc ---
  Value run_chain(const Code& code, Value first, Frame& frame);
  /// Evaluates a YAML value as an expression (text where it is quoted and may be text).
  Value evaluate_yaml(const YamlValue& value, Frame& frame, bool quoted_is_text);
  Value with_experts_words(const YamlValue& value, Frame& frame);

  Statements& statements() { return statements_; }
  Operations& operations() { return operations_; }
  Variables& variables() { return variables_; }
  const Program* program() const { return program_; }
  void bind_dim(const std::string& name, const Dim& dim) { dims_[name] = dim; }
  std::optional<Dim> bound_dim(const std::string& name) const;
  Value param(const Param& param, const SourcePosition& where);
  /// A mask bool [batch, steps] of an input: what recurrent layers read with as many steps is
  /// padding where it is false.
  void add_padding_mask(const Tensor& mask) { padding_masks_.push_back(mask); }
  const Tensors& padding_masks() const { return padding_masks_; }
  void record(CallRecord record);
  /// Counts a level of nesting while it lives.
  DepthGuard nest() { return DepthGuard(depth_); }

 private:
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
  Statements statements_{*this};
  Operations operations_{*this};
  Variables variables_{*this, operations_};
  std::map<std::string, Dim> dims_;
  Tensors padding_masks_;
  std::map<const Code*, std::unordered_set<std::string>> bound_names_;
  std::map<std::string, Value> params_;
  std::set<std::string> open_params_;
  std::vector<const Block*> open_blocks_;
  int depth_ = 0;
};

}  // namespace paddle::lang
