#pragma once
// An interpreter that computes types only. Branches and loops on tensors are run through it first,
// to learn what kinds of values they give before anything is recorded.

#include "tensor/interpreter.h"

namespace paddle::lang {

class ShapeInterpreter final : public Interpreter {
 public:
  Tensors apply(const OpCall& call) override;
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  bool traces() const override { return true; }
};

/// A tensor of a type and nothing else.
Tensor abstract_tensor(TensorType type);

}  // namespace paddle::lang
