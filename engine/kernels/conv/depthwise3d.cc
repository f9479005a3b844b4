// Depthwise convolutions of volumes with channels last, plane by plane of the kernel: oneDNN has
// fast code for those of images alone. Each plane of the kernel adds to all planes of the output
// that it meets one of the input for.

#include <algorithm>

#include "kernels/conv/onednn_descriptors.h"
#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using cpu::ConvShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Forward = dnnl::convolution_forward;

/// Planes of the output, one behind the other, that meet the same planes of the kernel.
struct Run {
  int64_t first, count;
  cpu::KernelPlanes met;
};

std::vector<Run> runs_of(const ConvShape& s) {
  std::vector<Run> runs;
  for (int64_t p = 0; p < s.out_planes; ++p) {
    const cpu::KernelPlanes met = cpu::met_by(s, p);
    Run* const last = runs.empty() ? nullptr : &runs.back();
    // The planes of the input that a run reads lie one behind the other as well.
    if (last && s.stride_planes == 1 && last->met == met)
      ++last->count;
    else
      runs.push_back({p, 1, met});
  }
  return runs;
}

/// One plane of the kernel with so many planes of volumes as images.
ConvShape plane_of(ConvShape s, int64_t images) {
  s.batch = images;
  s.planes = s.out_planes = s.kernel_planes = s.stride_planes = s.dilation_planes = 1;
  s.front = s.back = 0;
  return s;
}

}  // namespace

std::unique_ptr<Kernel> convolution_by_planes(const KernelRequest& request, const ConvShape& s,
                                              const OperandPlaces& at, const Epilogue& epilogue) {
  const bool depthwise = s.groups == s.in_channels && s.groups == s.out_channels;
  // In 16 bits the sums on the way would be rounded.
  if (request.operands[0].dtype != DType::kF32 || !s.channels_last || !depthwise ||
      s.kernel_planes == 1)
    return nullptr;
  const std::vector<Run> runs = runs_of(s);
  if (std::any_of(runs.begin(), runs.end(), [](const Run& r) { return r.met.count() == 0; }))
    return nullptr;
  const auto type = dnnl::memory::data_type::f32;
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  const Desc bias({s.out_channels}, type, Tag::a);
  const auto describe = [&](const ConvGeometry& g, bool first, bool last) {
    const dnnl::primitive_attr attributes =
        epilogue.attributes(!first || epilogue.residual >= 0, last);
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto how = dnnl::algorithm::convolution_direct;
    const Desc weight = ConvGeometry::any(g.weight);
    const auto wanted = biased && first ? Forward::desc(kind, how, g.input, weight, bias, g.output,
                                                        g.strides, g.dilations, g.before, g.after)
                                        : Forward::desc(kind, how, g.input, weight, g.output,
                                                        g.strides, g.dilations, g.before, g.after);
    return g.describe(wanted, attributes);
  };
  const int64_t window = s.kernel_height * s.kernel_width;
  const Desc given({s.kernel_planes, s.groups, 1, 1, s.kernel_height, s.kernel_width}, type,
                   Dims{window, s.kernel_planes * window, window, window, s.kernel_width, 1});
  Slot weight{};
  Desc packed;  // of one plane of the kernel
  auto program = std::make_unique<Program>();
  epilogue.begin(*program, request.results[0]);
  for (const Run& run : runs) {
    const ConvGeometry g(plane_of(s, run.count), type, type, type);
    const size_t in_plane = g.input.get_size() / static_cast<size_t>(run.count);
    const size_t out_plane = g.output.get_size() / static_cast<size_t>(run.count);
    for (int64_t k = run.met.begin; k < run.met.end; ++k) {
      const auto description = describe(g, k == run.met.begin, k + 1 == run.met.end);
      if (!description || is_reference(description.impl_info_str())) return nullptr;
      if (packed == Desc()) {
        packed = description.weights_desc();
        if (packed.data.format_kind != dnnl_blocked) return nullptr;
        weight =
            program->convert_operand(request, 1, at[1], given, stacked(packed, s.kernel_planes));
        program->set_name(description.impl_info_str());
      }
      if (description.weights_desc() != packed) return nullptr;
      const Slot w{weight.kind, weight.index, static_cast<size_t>(k) * packed.get_size()};
      const int64_t met = run.first * s.stride_planes - s.front + k * s.dilation_planes;
      for (int64_t n = 0; n < s.batch; ++n) {
        const auto x = static_cast<size_t>(n * s.planes + met) * in_plane;
        const auto y = static_cast<size_t>(n * s.out_planes + run.first) * out_plane;
        std::vector<Program::Argument> arguments = {
            {DNNL_ARG_SRC, g.input, {Slot::kOperand, at[0], x}},
            {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
            {DNNL_ARG_DST, g.output, {Slot::kResult, 0, y}}};
        if (biased && k == run.met.begin)
          arguments.push_back({DNNL_ARG_BIAS, bias, {Slot::kOperand, at[2]}});
        program->add(Forward(description), description.scratchpad_desc(), arguments);
      }
    }
  }
  return program;
}

}  // namespace paddle::onednn
