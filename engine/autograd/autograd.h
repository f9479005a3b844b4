#pragma once
// Reverse-mode automatic differentiation. In eager mode a Tape (an interpreter) records operations;
// in a trace the function under construction is the record. One engine walks both backwards and
// calls the vjp rule of each operation. What the rules compute is recorded again, so gradients of
// any order work in both modes.

#include <functional>
#include <memory>
#include <vector>

#include "tensor/interpreter.h"

namespace paddle::autograd {

/// Records every call on tensors that require a gradient. Installed above the eager executor.
class Tape final : public Interpreter {
 public:
  Tensors apply(const OpCall& call) override;
  bool apply_known(const Op& op, const Tensors& operands, const Attrs& attrs,
                   Tensors& results) override;
  bool traces() const override { return next().traces(); }
  Device device() const override { return next().device(); }
};

/// Whether calls on this thread are recorded.
bool is_recording();
void set_recording(bool recording);

/// Disables recording on this thread in a scope.
class NoGradScope {
 public:
  NoGradScope();
  ~NoGradScope();
  NoGradScope(const NoGradScope&) = delete;
  NoGradScope& operator=(const NoGradScope&) = delete;

 private:
  bool previous_;
};

/// The value as a leaf that requires a gradient (in eager mode; a traced tensor is returned as is).
Tensor variable(const Tensor& value);

/// Gradients of sum(outputs * cotangents) for each input; undefined if the outputs do not depend on
/// it. Cotangents default to ones; non-floating outputs are skipped. Throws kUsage, naming the
/// operation, if one in between has no gradient. Row-sparse gradients (ops/row_sparse.h) become
/// dense unless `keep_row_sparse`.
Tensors grad(const Tensors& outputs, const Tensors& inputs, const Tensors& cotangents = {},
             bool keep_row_sparse = false);

/// The gradient of a tensor as it flows backward; what it returns flows on in its place, unless it
/// is undefined.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;
/// Calls the hook when a gradient of the tensor has been added up, each time. Gives a number for
/// `remove_hook`. kUsage for a tensor that requires no gradient; eager mode only.
int64_t add_hook(const Tensor& tensor, GradientHook hook);
void remove_hook(const Tensor& tensor, int64_t number);
/// Whether a leaf has hooks.
bool has_hooks(const Tensor& leaf);

/// Gradients of the operands for those of the results; undefined ones are zeros.
using CustomVjp =
    std::function<Tensors(const Tensors& cotangents, const std::vector<bool>& needed)>;
/// Results that the caller has computed from the operands, with a record by which gradients flow
/// through `vjp`. Without a record if no operand requires a gradient; eager mode only.
Tensors with_vjp(const Tensors& results, const Tensors& operands, const CustomVjp& vjp);

/// True if `value` is what `variable` made (or a copy of it).
bool is_leaf(const Tensor& value);
/// Adds to each leaf that the outputs depend on its gradient of sum(outputs * cotangents), as
/// `grad` computes it. Errors as those of `grad`.
void backward_to_leaves(const Tensors& outputs, const Tensors& cotangents = {});
/// The gradient that a leaf has; undefined if there is none.
Tensor leaf_gradient(const Tensor& leaf);
/// Sets or, with an undefined tensor, removes it.
void set_leaf_gradient(const Tensor& leaf, const Tensor& gradient);
/// Replaces the value of a leaf, which stays the leaf that it is. The type must be the same.
void set_leaf_value(const Tensor& leaf, const Tensor& value);

/// Vector-Jacobian product of `fn` at `inputs`; zeros for inputs that do not matter.
Tensors vjp(const TensorFn& fn, const Tensors& inputs, const Tensors& cotangents);
/// Jacobian-vector product, computed as the vjp of the vjp.
Tensors jvp(const TensorFn& fn, const Tensors& inputs, const Tensors& tangents);
/// Jacobian [outputs, inputs] of one output for one input, both flattened.
Tensor jacobian(const TensorFn& fn, const Tensor& input);
/// Hessian [n, n] of a scalar function of one tensor.
Tensor hessian(const TensorFn& fn, const Tensor& input);

}  // namespace paddle::autograd
