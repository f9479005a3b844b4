// Winograd's convolution (kernels/conv/winograd.h) in the place of oneDNN's, with the same
// epilogues.

#include "kernels/conv/winograd.h"
#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using cpu::ConvFinish;
using cpu::Winograd;

class WinogradKernel final : public Kernel {
 public:
  WinogradKernel(Winograd convolution, size_t image, int bias, int residual, LoopFunction function)
      : convolution_(std::move(convolution)),
        image_(image),
        bias_(bias),
        residual_(residual),
        function_(std::move(function)) {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    const auto values = [&](int i) {
      return i < 0 ? nullptr : static_cast<const float*>(operands[static_cast<size_t>(i)]);
    };
    const ConvFinish finish{values(bias_), values(residual_), function_.least, function_.step.loop,
                            function_.step.params.data()};
    convolution_.run(static_cast<const float*>(operands[image_]), finish,
                     static_cast<float*>(results[0]), context.scratch);
  }
  size_t scratch_bytes() const override { return convolution_.scratch_bytes(); }
  bool reads(size_t i) const override {
    const auto place = static_cast<int>(i);
    return i == image_ || place == bias_ || place == residual_;
  }
  std::string implementation() const override {
    return str("cpu:winograd", convolution_.tile(), "x", convolution_.tile());
  }

 private:
  Winograd convolution_;
  size_t image_;
  int bias_, residual_;  ///< positions among the operands, or -1
  LoopFunction function_;
};

}  // namespace

std::unique_ptr<Kernel> winograd_convolution(const KernelRequest& request,
                                             const cpu::ConvShape& shape, const OperandPlaces& at,
                                             const Epilogue& epilogue) {
  const Layout &x = request.operands[0], &w = request.operands[1];
  if (!request.winograd || !w.constant || x.dtype != DType::kF32) return nullptr;
  const int64_t tile = Winograd::best_tile(shape, request.once);
  if (tile == 0) return nullptr;
  auto function = loop_function(epilogue.function, shape.out_channels);
  if (!function) return nullptr;
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  return std::make_unique<WinogradKernel>(Winograd(shape, tile, w.constant, request.once), at[0],
                                          biased ? static_cast<int>(at[2]) : -1, epilogue.residual,
                                          std::move(*function));
}

}  // namespace paddle::onednn
