#pragma once
// Automatic mixed precision: while it is installed, operations of the class `low` (products,
// convolutions, attention) compute in a 16-bit type and those of the class `full` (normalisation,
// losses, sums, exponentials) in float32. At level O1 all others compute in the type that their
// operands promote to; at level O2 they compute in the 16-bit type. The casts are operations like
// any other, so gradients come back through them. Install it above the tape or the tracer.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ops/op.h"
#include "tensor/interpreter.h"

namespace paddle::autograd {

struct AutocastOptions {
  DType low = DType::kBF16;
  bool all_low = false;  ///< level O2
  /// Operations whose class differs from the schema's.
  std::set<const Op*> custom_low, custom_full;
};

class Autocast final : public PassingInterpreter {
 public:
  /// `kept`, if given, is told every operand that an operation wants in float32.
  explicit Autocast(const AutocastOptions& options,
                    std::function<void(const Tensor&)> kept = nullptr)
      : options_(options), kept_(std::move(kept)) {}

  Tensors apply(const OpCall& call) override;
  /// Branches give float32 where either may have computed in 16 bits, and what a loop carries keeps
  /// its type.
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;

 private:
  PrecisionClass class_of(const Op& op) const;
  Tensors parts(const OpCall& call, bool wide);
  Tensors cast_and_call(const OpCall& call);
  Tensor lowered(const Tensor& x) const;

  const AutocastOptions& options_;
  std::function<void(const Tensor&)> kept_;
  bool widened_ = false;  ///< inside the parts of operations of the class `wide`
  /// What the operands of the operation at hand were before they were promoted to float32, each
  /// with what it became.
  std::vector<std::pair<Tensor, Tensor>> promoted_;
  size_t outer_ = 0;  ///< so many of them belong to operations whose parts are being called
};

}  // namespace paddle::autograd
