#pragma once
// Calls operations, either through the generated functions (generated/ops.h) or generically with
// `bind_arguments` and `call`, as the model language, the tables of test cases and importers do.

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "ops/core/op.h"
#include "ops/core/rules.h"
#include "ops/core/target.h"

namespace paddle {

/// Checks and promotes operands, infers the results and applies the operation through the current
/// interpreter. `operands` is flat, in declared order. Returns all results, hidden ones included.
Tensors call(const Op& op, Tensors operands, Attrs attrs);
/// The same without hidden results.
Tensors call_visible(const Op& op, Tensors operands, Attrs attrs);
/// The same, returning only the first result.
Tensor call_single(const Op& op, Tensors operands, Attrs attrs);

/// Shape inference: result types for operands of these types.
struct Inferred {
  std::vector<TensorType> results;
  std::vector<DimConstraint> constraints;
};
Inferred infer_results(const Op& op, const Attrs& attrs, const Tensors& operands);

/// Runs the decomposition under the current interpreter; the operation must have one.
Tensors decompose(const OpCall& call);
/// Whether the call is computed by its decomposition on the target: the operation has one, and no
/// backend of the target has a kernel for operands of these dtypes.
bool is_decomposed(const OpCall& call, const TargetInfo& target);
/// An argument of a call: a tensor, a list of tensors, or an attribute's value.
using Argument = std::variant<AttrValue, Tensor, Tensors>;

/// Binds arguments to the declared parameters: positional ones first, then named ones. A number for
/// an operand becomes a weak scalar; a tensor of known value for an attribute that allows it
/// becomes its value. If the arguments do not match, the first overload that accepts them becomes
/// `op` of the result. Throws kUsage if there are too many or if one is unknown (with a
/// suggestion), duplicated, of the wrong kind or missing.
struct Bound {
  const Op* op = nullptr;
  Tensors operands;
  Attrs attrs;
};
Bound bind_arguments(const Op& op, std::vector<Argument> positional,
                     std::vector<std::pair<std::string, Argument>> named);
/// The declared name of parameter `name`, which may be a synonym if the operation has no parameter
/// of that name (`input` for x, `other` for y, `dim` for axis, `eps` for epsilon).
std::string parameter_name(const Op& op, const std::string& name);
/// Checks and converts a value for an attribute (an integer to a float, a single value to a list, a
/// name to a dtype); error messages begin with `where`.
AttrValue convert_attr(const AttrDef& def, const AttrValue& value, const std::string& where);
/// All attributes at their defaults.
Attrs default_attrs(const Op& op);

/// The random state for operations in a scope: a tensor uint64[2] of (seed, step), and streams
/// counted in the order of calls. Thread-local; nests.
class RandomScope {
 public:
  /// An undefined tensor: random operations are errors.
  explicit RandomScope(Tensor seed_and_step);
  /// The same, with a tensor that is made when an operation first needs it.
  RandomScope(uint64_t seed, uint64_t step);
  explicit RandomScope(std::function<Tensor()> make);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;
  static const Tensor& state();  ///< throws kUsage if there is no scope
  static int64_t next_stream();

 private:
  Tensor state_;
  uint64_t seed_ = 0, step_ = 0;
  bool makes_state_ = false;
  std::function<Tensor()> make_;
  int64_t streams_ = 0;
  RandomScope* previous_;
};

}  // namespace paddle
