// Convolutions of images whose windows are spread wide, tap by tap: a tap's share of the result is
// a matrix product of the pixels that it meets and its channels' weights. What falls on the padding
// is not computed, and that is much of it where the taps lie about as far apart as the image is
// wide; oneDNN computes such convolutions by copying all windows out.

#include <algorithm>

#include "kernels/conv/onednn_descriptors.h"
#include "kernels/onednn/post_ops.h"

namespace paddle::onednn {
namespace {

using cpu::ConvShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

/// Results of one axis, from `first` on, whose tap meets the image; and what the first one meets.
struct Reach {
  int64_t first, count, met;
};

/// For the tap `k` of an axis of `in` pixels and `out` results.
Reach reach_of(int64_t k, int64_t dilation, int64_t stride, int64_t padding, int64_t in,
               int64_t out) {
  const int64_t shift = k * dilation - padding;  // result o meets pixel o * stride + shift
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t end = in - 1 - shift < 0 ? 0 : std::min(out, (in - 1 - shift) / stride + 1);
  return {first, std::max<int64_t>(0, end - first), first * stride + shift};
}

struct Tap {
  int64_t index;  ///< in the window, by rows
  Reach rows, columns;
};

/// The taps that meet the image anywhere, one that meets it for every result first; empty if there
/// is none such.
std::vector<Tap> taps_of(const ConvShape& s) {
  std::vector<Tap> taps;
  const auto whole = [&](const Tap& t) {
    return t.rows.count == s.out_height && t.columns.count == s.out_width;
  };
  for (int64_t i = 0; i < s.kernel_height; ++i)
    for (int64_t j = 0; j < s.kernel_width; ++j) {
      const Tap tap{i * s.kernel_width + j,
                    reach_of(i, s.dilation_height, s.stride_height, s.top, s.height, s.out_height),
                    reach_of(j, s.dilation_width, s.stride_width, s.left, s.width, s.out_width)};
      if (tap.rows.count > 0 && tap.columns.count > 0) taps.push_back(tap);
    }
  const auto first = std::find_if(taps.begin(), taps.end(), whole);
  if (first == taps.end()) return {};
  std::iter_swap(taps.begin(), first);
  return taps;
}

/// The pixels [rows, columns, channels] that a tap reads or adds to, in an image of such lines.
Desc pixels(const Tap& tap, int64_t channels, int64_t width, int64_t stride_height,
            int64_t stride_width) {
  return Desc({tap.rows.count, tap.columns.count, channels}, dnnl::memory::data_type::f32,
              Dims{stride_height * width * channels, stride_width * channels, 1});
}

size_t pixel_offset(int64_t row, int64_t column, int64_t channels, int64_t width) {
  return static_cast<size_t>((row * width + column) * channels) * sizeof(float);
}

}  // namespace

std::unique_ptr<Kernel> convolution_by_taps(const KernelRequest& request, const ConvShape& s,
                                            const OperandPlaces& at, const Epilogue& epilogue) {
  if (request.operands[0].dtype != DType::kF32 || s.has_planes() || s.groups != 1) return nullptr;
  if (epilogue.residual >= 0 && !s.channels_last) return nullptr;
  const std::vector<Tap> taps = taps_of(s);
  if (taps.empty()) return nullptr;
  const auto type = dnnl::memory::data_type::f32;
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  const Desc bias({1, 1, s.out_channels}, type, Tag::abc);
  const ConvGeometry given(s, type, type, type);
  ConvShape lines = s;
  lines.channels_last = true;
  const ConvGeometry computed(lines, type, type, type);

  auto program = std::make_unique<Program>();
  const Slot x = program->convert({Slot::kOperand, at[0]}, given.input, computed.input);
  const Slot y = s.channels_last ? Slot{Slot::kResult, 0} : program->scratch(computed.output);
  const int64_t window = s.kernel_height * s.kernel_width;
  const Desc windows({window, 1, s.in_channels, s.out_channels}, type,
                     Dims{1, 1, window, s.in_channels * window});
  Slot weights{};
  Desc packed;  // of one tap
  epilogue.begin(*program, request.results[0]);
  for (const Tap& tap : taps) {
    const bool first = &tap == &taps.front();
    const Desc read = pixels(tap, s.in_channels, s.width, s.stride_height, s.stride_width);
    const Desc written = pixels(tap, s.out_channels, s.out_width, 1, 1);
    const Desc any({1, s.in_channels, s.out_channels}, type, Tag::any);
    const Desc& right = first ? any : packed;
    const dnnl::matmul::primitive_desc description(
        biased && first ? dnnl::matmul::desc(read, right, bias, written)
                        : dnnl::matmul::desc(read, right, written),
        epilogue.attributes(!first || epilogue.residual >= 0, false), cpu_engine(), true);
    if (!description || is_reference(description.impl_info_str())) return nullptr;
    if (first) {
      packed = description.weights_desc();
      if (packed.data.format_kind != dnnl_blocked) return nullptr;
      weights = program->convert_operand(request, 1, at[1], windows, stacked(packed, window));
      program->set_name(std::string("taps:") + description.impl_info_str());
    }
    const Slot w{weights.kind, weights.index,
                 weights.offset + static_cast<size_t>(tap.index) * packed.get_size()};
    for (int64_t n = 0; n < s.batch; ++n) {
      const size_t from = pixel_offset(n * s.height + tap.rows.met, tap.columns.met, s.in_channels,
                                       s.width),
                   to = pixel_offset(n * s.out_height + tap.rows.first, tap.columns.first,
                                     s.out_channels, s.out_width);
      std::vector<Program::Argument> arguments = {
          {DNNL_ARG_SRC, read, {x.kind, x.index, x.offset + from}},
          {DNNL_ARG_WEIGHTS, packed, w},
          {DNNL_ARG_DST, written, {y.kind, y.index, y.offset + to}}};
      if (biased && first) arguments.push_back({DNNL_ARG_BIAS, bias, {Slot::kOperand, at[2]}});
      program->add(dnnl::matmul(description), description.scratchpad_desc(), arguments);
    }
  }
  if (const Activation& a = epilogue.activation) {
    using Eltwise = dnnl::eltwise_forward;
    const Eltwise::primitive_desc description(
        Eltwise::desc(dnnl::prop_kind::forward_inference, a.algorithm, computed.output, a.alpha,
                      a.beta),
        user_scratch(), cpu_engine(), true);
    if (!description) return nullptr;
    program->add(Eltwise(description), description.scratchpad_desc(),
                 {{DNNL_ARG_SRC, computed.output, y}, {DNNL_ARG_DST, computed.output, y}});
  }
  if (!s.channels_last) program->reorder(y, computed.output, {Slot::kResult, 0}, given.output);
  return program;
}

}  // namespace paddle::onednn
