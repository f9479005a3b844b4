#pragma once
// Records of values that are computed after they are handed out, as those of calls that a program
// defers.

#include <memory>

#include "tensor/tensor.h"

namespace paddle::autograd {

/// The record of a value that will require a gradient. It must be completed before a gradient is
/// computed.
std::shared_ptr<Content> pending_record();
/// Makes a pending record that of `value`, now that it is computed. Without a record of `value` no
/// gradient flows.
void complete_record(Content& pending, const Tensor& value);

}  // namespace paddle::autograd
