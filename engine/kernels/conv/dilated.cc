// Dilated convolution as one GEMM per kernel offset: the input pixels that an offset reads, times
// its weights, added to the output pixels that read them. Offsets skip output pixels where they
// fall on padding, which is much of the work where the dilation is close to the size of the image.
// oneDNN falls back to im2col for such convolutions.

#include <algorithm>

#include "kernels/conv/algorithms.h"
#include "kernels/conv/onednn_descriptors.h"
#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using cpu::ConvShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

/// Outputs of one axis for which a kernel offset falls inside the input: [first, first + count).
/// The first of them reads `input_start`.
struct ValidRange {
  int64_t first, count, input_start;
};

/// For kernel element `k` of an axis with `in` inputs and `out` outputs.
ValidRange valid_range(int64_t k, int64_t dilation, int64_t stride, int64_t padding, int64_t in,
                       int64_t out) {
  const int64_t shift = k * dilation - padding;  // output o reads input o * stride + shift
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t end = in - 1 - shift < 0 ? 0 : std::min(out, (in - 1 - shift) / stride + 1);
  return {first, std::max<int64_t>(0, end - first), first * stride + shift};
}

struct KernelOffset {
  int64_t index;  ///< in the kernel, row-major
  ValidRange rows, columns;
};

/// The offsets that read any input. The first one reads an input for every output, because it
/// initializes the result; empty if there is none like that.
std::vector<KernelOffset> valid_kernel_offsets(const ConvShape& s) {
  std::vector<KernelOffset> offsets;
  for (int64_t i = 0; i < s.kernel_height; ++i)
    for (int64_t j = 0; j < s.kernel_width; ++j) {
      const KernelOffset offset{
          i * s.kernel_width + j,
          valid_range(i, s.dilation_height, s.stride_height, s.top, s.height, s.out_height),
          valid_range(j, s.dilation_width, s.stride_width, s.left, s.width, s.out_width)};
      if (offset.rows.count > 0 && offset.columns.count > 0) offsets.push_back(offset);
    }
  const auto first = std::find_if(offsets.begin(), offsets.end(), [&](const KernelOffset& o) {
    return o.rows.count == s.out_height && o.columns.count == s.out_width;
  });
  if (first == offsets.end()) return {};
  std::iter_swap(offsets.begin(), first);
  return offsets;
}

/// The pixels [rows, columns, channels] that an offset reads or adds to, in an NHWC image.
Desc pixel_desc(const KernelOffset& offset, int64_t channels, int64_t width, int64_t stride_height,
                int64_t stride_width) {
  return Desc({offset.rows.count, offset.columns.count, channels}, dnnl::memory::data_type::f32,
              Dims{stride_height * width * channels, stride_width * channels, 1});
}

size_t pixel_offset(int64_t row, int64_t column, int64_t channels, int64_t width) {
  return static_cast<size_t>((row * width + column) * channels) * sizeof(float);
}

}  // namespace

std::unique_ptr<Kernel> prepare_dilated(const cpu::ConvProblem& problem) {
  const KernelRequest& request = problem.request;
  const Epilogue& epilogue = problem.epilogue;
  const ConvShape s = transpose_to_row(problem.shape);
  if (problem.dtype() != DType::kF32 || s.is_3d() || s.groups != 1) return nullptr;
  if (epilogue.residual >= 0 && !s.channels_last) return nullptr;
  const std::vector<KernelOffset> offsets = valid_kernel_offsets(s);
  if (offsets.empty()) return nullptr;
  const auto type = dnnl::memory::data_type::f32;
  const Desc bias({1, 1, s.out_channels}, type, Tag::abc);
  const ConvDescriptors given(s, type, type, type);
  ConvShape nhwc = s;
  nhwc.channels_last = true;
  const ConvDescriptors computed(nhwc, type, type, type);

  auto program = std::make_unique<Program>();
  const MemoryRef x =
      program->convert({MemoryRef::kOperand, problem.at[0]}, given.input, computed.input);
  const MemoryRef y =
      s.channels_last ? MemoryRef{MemoryRef::kResult, 0} : program->scratch(computed.output);
  const int64_t window = s.kernel_height * s.kernel_width;
  const Desc weight_matrices({window, 1, s.in_channels, s.out_channels}, type,
                             Dims{1, 1, window, s.in_channels * window});
  MemoryRef weights{};
  Desc packed;  // of one offset
  add_residual_copy(*program, epilogue, request.results[0]);
  for (const KernelOffset& offset : offsets) {
    const bool first = &offset == &offsets.front();
    const bool adds_bias = first && problem.has_bias();
    const Desc read = pixel_desc(offset, s.in_channels, s.width, s.stride_height, s.stride_width);
    const Desc written = pixel_desc(offset, s.out_channels, s.out_width, 1, 1);
    const Desc any({1, s.in_channels, s.out_channels}, type, Tag::any);
    const Desc& right = first ? any : packed;
    const dnnl::matmul::primitive_desc description(
        adds_bias ? dnnl::matmul::desc(read, right, bias, written)
                  : dnnl::matmul::desc(read, right, written),
        post_ops(epilogue, !first || epilogue.residual >= 0, false), cpu_engine(), true);
    if (!description || is_reference(description.impl_info_str())) return nullptr;
    if (first) {
      packed = description.weights_desc();
      if (packed.data.format_kind != dnnl_blocked) return nullptr;
      weights = program->prepack_operand(request, 1, problem.at[1], weight_matrices,
                                         stack_descs(packed, window));
      program->set_name(std::string("dilated:") + description.impl_info_str());
    }
    const MemoryRef w{weights.kind, weights.index,
                      weights.offset + static_cast<size_t>(offset.index) * packed.get_size()};
    for (int64_t n = 0; n < s.batch; ++n) {
      const size_t from = pixel_offset(n * s.height + offset.rows.input_start,
                                       offset.columns.input_start, s.in_channels, s.width),
                   to = pixel_offset(n * s.out_height + offset.rows.first, offset.columns.first,
                                     s.out_channels, s.out_width);
      std::vector<Program::Argument> arguments = {
          {DNNL_ARG_SRC, read, {x.kind, x.index, x.offset + from}},
          {DNNL_ARG_WEIGHTS, packed, w},
          {DNNL_ARG_DST, written, {y.kind, y.index, y.offset + to}}};
      if (adds_bias)
        arguments.push_back({DNNL_ARG_BIAS, bias, {MemoryRef::kOperand, problem.at[2]}});
      program->add(dnnl::matmul(description), description.scratchpad_desc(), arguments);
    }
  }
  // Offsets cover different parts of the output, so the activation runs after the last one.
  if (const FusedStep* activation = epilogue.activation) {
    using Eltwise = dnnl::eltwise_forward;
    const EltwisePostOp a = eltwise_post_op(*activation->op, activation->attrs);
    const Eltwise::primitive_desc description(
        Eltwise::desc(dnnl::prop_kind::forward_inference, a.algorithm, computed.output, a.alpha,
                      a.beta),
        user_scratchpad(), cpu_engine(), true);
    if (!description) return nullptr;
    program->add(Eltwise(description), description.scratchpad_desc(),
                 {{DNNL_ARG_SRC, computed.output, y}, {DNNL_ARG_DST, computed.output, y}});
  }
  if (!s.channels_last) program->reorder(y, computed.output, {MemoryRef::kResult, 0}, given.output);
  return program;
}

}  // namespace paddle::onednn
