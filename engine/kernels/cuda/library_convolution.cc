// Convolutions and their gradients by cuDNN.

#include <array>

#include "kernels/conv/conv_shape.h"
#include "kernels/cuda/conversions.h"
#include "kernels/cuda/convolution.h"
#include "kernels/cuda/dnn_graph.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/library_dnn.h"
#include "kernels/cuda/prepare.h"

namespace paddle::cuda {
namespace {

/// Which operands and results a convolution or gradient has for its three tensors.
struct Roles {
  DnnConvolution which;
  /// Of the weight, the input and the output: an operand, or -1 for the result.
  std::array<int, 3> operands;
};

std::optional<Roles> roles_of(std::string_view name) {
  if (name == "conv2d" || name == "conv3d") return Roles{DnnConvolution::kForward, {1, 0, -1}};
  if (name == "conv2d_input_grad") return Roles{DnnConvolution::kInputGrad, {0, -1, 1}};
  if (name == "conv2d_weight_grad") return Roles{DnnConvolution::kWeightGrad, {-1, 0, 1}};
  return std::nullopt;
}

/// The sizes of axes in the library's order, channels before them, and their strides.
struct View {
  Dims shape, strides;
};

View image_view(int64_t batch, int64_t channels, std::array<int64_t, 3> sizes, bool channels_last,
                bool is_3d) {
  const auto s = cpu::ImageStrides::of(channels, sizes[1], sizes[2], channels_last, sizes[0]);
  View out{{batch, channels}, {s.batch, s.channel}};
  if (is_3d) {
    out.shape.push_back(sizes[0]);
    out.strides.push_back(s.plane);
  }
  out.shape.insert(out.shape.end(), {sizes[1], sizes[2]});
  out.strides.insert(out.strides.end(), {s.row, s.column});
  return out;
}

DnnWindow window_of(const cpu::ConvShape& s, bool is_3d) {
  DnnWindow out;
  if (is_3d) out = {{s.front}, {s.back}, {s.stride_depth}, {s.dilation_depth}};
  out.before.insert(out.before.end(), {s.top, s.left});
  out.after.insert(out.after.end(), {s.bottom, s.right});
  out.strides.insert(out.strides.end(), {s.stride_height, s.stride_width});
  out.dilations.insert(out.dilations.end(), {s.dilation_height, s.dilation_width});
  return out;
}

/// Adds a bias per channel to the output, in place; null if no kernel can.
std::unique_ptr<Kernel> bias_kernel(const KernelRequest& request, const cpu::ConvShape& shape,
                                    const Layout& bias) {
  const Layout& out = request.results[0];
  Layout broadcast = bias;
  broadcast.shape.assign(out.shape.size(), 1);
  broadcast.strides.assign(out.shape.size(), 0);
  const size_t axis = shape.channels_last ? out.shape.size() - 1 : 1;
  broadcast.shape[axis] = shape.out_channels;
  broadcast.strides[axis] = 1;
  const std::array operands = {out, broadcast};
  const Attrs none;
  return prepare_single({.op = *find_op("add"),
                         .attrs = none,
                         .operands = operands,
                         .results = request.results,
                         .target = request.target,
                         .prepare = request.prepare});
}

std::unique_ptr<Kernel> own_convolution(const KernelRequest& request, DnnConvolution which) {
  switch (which) {
    case DnnConvolution::kForward:
      return prepare_conv(request);
    case DnnConvolution::kInputGrad:
      return prepare_conv_input_grad(request);
    case DnnConvolution::kWeightGrad:
      return prepare_conv_weight_grad(request);
  }
  return nullptr;
}

class DnnConvolutionKernel final : public Kernel {
 public:
  DnnConvolutionKernel(std::shared_ptr<const DnnPlan> plan, std::array<int, 3> operands,
                       bool adds_bias, std::unique_ptr<Kernel> bias, std::unique_ptr<Kernel> spare)
      : plan_(std::move(plan)),
        operands_(operands),
        adds_bias_(adds_bias),
        bias_(std::move(bias)),
        spare_(std::move(spare)) {}

  void run(const RunContext& context, void* const* operands, void* const* results) const override {
    std::array<const void*, 4> addresses{};
    for (size_t i = 0; i < operands_.size(); ++i)
      addresses[i] = operands_[i] < 0 ? results[0] : operands[operands_[i]];
    if (adds_bias_) addresses[3] = operands[2];
    if (!are_aligned(addresses, kDnnAlignment)) return spare_->run(context, operands, results);
    plan_->execute(context.stream, std::span(addresses).first(adds_bias_ ? 4 : 3), context.scratch);
    if (!bias_) return;
    void* const sum[] = {results[0], operands[2]};
    bias_->run(context, sum, results);
  }
  size_t scratch_bytes() const override {
    return std::max(plan_->workspace_bytes(), spare_->scratch_bytes());
  }
  std::string implementation() const override { return "cudnn:convolution"; }

