#pragma once
// Epilogues as oneDNN's post-operations, and the kernels that take them. For the .cc files of this
// folder only.

#include <array>
#include <limits>
#include <optional>

#include "kernels/conv/conv_shape.h"
#include "kernels/elementwise/map_step.h"
#include "kernels/onednn/program.h"
#include "ops/fused.h"

namespace paddle::onednn {

/// Positions of a computation's input, weight and bias among a kernel's operands.
using OperandPlaces = std::array<size_t, 3>;

/// A function of each element, with its parameters as oneDNN calls them.
struct Activation {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
  explicit operator bool() const { return algorithm != dnnl::algorithm::undef; }
};

struct Epilogue {
  int residual = -1;  ///< position of the operand that is added, or -1
  Activation activation;
  const FusedStep* function = nullptr;  ///< the activation as an operation

  /// Of the one primitive that computes all.
  dnnl::primitive_attr attributes() const { return attributes(residual >= 0, true); }
  /// Of one of several that add up in the result: if it adds to what is there, and if it is the
  /// last, which the activation follows.
  dnnl::primitive_attr attributes(bool adds, bool last) const;
  /// Appends what must happen before the primitive: the sum is taken in the result's memory.
  void begin(Program& program, const Layout& result) const;
};

/// An activation in f32 as a bound from below, or as a loop over the results.
struct LoopFunction {
  float least = -std::numeric_limits<float>::infinity();
  cpu::MapStep step;
};
/// None if there is no loop for it; `activation` may be null.
std::optional<LoopFunction> loop_function(const FusedStep* activation, int64_t channels);

/// conv2d, conv3d, matmul and linear, of operands at these places; null where they are not for
/// oneDNN.
std::unique_ptr<Kernel> convolution(const KernelRequest& request, const OperandPlaces& at,
                                    const Epilogue& epilogue);
/// conv2d with fewer multiplications; null where that is not wanted, or no faster.
std::unique_ptr<Kernel> winograd_convolution(const KernelRequest& request,
                                             const cpu::ConvShape& shape, const OperandPlaces& at,
                                             const Epilogue& epilogue);
/// Convolutions with few channels by vectors of images or pixels (kernels/conv/chwn.h,
/// row_conv.h), and their gradients for the input and the weight; null where they cannot be
/// computed so, or no faster.
std::unique_ptr<Kernel> narrow_convolution(const KernelRequest& request,
                                           const cpu::ConvShape& shape, const OperandPlaces& at,
                                           const Epilogue& epilogue);
std::unique_ptr<Kernel> narrow_input_grad(const KernelRequest& request,
                                          const cpu::ConvShape& shape);
std::unique_ptr<Kernel> narrow_weight_grad(const KernelRequest& request,
                                           const cpu::ConvShape& shape);
/// Depthwise conv3d, plane by plane of the kernel; null for others.
std::unique_ptr<Kernel> convolution_by_planes(const KernelRequest& request,
                                              const cpu::ConvShape& shape, const OperandPlaces& at,
                                              const Epilogue& epilogue);
/// conv2d in float32, tap by tap of the kernel; null where it cannot be computed so.
std::unique_ptr<Kernel> convolution_by_taps(const KernelRequest& request,
                                            const cpu::ConvShape& shape, const OperandPlaces& at,
                                            const Epilogue& epilogue);
std::unique_ptr<Kernel> matrix_product(const KernelRequest& request, const OperandPlaces& at,
                                       const Epilogue& epilogue);
std::unique_ptr<Kernel> linear_layer(const KernelRequest& request, const OperandPlaces& at,
                                     const Epilogue& epilogue);

}  // namespace paddle::onednn
