#pragma once
// matmul and linear with an epilogue.

#include "kernels/epilogue.h"

namespace paddle::onednn {

/// Operands are the request's, of which `at` says where they are among those of a run. Null where
/// oneDNN has no fast implementation.
std::unique_ptr<Kernel> matmul_with_epilogue(const KernelRequest& request,
                                             const cpu::OperandIndices& at,
                                             const cpu::Epilogue& epilogue);
std::unique_ptr<Kernel> linear_with_epilogue(const KernelRequest& request,
                                             const cpu::OperandIndices& at,
                                             const cpu::Epilogue& epilogue);

}  // namespace paddle::onednn
