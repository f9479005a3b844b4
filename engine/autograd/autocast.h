#pragma once
// Automatic mixed precision (level O1): while it is installed, operations of the class `low`
// (products, convolutions, attention) compute in a 16-bit type, those of the class `full`
// (normalisation, losses) in float32, and all others in the type that their operands promote to.
// Parameters stay float32; the casts in front of their uses carry gradients back to float32.
// Install it above the tape or the tracer.

#include "tensor/interpreter.h"

namespace paddle::autograd {

class Autocast final : public Interpreter {
 public:
  explicit Autocast(DType low) : low_(low) {}

  Tensors apply(const OpCall& call) override;
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  bool traces() const override { return next().traces(); }

 private:
  /// The function with this interpreter on top again.
  TensorFn within(const TensorFn& fn);
  DType low_;
};

}  // namespace paddle::autograd
