// Algorithm selection for float convolutions and their gradients. Each table lists the algorithms
// for one operation; the one with the highest estimated speedup is prepared first. What no
// algorithm here takes (float64, integers, 16-bit floats without AVX-512) goes to im2col.cc.

#include "kernels/conv/conv.h"

#include <span>

#include "kernels/common/upcast.h"
#include "kernels/conv/algorithms.h"

namespace paddle::onednn {
namespace {

using cpu::ConvAlgorithm;
using cpu::ConvProblem;
using cpu::ConvShape;
using cpu::Epilogue;
using cpu::OperandIndices;

constexpr ConvAlgorithm kForward[] = {
    {"winograd", cpu::winograd_speedup, cpu::prepare_winograd},
    {"depthwise3d", depthwise3d_speedup, prepare_depthwise3d},
    {"direct", cpu::direct_speedup, cpu::prepare_direct},
    {"chwn", cpu::chwn_speedup, cpu::prepare_chwn},
    {"matmul", pointwise_speedup, prepare_pointwise},
    {"onednn", onednn_speedup, prepare_convolution},
};

constexpr ConvAlgorithm kInputGrad[] = {
    {"matmul", pointwise_input_grad_speedup, prepare_pointwise_input_grad},
    {"chwn", cpu::chwn_input_grad_speedup, cpu::prepare_chwn_input_grad},
    {"onednn", onednn_speedup, prepare_convolution_input_grad},
};

constexpr ConvAlgorithm kWeightGrad[] = {
    {"im2col", cpu::im2col_weight_grad_speedup, cpu::prepare_im2col_weight_grad},
    {"matmul", pointwise_weight_grad_speedup, prepare_pointwise_weight_grad},
    {"chwn", cpu::chwn_weight_grad_speedup, cpu::prepare_chwn_weight_grad},
    {"onednn", onednn_speedup, prepare_convolution_weight_grad},
};

/// Null where oneDNN computes no such convolutions: im2col.cc does then.
std::unique_ptr<Kernel> prepare_best(std::span<const ConvAlgorithm> algorithms,
                                     const ConvProblem& problem) {
  return supports_convolution(problem) ? cpu::prepare_best(algorithms, problem) : nullptr;
}

}  // namespace

std::unique_ptr<Kernel> convolution_with_epilogue(const KernelRequest& request,
                                                  const OperandIndices& at,
                                                  const Epilogue& epilogue) {
  const ConvShape shape = ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                        request.operands[1].shape, request.results[0].shape);
  return prepare_best(kForward, {request, fold_to_2d(shape), at, epilogue});
}

std::unique_ptr<Kernel> prepare_conv2d(const KernelRequest& request) {
  if (request.operands[0].dtype == DType::kF16)
    return cpu::upcast_to_float32(request, prepare_conv2d);
  return convolution_with_epilogue(request, {0, 1, 2}, {});
}

std::unique_ptr<Kernel> prepare_conv3d(const KernelRequest& request) {
  if (request.operands[0].dtype == DType::kF16)
    return cpu::upcast_to_float32(request, prepare_conv3d);
  return convolution_with_epilogue(request, {0, 1, 2}, {});
}

std::unique_ptr<Kernel> prepare_conv2d_input_grad(const KernelRequest& request) {
  const ConvShape shape = ConvShape::of(request.op, request.attrs, request.results[0].shape,
                                        request.operands[0].shape, request.operands[1].shape);
  return prepare_best(kInputGrad, {request, shape});
}

std::unique_ptr<Kernel> prepare_conv2d_weight_grad(const KernelRequest& request) {
  const ConvShape shape = ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                        request.results[0].shape, request.operands[1].shape);
  return prepare_best(kWeightGrad, {request, shape});
}

}  // namespace paddle::onednn
