// Kernels for convolutions with few channels, whose vectors hold pixels of a row (direct.h) or of
// several images (chwn.h). oneDNN's vectors hold channels, which few channels do not fill.

#include "kernels/conv/algorithms.h"
#include "kernels/conv/chwn.h"
#include "kernels/conv/direct.h"

namespace paddle::cpu {
namespace {

/// The cost model is too rough to act on smaller speedups.
constexpr double kMinSpeedup = 1.25;

double if_worthwhile(const ConvProblem& problem, double speedup) {
  if (problem.dtype() != DType::kF32 || problem.epilogue.residual >= 0) return 0;
  return speedup >= kMinSpeedup ? speedup : 0;
}

const float* floats(void* const* operands, size_t i) {
  return static_cast<const float*>(operands[i]);
}

template <class Convolution>
std::unique_ptr<Kernel> forward_kernel(const ConvProblem& problem, const Convolution& convolution,
                                       const char* name) {
  const auto activation = activation_loop(problem.epilogue.activation, problem.shape.out_channels);
  if (!activation) return nullptr;
  return make_kernel(
      [=, loop = *activation, at = problem.at, has_bias = problem.has_bias()](
          const RunContext& context, void* const* operands, void* const* results) {
        const BoundEpilogue epilogue{.bias = has_bias ? floats(operands, at[2]) : nullptr,
                                     .clamp_min = loop.clamp_min,
                                     .activation = loop.step.loop,
                                     .activation_params = loop.step.params.data()};
        convolution.run(floats(operands, at[0]), floats(operands, at[1]), epilogue,
                        static_cast<float*>(results[0]), context.scratch);
      },
      convolution.scratch_bytes(), name);
}

}  // namespace

double direct_speedup(const ConvProblem& problem) {
  if (problem.shape.is_3d()) return 0;
  return if_worthwhile(problem,
                       DirectConvolution::estimated_speedup(transpose_to_row(problem.shape)));
}

std::unique_ptr<Kernel> prepare_direct(const ConvProblem& problem) {
  return forward_kernel(problem, DirectConvolution(transpose_to_row(problem.shape)), "cpu:direct");
}

double chwn_speedup(const ConvProblem& problem) {
  if (problem.shape.is_3d()) return 0;
  return if_worthwhile(problem,
                       ChwnConvolution::estimated_speedup(transpose_to_row(problem.shape)));
}

std::unique_ptr<Kernel> prepare_chwn(const ConvProblem& problem) {
  return forward_kernel(problem, ChwnConvolution::forward(transpose_to_row(problem.shape)),
                        "cpu:chwn");
}

double chwn_input_grad_speedup(const ConvProblem& problem) {
  return if_worthwhile(problem,
                       ChwnConvolution::input_grad_speedup(transpose_to_row(problem.shape)));
}

std::unique_ptr<Kernel> prepare_chwn_input_grad(const ConvProblem& problem) {
  const auto convolution = ChwnConvolution::input_grad(transpose_to_row(problem.shape));
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        convolution.run(floats(operands, 1), floats(operands, 0), {},
                        static_cast<float*>(results[0]), context.scratch);
      },
      convolution.scratch_bytes(), "cpu:chwn");
}

double chwn_weight_grad_speedup(const ConvProblem& problem) {
  return if_worthwhile(problem, ChwnWeightGrad::estimated_speedup(transpose_to_row(problem.shape)));
}

std::unique_ptr<Kernel> prepare_chwn_weight_grad(const ConvProblem& problem) {
  const ChwnWeightGrad gradient(transpose_to_row(problem.shape));
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        gradient.run(floats(operands, 0), floats(operands, 1), static_cast<float*>(results[0]),
                     context.scratch);
      },
      gradient.scratch_bytes(), "cpu:chwn");
}

}  // namespace paddle::cpu
