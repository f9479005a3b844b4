#pragma once
// Derivatives between tensors that were computed from one another, in the manner of `grad`:
// products with Jacobians, and whole Jacobians and Hessians. All can be differentiated again.

#include "tensor/tensor.h"

namespace paddle::autograd {

/// Jacobian-vector products for each output: the derivative of the outputs along the tangents of
/// the inputs, computed as the vjp of the vjp. Tangents have the shapes of the inputs. Zeros for
/// outputs that do not depend on an input.
Tensors forward_products(const Tensors& outputs, const Tensors& inputs, const Tensors& tangents);

/// The Jacobian [output..., input...]. With `batched`, output and input share their first axis,
/// samples do not influence each other, and the result is [batch, output..., input...]. kConfig if
/// the number of output elements (of a sample) is not known in a trace or is over 65,536.
Tensor jacobian_between(const Tensor& output, const Tensor& input, bool batched = false);

/// The Hessian [input..., input...] of one number; with `batched`, of a number per sample ([batch]
/// or [batch, 1]): [batch, input..., input...]. Errors as above.
Tensor hessian_between(const Tensor& output, const Tensor& input, bool batched = false);

}  // namespace paddle::autograd
