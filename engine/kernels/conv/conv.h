#pragma once
// conv2d and conv3d with an epilogue.

#include "kernels/epilogue.h"

namespace paddle::onednn {

/// Operands are the request's, of which `at` says where they are among those of a run. Null where
/// no algorithm of conv.cc applies.
std::unique_ptr<Kernel> convolution_with_epilogue(const KernelRequest& request,
                                                  const cpu::OperandIndices& at,
                                                  const cpu::Epilogue& epilogue);

}  // namespace paddle::onednn
