#pragma once
// Automatic mixed precision. Operations of the class `low` (matrix products, convolutions,
// attention) compute in a 16-bit type and those of the class `full` (normalization, losses, sums,
// exponentials) in float32. All others compute in the type that their operands promote to at level
// O1, and in the 16-bit type at level O2. Casts are ordinary operations, so gradients flow through
// them. Installed above the tape or the tracer.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ops/core/op.h"
#include "tensor/interpreter.h"

namespace paddle::autograd {

struct AutocastOptions {
  DType low = DType::kBF16;
  bool all_low = false;  ///< level O2
  /// Operations whose class overrides that of the schema.
  std::set<const Op*> custom_low, custom_full;
  /// Patterns (`*` and `?`) of paths of layers, blocks and ranges in which all operations compute
  /// in float32.
  std::vector<std::string> full_layers = {};
  /// The patterns that have matched so far; not counted if null.
  std::shared_ptr<std::set<std::string>> matched_layers = {};
};

class Autocast final : public ForwardingInterpreter {
 public:
  /// `on_full_precision`, if set, is called for every operand that an operation needs in float32.
  explicit Autocast(const AutocastOptions& options,
                    std::function<void(const Tensor&)> on_full_precision = nullptr)
      : options_(options), on_full_precision_(std::move(on_full_precision)) {}

  Tensors apply(const OpCall& call) override;
  /// Branches return float32 where one of them may have computed in 16 bits; values carried by a
  /// loop keep their type.
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;

 private:
  PrecisionClass class_of(const Op& op);
  bool is_in_full_layer();
  Tensors decomposed(const OpCall& call, bool widening);
  Tensors cast_and_call(const OpCall& call);
  Tensor lowered(const Tensor& x) const;

  const AutocastOptions& options_;
  std::function<void(const Tensor&)> on_full_precision_;
  bool in_widening_ = false;  ///< inside the decomposition of an operation of the class `widening`
  /// Operands of the current operation before and after promotion to float32.
  std::vector<std::pair<Tensor, Tensor>> promoted_;
  size_t outer_ = 0;    ///< number of entries that belong to enclosing decompositions
  std::string origin_;  ///< of the last operation that was compared with full_layers
  bool origin_is_full_ = false;
};

}  // namespace paddle::autograd
