#pragma once
// An interpreter that knows whether a call is in a region of control flow.

#include "tensor/interpreter.h"

namespace paddle {

/// Counts the conditions and loops on tensors around a call; derived classes define `apply`.
class RegionDepth : public ForwardingInterpreter {
 public:
  Tensors branch(const Tensor& condition, const TensorFn& then_fn,
                 const TensorFn& else_fn) override;
  Tensors loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
               int64_t max_steps) override;
  int depth() const { return depth_; }

 private:
  TensorFn counted(const TensorFn& fn);

  int depth_ = 0;
};

}  // namespace paddle
