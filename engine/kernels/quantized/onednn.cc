// Quantized convolution and linear as oneDNN primitives: int32 accumulators, and requantization as
// post-ops. Values are kept in units of the grid that they are rounded to first, where scales are
// constant.

#include "kernels/quantized/onednn.h"

#include "base/thread_scope.h"
#include "kernels/common/constant.h"
#include "kernels/conv/onednn_descriptors.h"
#include "kernels/quantized/int16_gemm.h"
#include "kernels/quantized/onednn_requantize.h"
#include "ops/generated/quantization.h"

namespace paddle::onednn {
namespace {

constexpr int64_t kCachedResidualBytes = int64_t{1}
                                         << 20;  // of a residual that fits in the L2 cache

/// Depthwise 3-D kernels, for which oneDNN's int8 code is slower than its float code.
bool is_depthwise_3d(const Dims& weight) {
  return weight.size() == 5 && weight[1] == 1 && weight[2] > 1 && weight[3] * weight[4] > 1;
}

/// True if the primitives multiply activations of dtype `x` with these weights exactly, and faster
/// than float.
bool int8_is_exact(DType x, const Array& weight) {
  if (is_depthwise_3d(weight.shape)) return false;
  if (has_vnni()) return true;
  // Pairs of products in 16 bits: 2 * 255 * 64 is the largest that fits.
  if (!has_int8_simd() || x != DType::kU8) return false;
  const Array packed = weight.contiguous();
  const int8_t* const values = packed.data<int8_t>();
  return std::all_of(values, values + packed.size(), [](int8_t v) { return v >= -64 && v <= 64; });
}

/// True for what the processor multiplies exactly.
bool is_supported(const KernelRequest& request) {
  const Layout &x = request.operands[q::kX], &weight = request.operands[q::kWeight];
  if (x.size() == 0) return false;
  return has_vnni() || (weight.constant && int8_is_exact(x.dtype, cpu::constant_of(weight)));
}

/// The same layout with another dtype.
Desc with_type(Desc desc, Type type) {
  desc.data.data_type = dnnl::memory::convert_to_c(type);
  return desc;
}

}  // namespace

bool has_int8_kernel(const TargetInfo&, DType x, const Array& weight) {
  return cpu::int16_gemm_is_faster(weight) || int8_is_exact(x, weight);
}

std::unique_ptr<Kernel> prepare_quantized_conv(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!is_supported(request)) return nullptr;
  const QuantizedConvAttrs attrs(request.attrs);
  const Layout &image = request.operands[q::kX], &result = request.results[0];
  cpu::ConvShape s = fold_to_2d(cpu::ConvShape::of(
      request.op, request.attrs, image.shape, request.operands[q::kWeight].shape, result.shape));
  RequantizePostOps requantize(request, attrs.step_dtype, attrs.low, attrs.high);
  if (!requantize.read()) return nullptr;
  const ThreadScope threads(
      threads_for(s.batch * s.out_channels * s.positions() * s.window_size() / 4));

