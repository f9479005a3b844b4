// Algorithm selection for float convolutions and their gradients. Each table lists the algorithms
// for one operation; the one with the highest estimated speedup is prepared first. What no
// algorithm here takes (float64, integers, 16-bit floats without AVX-512) goes to im2col.cc.

#include "kernels/conv/conv.h"

#include <algorithm>
#include <span>
#include <vector>

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

/// The kernel of the best algorithm that applies; of equal ones the first in the table. A choice of
/// the policy comes before the estimates.
std::unique_ptr<Kernel> prepare_best(std::span<const ConvAlgorithm> algorithms,
                                     const ConvProblem& problem) {
  if (!supports_convolution(problem)) return nullptr;
  struct Candidate {
    double speedup;
    const ConvAlgorithm* algorithm;
  };
  std::vector<Candidate> candidates;
  for (const ConvAlgorithm& algorithm : algorithms)
    if (const double speedup = algorithm.speedup(problem); speedup > 0)
      candidates.push_back({speedup, &algorithm});
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.speedup > b.speedup; });
  if (KernelChoices* const choices = problem.request.policy.choices;
      choices && candidates.size() > 1) {
    std::vector<std::string> names;
    for (const Candidate& candidate : candidates) names.emplace_back(candidate.algorithm->name);
    const std::string wanted = choices->choose(problem.request, ChoiceLevel::kAlgorithm, names);
    std::stable_partition(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
      return candidate.algorithm->name == wanted;
    });
  }
  for (const Candidate& candidate : candidates)
    if (auto kernel = candidate.algorithm->prepare(problem)) return kernel;
  return nullptr;
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
