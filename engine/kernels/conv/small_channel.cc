// Convolutions with few channels by vectors of images or pixels in the place of oneDNN's, whose
// vectors hold channels.

#include <algorithm>

#include "kernels/conv/chwn.h"
#include "kernels/conv/direct.h"
#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using cpu::BatchConvolution;
using cpu::BatchWeightGrad;
using cpu::RowConvolution;

/// Below it, what oneDNN's time in units of ours is guessed to be says little.
constexpr double kLeastSaving = 1.25;

const float* floats(void* const* operands, size_t i) {
  return static_cast<const float*>(operands[i]);
}

template <class Convolution>
std::unique_ptr<Kernel> forward_kernel(const Convolution& convolution, const OperandPlaces& at,
                                       bool biased, const LoopFunction& function,
                                       const char* name) {
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const cpu::ConvFinish finish{.bias = biased ? floats(operands, at[2]) : nullptr,
                                     .least = function.least,
                                     .loop = function.step.loop,
                                     .params = function.step.params.data()};
        convolution.run(floats(operands, at[0]), floats(operands, at[1]), finish,
                        static_cast<float*>(results[0]), context.scratch);
      },
      convolution.scratch_bytes(), name);
}

}  // namespace

std::unique_ptr<Kernel> narrow_convolution(const KernelRequest& request,
                                           const cpu::ConvShape& shape, const OperandPlaces& at,
                                           const Epilogue& epilogue) {
  const double by_rows = RowConvolution::saving(shape);
  const double by_images = BatchConvolution::saving(shape);
  if (request.operands[0].dtype != DType::kF32 || epilogue.residual >= 0 ||
      std::max(by_rows, by_images) < kLeastSaving)
    return nullptr;
  const auto function = loop_function(epilogue.function, shape.out_channels);
  if (!function) return nullptr;
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  if (by_rows >= by_images)
    return forward_kernel(RowConvolution(shape), at, biased, *function, "cpu:row");
  return forward_kernel(BatchConvolution::forward(shape), at, biased, *function, "cpu:batch");
}

std::unique_ptr<Kernel> narrow_input_grad(const KernelRequest& request,
                                          const cpu::ConvShape& shape) {
  if (request.operands[0].dtype != DType::kF32 ||
      BatchConvolution::input_grad_saving(shape) < kLeastSaving)
    return nullptr;
  const auto convolution = BatchConvolution::input_grad(shape);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        convolution.run(floats(operands, 1), floats(operands, 0), {},
                        static_cast<float*>(results[0]), context.scratch);
      },
      convolution.scratch_bytes(), "cpu:batch");
}

std::unique_ptr<Kernel> narrow_weight_grad(const KernelRequest& request,
                                           const cpu::ConvShape& shape) {
  if (request.operands[0].dtype != DType::kF32 || BatchWeightGrad::saving(shape) < kLeastSaving)
    return nullptr;
  const BatchWeightGrad gradient(shape);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        gradient.run(floats(operands, 0), floats(operands, 1), static_cast<float*>(results[0]),
                     context.scratch);
      },
      gradient.scratch_bytes(), "cpu:batch");
}

}  // namespace paddle::onednn
