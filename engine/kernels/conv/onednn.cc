// Convolutions and their gradients as oneDNN primitives, in f32 and bf16. NHWC tensors are used as
// they are. NCHW tensors are computed in NHWC where layout assignment of compiled functions would
// have chosen it, so that eager and compiled runs add in the same order; otherwise, and for
// weights, oneDNN chooses the layout. Operands and results are reordered where layouts differ.

#include <algorithm>
#include <string_view>

#include "base/thread_scope.h"
#include "kernels/conv/algorithms.h"
#include "kernels/conv/onednn_descriptors.h"
#include "kernels/elementwise/loops.h"
#include "kernels/onednn/post_ops.h"
#include "ops/core/data_format.h"

namespace paddle::onednn {
namespace {

using cpu::ConvProblem;
using cpu::ConvShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

/// True for NCHW tensors that are computed in NHWC. Layout assignment moves tensors with many
/// channels, and those with some channels next to them; a kernel does not see its neighbors, so
/// this guesses. Convolutions with five to seven input channels stay in NCHW, because LeNet, whose
/// tensors are never moved, is a tenth faster that way. So do grouped and 3-D convolutions.
bool prefers_nhwc(const ConvShape& s, const ImageLayout& images) {
  if (s.is_3d() || s.groups != 1 || cpu::vector_bytes() < 32 || images.channels_last == 0)
    return false;
  if (std::max(s.in_channels, s.out_channels) >= images.channels_last) return true;
  return s.out_channels >= images.also_channels_last &&
         (s.in_channels >= images.also_channels_last || s.in_channels <= 4);
}

/// True for oneDNN's implementation that gathers all windows into a matrix first.
bool uses_im2col(std::string_view implementation) {
  return implementation.find("gemm") != std::string_view::npos;
}

struct Descriptors : ConvDescriptors {
  Descriptors(const ConvShape& s, DType dtype, const ImageLayout& images)
      : ConvDescriptors(transpose_to_row(s), data_type(dtype), data_type(dtype), data_type(dtype)),
        is_nhwc(s.channels_last),
        use_nhwc(prefers_nhwc(s, images)) {}

  /// The layout in which an input or output is computed; `any` lets oneDNN choose.
  Desc computed(const Desc& desc) const {
    if (is_nhwc) return desc;
    return use_nhwc ? Desc(desc.dims(), desc.data_type(), Tag::nhwc) : any(desc);
  }

  dnnl::convolution_forward::primitive_desc forward(
      const Desc* bias, const dnnl::primitive_attr& attributes = user_scratchpad()) const {
    using Forward = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const auto desc =
        bias ? Forward::desc(kind, algorithm, computed(input), any(weight), *bias, computed(output),
                             strides, dilations, padding_before, padding_after)
             : Forward::desc(kind, algorithm, computed(input), any(weight), computed(output),
                             strides, dilations, padding_before, padding_after);
    return select_implementation(desc, attributes);
  }

