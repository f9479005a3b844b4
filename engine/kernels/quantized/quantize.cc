// Kernels of quantize and dequantize, which fusion groups can contain, and of quantize_dynamic.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/quantized/quantize_simd.h"

namespace paddle::cpu {
namespace {

constexpr int64_t kBlock = 16384;  // elements per task

/// As in ONNX's DynamicQuantizeLinear. The scale of all zeros is 1, as in ONNX Runtime, so that
/// dividing by it is defined.
struct DynamicQuantParams {
  float scale, zero_point;
  DynamicQuantParams(float low, float high) {
    scale = (high - low) / 255.0f;
    if (scale == 0) scale = 1.0f;
    zero_point = std::nearbyint(std::clamp((0.0f - low) / scale, 0.0f, 255.0f));
  }
};

}  // namespace

std::unique_ptr<Kernel> prepare_quantize(const KernelRequest& request) {
  const DType to = request.results[0].dtype;
  return elementwise(request, quantize_loop(to), {DType::kF32, DType::kF32, DType::kF32}, to, {},
                     3);
}

std::unique_ptr<Kernel> prepare_dequantize(const KernelRequest& request) {
  return elementwise(request, dequantize_loop(), {DType::kF32, DType::kF32, DType::kF32},
                     DType::kF32, {}, 2);
}

std::unique_ptr<Kernel> prepare_quantize_dynamic(const KernelRequest& request) {
  const int64_t size = request.operands[0].size(), blocks = (size + kBlock - 1) / kBlock;
  const Loop quantize = quantize_loop(DType::kU8);
  const auto range_bytes = static_cast<size_t>(blocks) * 2 * sizeof(float);
  return make_kernel(
      [=](const RunContext& context, void* const* operands, void* const* results) {
        const float* const x = static_cast<const float*>(operands[0]);
        float* const ranges = reinterpret_cast<float*>(context.scratch);
        parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b)
            min_max_with_zero(x + b * kBlock, std::min(kBlock, size - b * kBlock), ranges[2 * b],
                              ranges[2 * b + 1]);
        });
        float low = 0, high = 0;
        for (int64_t b = 0; b < blocks; ++b) {
          low = std::min(low, ranges[2 * b]);
          high = std::max(high, ranges[2 * b + 1]);
        }
        const DynamicQuantParams params(low, high);
        *static_cast<float*>(results[1]) = params.scale;
        *static_cast<uint8_t*>(results[2]) = static_cast<uint8_t>(params.zero_point);
        constexpr int64_t kRun = 512;
        float scales[kRun], zeros[kRun];
        std::fill_n(scales, kRun, params.scale);
        std::fill_n(zeros, kRun, params.zero_point);
        parallel_for(size, kBlock, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i += kRun) {
            const void* const in[] = {x + i, scales, zeros};
            quantize(in, static_cast<uint8_t*>(results[0]) + i, std::min(kRun, end - i), nullptr);
          }
        });
      },
      range_bytes);
}

}  // namespace paddle::cpu