  auto program = std::make_unique<Program>();
  // A residual that does not fit in the cache is processed image by image.
  const Layout& residual = request.operands[q::kResidual];
  const bool split_batch =
      s.channels_last && residual.present && result.size() > kCachedResidualBytes;
  const int64_t pieces = split_batch ? s.batch : 1;
  s.batch /= pieces;
  const ConvDescriptors original(s, data_type(image.dtype), Type::s8, data_type(result.dtype));
  // int8 is computed in NHWC; NCHW tensors are reordered.
  s.channels_last = true;
  const ConvDescriptors nhwc(s, data_type(image.dtype), Type::s8, data_type(result.dtype));
  Dims channel_dims(original.output.dims().size(), 1);
  channel_dims[1] = s.out_channels;
  const dnnl::primitive_attr attributes = requantize.attributes(*program, 1 << 1, channel_dims);
  const Desc bias =
      requantize.has_int32_bias() ? Desc({s.out_channels}, Type::s32, Tag::a) : Desc();
  const Layout& int32_bias = request.operands[q::kBias];
  if (requantize.has_int32_bias() && int32_bias.size() != s.out_channels) return nullptr;
  using Forward = dnnl::convolution_forward;
  const auto description = nhwc.select_implementation(
      Forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                    nhwc.input, ConvDescriptors::any(nhwc.weight), bias, nhwc.output, nhwc.strides,
                    nhwc.dilations, nhwc.padding_before, nhwc.padding_after),
      attributes);
  if (!description) return nullptr;

  const MemoryRef w = program->prepack_operand(request, q::kWeight, q::kWeight, original.weight,
                                               description.weights_desc());
  const bool direct = original.output == nhwc.output;
  const MemoryRef scratchpad = program->scratch(description.scratchpad_desc());
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const size_t in_bytes = original.input.get_size(), out_bytes = original.output.get_size();
    const auto at = static_cast<size_t>(piece);
    const MemoryRef x =
        program->convert({MemoryRef::kOperand, q::kX, at * in_bytes}, original.input, nhwc.input);
    const MemoryRef y =
        direct ? MemoryRef{MemoryRef::kResult, 0, at * out_bytes} : program->scratch(nhwc.output);
    std::vector<Program::Argument> arguments = requantize.arguments();
    arguments.insert(arguments.end(), {{DNNL_ARG_SRC, nhwc.input, x},
                                       {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
                                       {DNNL_ARG_DST, nhwc.output, y}});
    if (requantize.has_int32_bias())
      arguments.push_back({DNNL_ARG_BIAS, bias, {MemoryRef::kOperand, q::kBias}});
    if (direct)
      requantize.begin(*program, at * out_bytes, out_bytes);
    else if (residual.present)
      program->reorder({MemoryRef::kOperand, q::kResidual},
                       with_type(original.output, data_type(residual.dtype)), y,
                       with_type(nhwc.output, data_type(residual.dtype)));
    program->add(Forward(description), description.scratchpad_desc(), scratchpad, arguments);
    if (!direct) program->reorder(y, nhwc.output, {MemoryRef::kResult, 0}, original.output);
  }
  program->set_name(description.impl_info_str());
  return program;
}

std::unique_ptr<Kernel> prepare_quantized_linear(const KernelRequest& request) {
  if (request.results[0].size() == 0) return nothing_to_do();
  if (!is_supported(request)) return nullptr;
  const QuantizedLinearAttrs attrs(request.attrs);
  const Layout &left = request.operands[q::kX], &right = request.operands[q::kWeight];
  const Layout& result = request.results[0];
  const int64_t depth = right.shape[0], columns = right.shape[1], rows = left.size() / depth;
  RequantizePostOps requantize(request, attrs.step_dtype, attrs.low, attrs.high);
  if (!requantize.read()) return nullptr;
  const ThreadScope threads(threads_for(rows * columns * depth / 4));

  auto program = std::make_unique<Program>();
  const dnnl::primitive_attr attributes = requantize.attributes(*program, 1 << 1, {1, columns});
  const Desc x({rows, depth}, data_type(left.dtype), Tag::ab);
  const Desc weight({depth, columns}, Type::s8, Tag::ab);
  const Desc any_weight(weight.dims(), Type::s8, Tag::any);
  const Desc y({rows, columns}, data_type(result.dtype), Tag::ab);
  // One value for all columns would need a different descriptor.
  const Layout& bias_layout = request.operands[q::kBias];
  if (requantize.has_int32_bias() && bias_layout.size() != columns) return nullptr;
  const Desc bias = requantize.has_int32_bias() ? Desc({1, columns}, Type::s32, Tag::ab) : Desc();
  const dnnl::matmul::primitive_desc description(requantize.has_int32_bias()
                                                     ? dnnl::matmul::desc(x, any_weight, bias, y)
                                                     : dnnl::matmul::desc(x, any_weight, y),
                                                 attributes, cpu_engine(), true);
  // Some epilogues, such as a residual after a scale of the step, leave it only plain loops.
  if (!description || is_reference(description.impl_info_str())) return nullptr;

  const MemoryRef w =
      program->prepack_operand(request, q::kWeight, q::kWeight, weight, description.weights_desc());
  std::vector<Program::Argument> arguments = requantize.arguments();
  arguments.insert(arguments.end(), {{DNNL_ARG_SRC, x, {MemoryRef::kOperand, q::kX}},
                                     {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
                                     {DNNL_ARG_DST, y, {MemoryRef::kResult, 0}}});
  if (requantize.has_int32_bias())
    arguments.push_back({DNNL_ARG_BIAS, bias, {MemoryRef::kOperand, q::kBias}});
  requantize.begin(*program, 0, y.get_size());
  program->add(dnnl::matmul(description), description.scratchpad_desc(), arguments);
  program->set_name(description.impl_info_str());
  return program;
}

}  // namespace paddle::onednn
