#include "kernels/epilogue.h"

namespace paddle::cpu {

std::optional<ActivationLoop> activation_loop(const FusedStep* activation, int64_t channels) {
  ActivationLoop out;
  if (!activation) return out;
  if (activation->op->name() == "relu") {
    out.clamp_min = 0;
    return out;
  }
  const Layout pixel = Layout::contiguous(DType::kF32, {channels});
  const auto kernel = prepare_kernel(
      {*activation->op, activation->attrs, std::span(&pixel, 1), std::span(&pixel, 1)});
  auto step = kernel ? elementwise_step(*kernel) : std::nullopt;
  if (!step || step->operands != std::vector{DType::kF32} || step->result != DType::kF32)
    return std::nullopt;
  out.step = std::move(*step);
  return out;
}

}  // namespace paddle::cpu
