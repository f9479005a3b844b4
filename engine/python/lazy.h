#pragma once
// Calls that are deferred until a value is needed: jit.to_static runs a function so that it cannot
// compile as a whole. Not for use outside the room.

#include "tensor/interpreter.h"

namespace paddle::python {

/// The interpreter that defers the calls of this thread; null if they compute at once. Calls need
/// Python's lock.
Interpreter* deferring();
/// Whether the tensor is the result of a call that is deferred. Its type is known; to read its
/// value computes it, and what was deferred with it.
bool is_deferred(const Tensor& tensor);
/// Computes what is deferred of these tensors, so that they have their values and records. The
/// caller has Python's lock, which is released meanwhile.
void compute(const Tensors& tensors);
/// Notes a tensor of a Python object, whose value may be another one when the calls are made again.
void note_operand(const Tensor& tensor);

}  // namespace paddle::python
