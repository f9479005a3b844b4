#pragma once
// Training programs, as `paddle.static.save` writes them: a forward pass, its gradients, and
// updates of the parameters by an optimizer. The forward pass is what is imported.

#include "formats/paddle_program.h"

namespace paddle::paddle_program {

/// Reduces a program that updates parameters to its forward pass in inference mode. If it fetches
/// nothing, the results that no operation of the forward pass reads, such as the loss, become its
/// outputs. Programs without an optimizer do not change.
void keep_forward(formats::PaddleProgram& program);

}  // namespace paddle::paddle_program
