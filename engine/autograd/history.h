#pragma once
// What the backward engine needs to know of a computation that happened: which call produced a
// tensor, with which operands and results. The tape and the traced function both answer it.

#include <cstdint>

#include "ir/module.h"
#include "tensor/tensor.h"

namespace paddle::autograd {

/// A call in the past.
struct Step {
  const Op* op = nullptr;
  const Attrs* attrs = nullptr;
  Tensors operands;
  Tensors results;
  const ir::Operation* operation = nullptr;  ///< set for control flow in a traced function
};

class History {
 public:
  /// Identity of a value: who made it (null for what has no past), and which result it is.
  struct Key {
    const void* node = nullptr;
    size_t index = 0;
    bool leaf = false;  ///< a value whose making is not recorded
    auto operator<=>(const Key&) const = default;
  };
  virtual ~History() = default;
  virtual Key key(const Tensor& tensor) = 0;
  /// For a key that is no leaf:
  virtual Step step(const Key& key) = 0;
  /// Grows along every path of the computation.
  virtual int64_t sequence(const Key& key) = 0;
};

/// The history that knows this tensor: its function's if it is traced, else the tape's.
std::unique_ptr<History> history_of(const Tensor& tensor);

/// The engine: gradients of outputs (with given cotangents, undefined ones skipped) for inputs.
Tensors backward(History& history, const Tensors& outputs, const Tensors& cotangents,
                 const Tensors& inputs);

/// Gradient of a cf.if or cf.while in a traced function, one per operand of its Step.
Tensors control_flow_vjp(const Step& step, const Tensors& cotangents,
                         const std::vector<bool>& needed);

}  // namespace paddle::autograd
