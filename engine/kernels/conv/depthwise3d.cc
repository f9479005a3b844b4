// Depthwise 3-D convolution in NDHWC as 2-D ones, plane by plane of the kernel: oneDNN has fast
// code for the depthwise case in 2-D only. Each plane of the kernel is added to all output planes
// for which it reads an input plane.

#include <algorithm>

#include "kernels/conv/algorithms.h"
#include "kernels/conv/onednn_descriptors.h"
#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using cpu::ConvShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Forward = dnnl::convolution_forward;

/// Consecutive output planes that read inputs with the same planes of the kernel.
struct PlaneRun {
  int64_t first, count;
  cpu::KernelRange kernel;
};

std::vector<PlaneRun> plane_runs(const ConvShape& s) {
  std::vector<PlaneRun> runs;
  for (int64_t p = 0; p < s.out_depth; ++p) {
    const cpu::KernelRange kernel = cpu::valid_kernel_range(s, p);
    PlaneRun* const last = runs.empty() ? nullptr : &runs.back();
    // Without stride the input planes of a run are consecutive as well.
    if (last && s.stride_depth == 1 && last->kernel == kernel)
      ++last->count;
    else
      runs.push_back({p, 1, kernel});
  }
  return runs;
}

/// The 2-D convolution of one kernel plane, with `planes` planes as the batch.
ConvShape slice_2d(ConvShape s, int64_t planes) {
  s.batch = planes;
  s.depth = s.out_depth = s.kernel_depth = s.stride_depth = s.dilation_depth = 1;
  s.front = s.back = 0;
  return s;
}

}  // namespace

double depthwise3d_speedup(const cpu::ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const bool is_depthwise = s.groups == s.in_channels && s.groups == s.out_channels;
  // Intermediate sums would be rounded in bf16.
  return problem.dtype() == DType::kF32 && s.channels_last && is_depthwise && s.kernel_depth != 1
             ? cpu::kPreferred
             : 0;
}

std::unique_ptr<Kernel> prepare_depthwise3d(const cpu::ConvProblem& problem) {
  const KernelRequest& request = problem.request;
  const ConvShape& s = problem.shape;
  const Epilogue& epilogue = problem.epilogue;
  const std::vector<PlaneRun> runs = plane_runs(s);
  if (std::any_of(runs.begin(), runs.end(),
                  [](const PlaneRun& r) { return r.kernel.count() == 0; }))
    return nullptr;
  const auto type = dnnl::memory::data_type::f32;
  const Desc bias({s.out_channels}, type, Tag::a);
  const auto describe = [&](const ConvDescriptors& d, bool first, bool last) {
    const dnnl::primitive_attr attributes =
        post_ops(epilogue, !first || epilogue.residual >= 0, last);
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const Desc weight = ConvDescriptors::any(d.weight);
    const auto desc = problem.has_bias() && first
                          ? Forward::desc(kind, algorithm, d.input, weight, bias, d.output,
                                          d.strides, d.dilations, d.padding_before, d.padding_after)
                          : Forward::desc(kind, algorithm, d.input, weight, d.output, d.strides,
                                          d.dilations, d.padding_before, d.padding_after);
    return d.select_implementation(desc, attributes);
  };
  const int64_t window = s.kernel_height * s.kernel_width;
  const Desc given({s.kernel_depth, s.groups, 1, 1, s.kernel_height, s.kernel_width}, type,
                   Dims{window, s.kernel_depth * window, window, window, s.kernel_width, 1});
  MemoryRef weight{};
  Desc packed;  // of one plane of the kernel
  auto program = std::make_unique<Program>();
  add_residual_copy(*program, epilogue, request.results[0]);
  for (const PlaneRun& run : runs) {
    const ConvDescriptors d(slice_2d(s, run.count), type, type, type);
    const size_t in_plane_bytes = d.input.get_size() / static_cast<size_t>(run.count);
    const size_t out_plane_bytes = d.output.get_size() / static_cast<size_t>(run.count);
    for (int64_t k = run.kernel.begin; k < run.kernel.end; ++k) {
      const auto description = describe(d, k == run.kernel.begin, k + 1 == run.kernel.end);
      if (!description || is_reference(description.impl_info_str())) return nullptr;
      if (packed == Desc()) {
        packed = description.weights_desc();
        if (packed.data.format_kind != dnnl_blocked) return nullptr;
        weight = program->prepack_operand(request, 1, problem.at[1], given,
                                          stack_descs(packed, s.kernel_depth));
        program->set_name(description.impl_info_str());
      }
      if (description.weights_desc() != packed) return nullptr;
      const MemoryRef w{weight.kind, weight.index, static_cast<size_t>(k) * packed.get_size()};
      const int64_t in_first = run.first * s.stride_depth - s.front + k * s.dilation_depth;
      for (int64_t n = 0; n < s.batch; ++n) {
        const auto x = static_cast<size_t>(n * s.depth + in_first) * in_plane_bytes;
        const auto y = static_cast<size_t>(n * s.out_depth + run.first) * out_plane_bytes;
        std::vector<Program::Argument> arguments = {
            {DNNL_ARG_SRC, d.input, {MemoryRef::kOperand, problem.at[0], x}},
            {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
            {DNNL_ARG_DST, d.output, {MemoryRef::kResult, 0, y}}};
        if (problem.has_bias() && k == run.kernel.begin)
          arguments.push_back({DNNL_ARG_BIAS, bias, {MemoryRef::kOperand, problem.at[2]}});
        program->add(Forward(description), description.scratchpad_desc(), arguments);
      }
    }
  }
  return program;
}

}  // namespace paddle::onednn