 private:
  std::shared_ptr<const DnnPlan> plan_;
  std::array<int, 3> operands_;  ///< the weight, the input and the output; -1: the result
  bool adds_bias_;               ///< the plan does
  std::unique_ptr<Kernel> bias_, spare_;
};

}  // namespace

std::unique_ptr<Kernel> prepare_dnn_convolution(const KernelRequest& request) {
  const auto roles = roles_of(request.op.name());
  if (!roles || request.results[0].size() == 0) return nullptr;
  const auto layout = [&](size_t i) -> const Layout& {
    return roles->operands[i] < 0 ? request.results[0]
                                  : request.operands[static_cast<size_t>(roles->operands[i])];
  };
  const DType type = layout(0).dtype;
  const int dnn = dnn_type(type);
  if (dnn < 0) return nullptr;
  for (size_t i = 0; i < 3; ++i)
    if (!layout(i).present || layout(i).dtype != type || !layout(i).is_contiguous() ||
        layout(i).size() == 0)
      return nullptr;
  const auto shape = cpu::ConvShape::of(request.op, request.attrs, layout(1).shape, layout(0).shape,
                                        layout(2).shape);
  const bool is_3d = layout(0).shape.size() == 5;
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  if (biased && (request.operands[2].dtype != type || !request.operands[2].is_contiguous() ||
                 request.operands[2].size() != shape.out_channels))
    return nullptr;
  // Weights have channels before axes in any layout of images.
  const View weight =
      image_view(shape.out_channels, shape.group_in_channels(),
                 {shape.kernel_depth, shape.kernel_height, shape.kernel_width}, false, is_3d);
  const View x = image_view(shape.batch, shape.in_channels,
                            {shape.depth, shape.height, shape.width}, shape.channels_last, is_3d);
  const View y =
      image_view(shape.batch, shape.out_channels,
                 {shape.out_depth, shape.out_height, shape.out_width}, shape.channels_last, is_3d);
  DnnGraph graph;
  const int w = graph.tensor(dnn, weight.shape, weight.strides);
  const int input = graph.tensor(dnn, x.shape, x.strides);
  const int output = graph.tensor(dnn, y.shape, y.strides);
  // A bias is added before the result is rounded to 16 bits; in float32 a kernel of ours adds it.
  const bool adds_bias = biased && type != DType::kF32;
  if (adds_bias) {
    Dims ones(y.shape.size(), 1), strides(y.shape.size(), 1);
    ones[1] = shape.out_channels;
    strides[0] = shape.out_channels;
    const int bias = graph.tensor(dnn, ones, strides);
    const int sum = graph.between(CUDNN_DATA_FLOAT, y.shape, y.strides);
    graph.convolve(roles->which, window_of(shape, is_3d), w, input, sum);
    graph.apply(CUDNN_POINTWISE_ADD, sum, bias, output);
  } else {
    graph.convolve(roles->which, window_of(shape, is_3d), w, input, output);
  }
  const auto plan = graph.plan(request.target.device.index);
  if (!plan) return nullptr;
  auto spare = own_convolution(compiled_late(request), roles->which);
  if (!spare) return nullptr;
  std::unique_ptr<Kernel> bias;
  if (biased && !adds_bias) {
    bias = bias_kernel(request, shape, request.operands[2]);
    if (!bias) return nullptr;
  }
  return std::make_unique<DnnConvolutionKernel>(plan, roles->operands, adds_bias, std::move(bias),
                                                std::move(spare));
}

std::unique_ptr<Kernel> prepare_dnn(const KernelRequest& request) {
  if (!has_dnn(request.target.device.index)) return nullptr;
  if (request.op.name() == "attention") return prepare_dnn_attention(request);
  if (request.op.name() == "attention_grad") return prepare_dnn_attention_grad(request);
  return prepare_dnn_convolution(request);
}

std::unique_ptr<Kernel> prepare_dnn_group(const FusedRequest& request) {
  if (!has_dnn(request.target.device.index)) return nullptr;
  return prepare_conversions(request, prepare_dnn);
}

bool has_dnn_kernel(const Op& op, const TargetInfo& target, std::span<const DType> operands) {
  const bool is_attention = op.name() == "attention" || op.name() == "attention_grad";
  if (!is_attention && !roles_of(op.name())) return false;
  for (const DType type : operands)
    if (dnn_type(type) < 0) return false;
  return has_dnn(target.device.index);
}

}  // namespace paddle::cuda
