#pragma once
// The algorithms that conv.cc chooses from. Speedups are those over oneDNN's convolution primitive.

#include <memory>

#include "kernels/common/algorithm_table.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/epilogue.h"

namespace paddle::cpu {

/// A convolution, or one of its gradients, to prepare a kernel for.
struct ConvProblem {
  const KernelRequest& request;
  ConvShape shape;  ///< of the forward convolution
  OperandIndices at = {0, 1, 2};
  Epilogue epilogue = {};

  DType dtype() const { return request.operands[0].dtype; }
  bool has_bias() const { return request.operands.size() > 2 && request.operands[2].present; }
};

using ConvAlgorithm = Algorithm<ConvProblem>;

// winograd_kernel.cc
double winograd_speedup(const ConvProblem& problem);
std::unique_ptr<Kernel> prepare_winograd(const ConvProblem& problem);

// small_channel.cc
double direct_speedup(const ConvProblem& problem);
std::unique_ptr<Kernel> prepare_direct(const ConvProblem& problem);
double chwn_speedup(const ConvProblem& problem);
std::unique_ptr<Kernel> prepare_chwn(const ConvProblem& problem);
double chwn_input_grad_speedup(const ConvProblem& problem);
std::unique_ptr<Kernel> prepare_chwn_input_grad(const ConvProblem& problem);
double chwn_weight_grad_speedup(const ConvProblem& problem);
std::unique_ptr<Kernel> prepare_chwn_weight_grad(const ConvProblem& problem);

// im2col_weight_grad.cc
double im2col_weight_grad_speedup(const ConvProblem& problem);
std::unique_ptr<Kernel> prepare_im2col_weight_grad(const ConvProblem& problem);

}  // namespace paddle::cpu

// Built from oneDNN primitives.
namespace paddle::onednn {

/// True if oneDNN computes convolutions of these types and sizes at all.
bool supports_convolution(const cpu::ConvProblem& problem);

// onednn.cc
double onednn_speedup(const cpu::ConvProblem& problem);
double pointwise_speedup(const cpu::ConvProblem& problem);
std::unique_ptr<Kernel> prepare_pointwise(const cpu::ConvProblem& problem);
std::unique_ptr<Kernel> prepare_convolution(const cpu::ConvProblem& problem);
std::unique_ptr<Kernel> prepare_convolution_input_grad(const cpu::ConvProblem& problem);
std::unique_ptr<Kernel> prepare_convolution_weight_grad(const cpu::ConvProblem& problem);
double pointwise_input_grad_speedup(const cpu::ConvProblem& problem);
std::unique_ptr<Kernel> prepare_pointwise_input_grad(const cpu::ConvProblem& problem);
double pointwise_weight_grad_speedup(const cpu::ConvProblem& problem);
std::unique_ptr<Kernel> prepare_pointwise_weight_grad(const cpu::ConvProblem& problem);

// depthwise3d.cc
double depthwise3d_speedup(const cpu::ConvProblem& problem);
std::unique_ptr<Kernel> prepare_depthwise3d(const cpu::ConvProblem& problem);

/// dilated.cc; used by prepare_convolution where oneDNN would fall back to im2col.
std::unique_ptr<Kernel> prepare_dilated(const cpu::ConvProblem& problem);

}  // namespace paddle::onednn