  bool is_nhwc;   ///< the tensors are NHWC
  bool use_nhwc;  ///< NCHW tensors are computed in NHWC
};

/// An argument of a primitive in the layout that the primitive chose.
struct PrimitiveMemory {
  int argument;
  Desc desc;
};

/// Prepares one of the two gradients from operand 0 (the weight or the input) and operand 1 (the
/// gradient of the output). The two pointers to members name the descriptors of operand 0 and of
/// the result, the two functions the primitive's arguments for them.
template <class Backward>
std::unique_ptr<Kernel> prepare_gradient(
    const ConvProblem& problem, Desc ConvDescriptors::*operand_desc,
    Desc ConvDescriptors::*result_desc,
    PrimitiveMemory (*operand_memory)(const typename Backward::primitive_desc&),
    PrimitiveMemory (*result_memory)(const typename Backward::primitive_desc&)) {
  const Descriptors d(problem.shape, problem.dtype(), problem.request.target.images);
  const auto forward = d.forward(nullptr);
  if (!forward) return nullptr;
  const typename Backward::primitive_desc description(
      typename Backward::desc(dnnl::algorithm::convolution_direct, d.computed(d.input),
                              Descriptors::any(d.weight), d.computed(d.output), d.strides,
                              d.dilations, d.padding_before, d.padding_after),
      user_scratchpad(), cpu_engine(), forward, true);
  if (!description || is_reference(description.impl_info_str())) return nullptr;

  const PrimitiveMemory from = operand_memory(description), to = result_memory(description);
  auto program = std::make_unique<Program>();
  const MemoryRef x = program->convert({MemoryRef::kOperand, 0}, d.*operand_desc, from.desc);
  const MemoryRef dy =
      program->convert({MemoryRef::kOperand, 1}, d.output, description.diff_dst_desc());
  const bool direct = to.desc == d.*result_desc;
  const MemoryRef out = direct ? MemoryRef{MemoryRef::kResult, 0} : program->scratch(to.desc);
  program->add(Backward(description), description.scratchpad_desc(),
               {{from.argument, from.desc, x},
                {DNNL_ARG_DIFF_DST, description.diff_dst_desc(), dy},
                {to.argument, to.desc, out}});
  if (!direct) program->reorder(out, to.desc, {MemoryRef::kResult, 0}, d.*result_desc);
  program->set_name(description.impl_info_str());
  return program;
}

/// True for a convolution whose outputs are products of a pixel's channels with the weight.
bool is_pointwise(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  return problem.dtype() == DType::kF32 && s.groups == 1 && !s.is_3d() && s.kernel_height == 1 &&
         s.kernel_width == 1 && s.stride_height == 1 && s.stride_width == 1 &&
         s.top + s.bottom + s.left + s.right == 0;
}
/// In NHWC this is a matmul over pixels: [pixels, channels].
bool is_pixel_matmul(const ConvProblem& problem) {
  return problem.shape.channels_last && is_pointwise(problem);
}

/// result = left × right; slightly faster than oneDNN's convolution gradients.
std::unique_ptr<Kernel> prepare_matmul(const Desc& left, MemoryRef left_ref, const Desc& right,
                                       MemoryRef right_ref, const Desc& result) {
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(left, right, result),
                                                 user_scratchpad(), cpu_engine(), true);
  if (!description || is_reference(description.impl_info_str())) return nullptr;
  auto program = std::make_unique<Program>();
  program->add(dnnl::matmul(description), description.scratchpad_desc(),
               {{DNNL_ARG_SRC, left, left_ref},
                {DNNL_ARG_WEIGHTS, right, right_ref},
                {DNNL_ARG_DST, result, {MemoryRef::kResult, 0}}});
  program->set_name(description.impl_info_str());
  return program;
}

Desc matrix(int64_t rows, int64_t columns, Tag tag) {
  return Desc({rows, columns}, dnnl::memory::data_type::f32, tag);
}

}  // namespace

bool supports_convolution(const ConvProblem& problem) {
  const KernelRequest& request = problem.request;
  const ConvShape& s = problem.shape;
  const DType dtype = problem.dtype();
  if (!supports(dtype) || request.results[0].dtype != dtype || request.operands[1].dtype != dtype)
    return false;
  return s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && s.positions() > 0 &&
         s.depth > 0 && s.height > 0 && s.width > 0;
}

double onednn_speedup(const ConvProblem&) { return 1; }

/// Images in NCHW are matrices [channels, pixels] that the weight is multiplied with: no operand is
/// reordered, which takes a tenth of the time of a convolution. Each result is the same sum over
/// the channels in the same order. Measured on Zen 4 (docs/performance/kernel_choices.md).
double pointwise_speedup(const ConvProblem& problem) {
  constexpr int64_t kMinPixels = 128, kMinChannels = 64;
  const ConvShape& s = problem.shape;
  const bool fits = !s.channels_last && is_pointwise(problem) && !problem.has_bias() &&
                    problem.epilogue.residual < 0 && cpu::vector_bytes() == 64;
  return fits && s.positions() >= kMinPixels &&
                 std::min(s.in_channels, s.out_channels) >= kMinChannels
             ? 1.15
             : 0;
}

std::unique_ptr<Kernel> prepare_pointwise(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const ThreadScope threads(threads_for(s.multiplications()));
  const auto matrices = [](int64_t count, int64_t rows, int64_t columns) {
    return Desc({count, rows, columns}, dnnl::memory::data_type::f32, Tag::abc);
  };
  const Desc weight = matrices(1, s.out_channels, s.in_channels),
             x = matrices(s.batch, s.in_channels, s.positions()),
             y = matrices(s.batch, s.out_channels, s.positions());
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(weight, x, y),
                                                 post_ops(problem.epilogue), cpu_engine(), true);
  if (!description || !std::string_view(description.impl_info_str()).starts_with("brg"))
    return nullptr;
  auto program = std::make_unique<Program>();
  program->add(dnnl::matmul(description), description.scratchpad_desc(),
               {{DNNL_ARG_SRC, weight, {MemoryRef::kOperand, problem.at[1]}},
                {DNNL_ARG_WEIGHTS, x, {MemoryRef::kOperand, problem.at[0]}},
                {DNNL_ARG_DST, y, {MemoryRef::kResult, 0}}});
  program->set_name(description.impl_info_str());
  return program;
}

