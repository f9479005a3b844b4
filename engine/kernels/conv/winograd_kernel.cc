// The kernel around Winograd convolution (winograd.h) with constant weights.

#include "kernels/conv/algorithms.h"
#include "kernels/conv/winograd.h"

namespace paddle::cpu {
namespace {

class WinogradKernel final : public Kernel {
 public:
  WinogradKernel(const ConvProblem& problem, Winograd convolution, ActivationLoop activation)
      : convolution_(std::move(convolution)),
        input_(problem.at[0]),
        bias_(problem.has_bias() ? static_cast<int>(problem.at[2]) : -1),
        residual_(problem.epilogue.residual),
        activation_(std::move(activation)) {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const auto values = [&](int i) {
      return i < 0 ? nullptr : static_cast<const float*>(operands[static_cast<size_t>(i)]);
    };
    const BoundEpilogue epilogue{values(bias_), values(residual_), activation_.clamp_min,
                                 activation_.step.loop, activation_.step.params.data()};
    convolution_.run(static_cast<const float*>(operands[input_]), epilogue,
                     static_cast<float*>(results[0]), context.scratch);
  }
  size_t scratch_bytes() const override { return convolution_.scratch_bytes(); }
  bool reads(size_t i) const override {
    const auto index = static_cast<int>(i);
    return i == input_ || index == bias_ || index == residual_;
  }
  std::string implementation() const override {
    return str("cpu:winograd", convolution_.tile(), "x", convolution_.tile());
  }

 private:
  Winograd convolution_;
  size_t input_;
  int bias_, residual_;  ///< operand indices, or -1
  ActivationLoop activation_;
};

/// 0 where the direct sum is faster or Winograd is not allowed.
int64_t tile_of(const ConvProblem& problem) {
  const PrepareOptions& prepare = problem.request.prepare;
  if (!prepare.allow_winograd || !problem.request.operands[1].constant ||
      problem.dtype() != DType::kF32)
    return 0;
  return Winograd::best_tile(problem.shape, prepare.skip_prepack);
}

}  // namespace

double winograd_speedup(const ConvProblem& problem) {
  return tile_of(problem) > 0 ? kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_winograd(const ConvProblem& problem) {
  auto activation = activation_loop(problem.epilogue.activation, problem.shape.out_channels);
  if (!activation) return nullptr;
  Winograd convolution(problem.shape, tile_of(problem), problem.request.operands[1].constant,
                       problem.request.prepare.skip_prepack);
  return std::make_unique<WinogradKernel>(problem, std::move(convolution), std::move(*activation));
}

}  // namespace paddle::cpu
