// Convolutions over images in the lanes of vectors (kernels/cpu/batch_conv.h) in the place of
// oneDNN's.

#include "kernels/cpu/batch_conv.h"

#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using cpu::BatchConvolution;
using cpu::BatchWeightGrad;

constexpr const char* kName = "cpu:batch";

const float* floats(void* const* operands, size_t i) {
  return static_cast<const float*>(operands[i]);
}

}  // namespace

std::unique_ptr<Kernel> batch_convolution(const KernelRequest& request, const cpu::ConvShape& shape,
                                          const OperandPlaces& at, const Epilogue& epilogue) {
  if (request.operands[0].dtype != DType::kF32 || epilogue.residual >= 0 ||
      !BatchConvolution::suits(shape))
    return nullptr;
  auto function = loop_function(epilogue.function, shape.out_channels);
  if (!function) return nullptr;
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  const auto convolution = BatchConvolution::forward(shape);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const cpu::ConvFinish finish{.bias = biased ? floats(operands, at[2]) : nullptr,
                                     .least = function->least,
                                     .loop = function->step.loop,
                                     .params = function->step.params.data()};
        convolution.run(floats(operands, at[0]), floats(operands, at[1]), finish,
                        static_cast<float*>(results[0]), context.scratch);
      },
      convolution.scratch_bytes(), kName);
}

std::unique_ptr<Kernel> batch_input_grad(const KernelRequest& request,
                                         const cpu::ConvShape& shape) {
  if (request.operands[0].dtype != DType::kF32 || !BatchConvolution::suits_input_grad(shape))
    return nullptr;
  const auto convolution = BatchConvolution::input_grad(shape);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        convolution.run(floats(operands, 1), floats(operands, 0), {},
                        static_cast<float*>(results[0]), context.scratch);
      },
      convolution.scratch_bytes(), kName);
}

std::unique_ptr<Kernel> batch_weight_grad(const KernelRequest& request,
                                          const cpu::ConvShape& shape) {
  if (request.operands[0].dtype != DType::kF32 || !BatchWeightGrad::suits(shape)) return nullptr;
  const BatchWeightGrad gradient(shape);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        gradient.run(floats(operands, 0), floats(operands, 1), static_cast<float*>(results[0]),
                     context.scratch);
      },
      gradient.scratch_bytes(), kName);
}

}  // namespace paddle::onednn