std::unique_ptr<Kernel> prepare_convolution(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const KernelRequest& request = problem.request;
  const ThreadScope threads(
      threads_for(s.batch * s.out_channels * s.positions() * s.window_size()));
  const Descriptors d(s, problem.dtype(), problem.request.target.images);
  const Desc bias({s.out_channels}, d.input.data_type(), Tag::a);
  const auto description =
      d.forward(problem.has_bias() ? &bias : nullptr, post_ops(problem.epilogue));
  if (!description || is_reference(description.impl_info_str())) return nullptr;
  if (uses_im2col(description.impl_info_str()))
    if (auto kernel = prepare_dilated(problem)) return kernel;
  const bool direct = description.dst_desc() == d.output;
  if (problem.epilogue.residual >= 0 && !direct) return nullptr;

  auto program = std::make_unique<Program>();
  const MemoryRef x =
      program->convert({MemoryRef::kOperand, problem.at[0]}, d.input, description.src_desc());
  const MemoryRef w =
      program->prepack_operand(request, 1, problem.at[1], d.weight, description.weights_desc());
  const MemoryRef y =
      direct ? MemoryRef{MemoryRef::kResult, 0} : program->scratch(description.dst_desc());
  std::vector<Program::Argument> arguments = {{DNNL_ARG_SRC, description.src_desc(), x},
                                              {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
                                              {DNNL_ARG_DST, description.dst_desc(), y}};
  if (problem.has_bias())
    arguments.push_back({DNNL_ARG_BIAS, bias, {MemoryRef::kOperand, problem.at[2]}});
  add_residual_copy(*program, problem.epilogue, request.results[0]);
  program->add(dnnl::convolution_forward(description), description.scratchpad_desc(), arguments);
  if (!direct) program->reorder(y, description.dst_desc(), {MemoryRef::kResult, 0}, d.output);
  program->set_name(description.impl_info_str());
  return program;
}

std::unique_ptr<Kernel> prepare_convolution_input_grad(const ConvProblem& problem) {
  using Backward = dnnl::convolution_backward_data;
  using Description = Backward::primitive_desc;
  return prepare_gradient<Backward>(
      problem, &ConvDescriptors::weight, &ConvDescriptors::input,
      [](const Description& d) {
        return PrimitiveMemory{DNNL_ARG_WEIGHTS, d.weights_desc()};
      },
      [](const Description& d) {
        return PrimitiveMemory{DNNL_ARG_DIFF_SRC, d.diff_src_desc()};
      });
}

std::unique_ptr<Kernel> prepare_convolution_weight_grad(const ConvProblem& problem) {
  using Backward = dnnl::convolution_backward_weights;
  using Description = Backward::primitive_desc;
  return prepare_gradient<Backward>(
      problem, &ConvDescriptors::input, &ConvDescriptors::weight,
      [](const Description& d) {
        return PrimitiveMemory{DNNL_ARG_SRC, d.src_desc()};
      },
      [](const Description& d) {
        return PrimitiveMemory{DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc()};
      });
}

double pointwise_input_grad_speedup(const ConvProblem& problem) {
  return is_pixel_matmul(problem) ? cpu::kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_pointwise_input_grad(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const int64_t pixels = s.batch * s.height * s.width;
  return prepare_matmul(matrix(pixels, s.out_channels, Tag::ab), {MemoryRef::kOperand, 1},
                        matrix(s.out_channels, s.in_channels, Tag::ab), {MemoryRef::kOperand, 0},
                        matrix(pixels, s.in_channels, Tag::ab));
}

double pointwise_weight_grad_speedup(const ConvProblem& problem) {
  return is_pixel_matmul(problem) && 2 * problem.shape.out_channels >= problem.shape.in_channels
             ? cpu::kPreferred
             : 0;
}

std::unique_ptr<Kernel> prepare_pointwise_weight_grad(const ConvProblem& problem) {
  const ConvShape& s = problem.shape;
  const int64_t pixels = s.batch * s.height * s.width;
  return prepare_matmul(matrix(s.out_channels, pixels, Tag::ba), {MemoryRef::kOperand, 1},
                        matrix(pixels, s.in_channels, Tag::ab), {MemoryRef::kOperand, 0},
                        matrix(s.out_channels, s.in_channels, Tag::ab));
}

}  // namespace paddle::onednn
