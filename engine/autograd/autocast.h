#pragma once
// Automatic mixed precision (level O1): while it is installed, operations of the class `low`
// (products, convolutions, attention) compute in a 16-bit type, those of the class `full`
// (normalisation, losses) in float32, and all others in the type that their operands promote to.
// Parameters stay float32; the casts in front of their uses carry gradients back to float32.
// Install it above the tape or the tracer.

#include "tensor/interpreter.h"

namespace paddle::autograd {

class Autocast final : public PassingInterpreter {
 public:
  explicit Autocast(DType low) : low_(low) {}

  Tensors apply(const OpCall& call) override;

 private:
  DType low_;
};

}  // namespace paddle::autograd
