#pragma once
// Gradients. Eagerly, a Tape (an interpreter) records what was computed; in a trace, the function
// under construction is itself the record. Both are walked backwards by one engine, which calls
// each operation's vjp rule; what the rules compute is recorded again, so gradients of any order
// work in both modes.

#include <memory>

#include "tensor/interpreter.h"

namespace paddle::autograd {

/// Records every call on tensors that require a gradient. Install it above the eager executor.
class Tape final : public Interpreter {
 public:
  Tensors apply(const OpCall& call) override;
  bool traces() const override { return next().traces(); }
};

/// No recording on this thread for a scope.
class NoGradScope {
 public:
  NoGradScope();
  ~NoGradScope();
  NoGradScope(const NoGradScope&) = delete;
  NoGradScope& operator=(const NoGradScope&) = delete;

 private:
  bool previous_;
};

/// The same value as a leaf whose gradient can be asked for (eager mode; a traced tensor is given
/// back as it is).
Tensor variable(const Tensor& value);

/// Gradients of sum(outputs * cotangents) for each input; undefined where an input has no part in
/// the outputs. Cotangents default to ones; an output that is not floating is skipped.
/// Throws kUsage if an operation on the way has no gradient, naming it.
/// Row-sparse gradients (ops/row_sparse.h) become dense unless `keep_row_sparse`.
Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& cotangents = {},
             bool keep_row_sparse = false);

/// Product of cotangents with the Jacobian of `fn` at `inputs`, zeros where not connected.
Tensors vjp(const TensorFn& fn, const Tensors& inputs, const Tensors& cotangents);
/// Product of the Jacobian with tangents, as the vjp of the vjp.
Tensors jvp(const TensorFn& fn, const Tensors& inputs, const Tensors& tangents);
/// Jacobian of one output by one input: [outputs, inputs], both flattened.
Tensor jacobian(const TensorFn& fn, const Tensor& input);
/// Hessian of a scalar function of one tensor: [n, n].
Tensor hessian(const TensorFn& fn, const Tensor& input);

}  // namespace paddle::autograd
