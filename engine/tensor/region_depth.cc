#include "tensor/region_depth.h"

namespace paddle {

Tensors RegionDepth::branch(const Tensor& condition, const TensorFn& then_fn,
                            const TensorFn& else_fn) {
  return ForwardingInterpreter::branch(condition, counted(then_fn), counted(else_fn));
}

Tensors RegionDepth::loop(const TensorFn& condition, const TensorFn& body, const Tensors& carried,
                          int64_t max_steps) {
  return ForwardingInterpreter::loop(counted(condition), counted(body), carried, max_steps);
}

TensorFn RegionDepth::counted(const TensorFn& fn) {
  return [this, fn](const Tensors& tensors) {
    ++depth_;
    Tensors out = fn(tensors);
    --depth_;
    return out;
  };
}

}  // namespace paddle
