#pragma once
// Calling operations: by the generated functions (generated/ops.h), or generically by name with
// `call` and `bind_arguments`, as the model language, the tables of cases and the importers do.

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "ops/op.h"
#include "ops/rules.h"

namespace paddle {

/// Checks, promotes, infers and applies through the current interpreter. `operands` is flat, in
/// declared order. Gives all results, hidden ones included.
Tensors call(const Op& op, Tensors operands, Attrs attrs);
/// The same without hidden results.
Tensors call_visible(const Op& op, Tensors operands, Attrs attrs);
/// The first result.
Tensor call_single(const Op& op, Tensors operands, Attrs attrs);

/// Inference alone: result types for operands of these types.
struct Inferred {
  std::vector<TensorType> results;
  std::vector<DimConstraint> constraints;
};
Inferred infer(const Op& op, const Attrs& attrs, const Tensors& operands);

/// Runs the decomposition under the current interpreter; the operation must have one.
Tensors decompose(const OpCall& call);
/// An argument as a caller gives it: a tensor, a list of tensors, or an attribute's value.
using Argument = std::variant<AttrValue, Tensor, Tensors>;

/// Binds arguments to the declared parameters: positional ones first, then named ones. A number
/// for an operand becomes a weak tensor; a tensor of known value for an attribute that allows it
/// becomes its value. Arguments that do not fit the operation are bound to the first of its
/// overloads that takes them, which is then `op` of the result. Throws kUsage: too many, unknown
/// (with the nearest name), given twice, of the wrong kind, or missing.
struct Bound {
  const Op* op = nullptr;
  Tensors operands;
  Attrs attrs;
};
Bound bind_arguments(const Op& op, std::vector<Argument> positional,
                     std::vector<std::pair<std::string, Argument>> named);
/// The declared name of the parameter that a caller calls `name`: itself, or what it stands for
/// where the operation has no parameter of that name (`input` for x, `other` for y, `dim` for
/// axis, `eps` for epsilon).
std::string parameter_name(const Op& op, const std::string& name);
/// Checks and converts a value for an attribute (an integer for a float, one for a list, a name
/// for a dtype); `where` begins the error message.
AttrValue convert_attr(const AttrDef& def, const AttrValue& value, const std::string& where);
/// Attributes all at their defaults.
Attrs default_attrs(const Op& op);

/// Where random operations of a scope take their numbers from: a tensor uint64[2] of (seed, step)
/// and stream numbers counted in the order of calls. Thread-local; nests.
class RandomScope {
 public:
  explicit RandomScope(Tensor seed_and_step);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;
  static const Tensor& state();  ///< throws kUsage if there is no scope
  static int64_t next_stream();

 private:
  Tensor state_;
  int64_t streams_ = 0;
  RandomScope* previous_;
};

}  // namespace paddle
