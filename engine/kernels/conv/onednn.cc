// Convolutions of images and volumes, and the two gradients of those of images, in f32 and bf16.
// Images with channels last are taken as they lie, and most others computed so where compiled
// functions would have moved them, so that both modes add up in the same order; for the rest, and
// for weights, oneDNN chooses the layouts it computes in. The operands are brought there, and the
// result back, where they differ. Where few channels would not fill its vectors, our own
// convolutions are taken.

#include <algorithm>
#include <string_view>

#include "base/serial_scope.h"
#include "kernels/common/upcast.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/conv/im2col_weight_grad.h"
#include "kernels/conv/onednn_descriptors.h"
#include "kernels/elementwise/loops.h"
#include "kernels/onednn/post_ops.h"
#include "ops/images.h"

namespace paddle::onednn {
namespace {

using cpu::ConvShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

/// Images one pixel wide, as one-dimensional convolutions come from some frameworks, are in memory
/// what images one pixel high are; oneDNN is several times faster on those.
ConvShape lying(ConvShape s) {
  if (s.width != 1 || s.kernel_width != 1 || s.out_width != 1 || s.left + s.right != 0) return s;
  std::swap(s.height, s.width);
  std::swap(s.out_height, s.out_width);
  std::swap(s.kernel_height, s.kernel_width);
  std::swap(s.stride_height, s.stride_width);
  std::swap(s.dilation_height, s.dilation_width);
  std::swap(s.top, s.left);
  std::swap(s.bottom, s.right);
  return s;
}

/// True for images that are computed with channels last wherever they lie. Compiled functions move
/// those with many channels, and those with some where others have many, which is not to be seen
/// here: of these the ones with five to seven channels before them are left out, since LeNet, whose
/// images stay where they are, is a tenth faster so. So are groups and volumes.
bool prefers_channels_last(const ConvShape& s) {
  if (s.has_planes() || s.groups != 1 || cpu::vector_bytes() < 32) return false;
  if (std::max(s.in_channels, s.out_channels) >= kManyChannels) return true;
  return s.out_channels >= kSomeChannels && (s.in_channels >= kSomeChannels || s.in_channels <= 4);
}

/// True for the code that lays all windows out as the rows of a matrix first.
bool copies_windows(std::string_view implementation) {
  return implementation.find("gemm") != std::string_view::npos;
}

struct Geometry : ConvGeometry {
  Geometry(const ConvShape& s, DType dtype)
      : ConvGeometry(lying(s), data_type(dtype), data_type(dtype), data_type(dtype)),
        fixed(s.channels_last),
        last(prefers_channels_last(s)) {}
  Desc image(const Desc& desc) const {
    if (fixed) return desc;
    return last ? Desc(desc.dims(), desc.data_type(), Tag::nhwc) : any(desc);
  }

  dnnl::convolution_forward::primitive_desc forward(
      const Desc* bias, const dnnl::primitive_attr& attributes = user_scratch()) const {
    using Forward = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_training;
    const auto how = dnnl::algorithm::convolution_direct;
    const auto wanted = bias ? Forward::desc(kind, how, image(input), any(weight), *bias,
                                             image(output), strides, dilations, before, after)
                             : Forward::desc(kind, how, image(input), any(weight), image(output),
                                             strides, dilations, before, after);
    return describe(wanted, attributes);
  }

  bool fixed;  ///< the layouts of images are not oneDNN's to choose
  bool last;   ///< nor where images with channels first are computed with channels last
};

bool computes(const KernelRequest& request, const ConvShape& s) {
  const DType dtype = request.operands[0].dtype;
  if (!supports(dtype) || request.results[0].dtype != dtype || request.operands[1].dtype != dtype)
    return false;
  return s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && s.positions() > 0 &&
         s.planes > 0 && s.height > 0 && s.width > 0;
}

/// A memory of a primitive: the argument that it is, in the layout that the primitive chose.
struct Side {
  int argument;
  Desc desc;
};

/// Prepares one of the two gradients, from operand 0 (`given`) and the gradient of the output,
/// operand 1.
template <class Backward>
std::unique_ptr<Kernel> prepare_gradient(
    const KernelRequest& request, const ConvShape& s, Desc ConvGeometry::*given,
    Desc ConvGeometry::*wanted, Side (*given_side)(const typename Backward::primitive_desc&),
    Side (*wanted_side)(const typename Backward::primitive_desc&)) {
  if (!computes(request, s)) return nullptr;
  const Geometry g(s, request.operands[0].dtype);
  const auto forward = g.forward(nullptr);
  if (!forward) return nullptr;
  const typename Backward::primitive_desc description(
      typename Backward::desc(dnnl::algorithm::convolution_direct, g.image(g.input),
                              Geometry::any(g.weight), g.image(g.output), g.strides, g.dilations,
                              g.before, g.after),
      user_scratch(), cpu_engine(), forward, true);
  if (!description || is_reference(description.impl_info_str())) return nullptr;

  const Side from = given_side(description), to = wanted_side(description);
  auto program = std::make_unique<Program>();
  const Slot x = program->convert({Slot::kOperand, 0}, g.*given, from.desc);
  const Slot dy = program->convert({Slot::kOperand, 1}, g.output, description.diff_dst_desc());
  const bool direct = to.desc == g.*wanted;
  const Slot out = direct ? Slot{Slot::kResult, 0} : program->scratch(to.desc);
  program->add(Backward(description), description.scratchpad_desc(),
               {{from.argument, from.desc, x},
                {DNNL_ARG_DIFF_DST, description.diff_dst_desc(), dy},
                {to.argument, to.desc, out}});
  if (!direct) program->reorder(out, to.desc, {Slot::kResult, 0}, g.*wanted);
  program->set_name(description.impl_info_str());
  return program;
}

/// True for a convolution that is a matrix product over the pixels: images [pixels, channels].
bool is_product(const KernelRequest& request, const ConvShape& s) {
  return s.channels_last && request.operands[0].dtype == DType::kF32 && computes(request, s) &&
         s.groups == 1 && s.kernel_height == 1 && s.kernel_width == 1 && s.stride_height == 1 &&
         s.stride_width == 1 && s.top + s.bottom + s.left + s.right == 0;
}

/// result = left × right; measured to be a little faster than the gradients of the convolution.
std::unique_ptr<Kernel> prepare_product(const Desc& left, Slot left_slot, const Desc& right,
                                        Slot right_slot, const Desc& result) {
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(left, right, result),
                                                 user_scratch(), cpu_engine(), true);
  if (!description || is_reference(description.impl_info_str())) return nullptr;
  auto program = std::make_unique<Program>();
  program->add(dnnl::matmul(description), description.scratchpad_desc(),
               {{DNNL_ARG_SRC, left, left_slot},
                {DNNL_ARG_WEIGHTS, right, right_slot},
                {DNNL_ARG_DST, result, {Slot::kResult, 0}}});
  program->set_name(description.impl_info_str());
  return program;
}

Desc matrix(int64_t rows, int64_t columns, Tag tag) {
  return Desc({rows, columns}, dnnl::memory::data_type::f32, tag);
}

}  // namespace

std::unique_ptr<Kernel> convolution(const KernelRequest& request, const OperandPlaces& at,
                                    const Epilogue& epilogue) {
  const ConvShape s = as_images(ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                              request.operands[1].shape, request.results[0].shape));
  if (!computes(request, s)) return nullptr;
  if (auto kernel = winograd_convolution(request, s, at, epilogue)) return kernel;
  if (auto kernel = convolution_by_planes(request, s, at, epilogue)) return kernel;
  if (!s.has_planes())
    if (auto kernel = narrow_convolution(request, lying(s), at, epilogue)) return kernel;
  const bool serial = is_small(s.batch * s.out_channels * s.positions() * s.depth());
  const SerialScope scope(serial);
  const Geometry g(s, request.operands[0].dtype);
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  const Desc bias({s.out_channels}, g.input.data_type(), Tag::a);
  const auto description = g.forward(biased ? &bias : nullptr, epilogue.attributes());
  if (!description || is_reference(description.impl_info_str())) return nullptr;
  if (copies_windows(description.impl_info_str()))
    if (auto kernel = convolution_by_taps(request, lying(s), at, epilogue)) return kernel;
  const bool direct = description.dst_desc() == g.output;
  if (epilogue.residual >= 0 && !direct) return nullptr;

  auto program = std::make_unique<Program>();
  const Slot x = program->convert({Slot::kOperand, at[0]}, g.input, description.src_desc());
  const Slot w = program->convert_operand(request, 1, at[1], g.weight, description.weights_desc());
  const Slot y = direct ? Slot{Slot::kResult, 0} : program->scratch(description.dst_desc());
  std::vector<Program::Argument> arguments = {{DNNL_ARG_SRC, description.src_desc(), x},
                                              {DNNL_ARG_WEIGHTS, description.weights_desc(), w},
                                              {DNNL_ARG_DST, description.dst_desc(), y}};
  if (biased) arguments.push_back({DNNL_ARG_BIAS, bias, {Slot::kOperand, at[2]}});
  epilogue.begin(*program, request.results[0]);
  program->add(dnnl::convolution_forward(description), description.scratchpad_desc(), arguments);
  if (!direct) program->reorder(y, description.dst_desc(), {Slot::kResult, 0}, g.output);
  program->set_name(description.impl_info_str());
  program->set_serial(serial);
  return program;
}

std::unique_ptr<Kernel> prepare_conv2d(const KernelRequest& request) {
  if (request.operands[0].dtype == DType::kF16) return cpu::widened(request, prepare_conv2d);
  return convolution(request, {0, 1, 2}, {});
}

std::unique_ptr<Kernel> prepare_conv3d(const KernelRequest& request) {
  if (request.operands[0].dtype == DType::kF16) return cpu::widened(request, prepare_conv3d);
  return convolution(request, {0, 1, 2}, {});
}

std::unique_ptr<Kernel> prepare_conv2d_input_grad(const KernelRequest& request) {
  using Backward = dnnl::convolution_backward_data;
  using Description = Backward::primitive_desc;
  const ConvShape s = ConvShape::of(request.op, request.attrs, request.results[0].shape,
                                    request.operands[0].shape, request.operands[1].shape);
  const int64_t pixels = s.batch * s.height * s.width;
  if (is_product(request, s))
    return prepare_product(matrix(pixels, s.out_channels, Tag::ab), {Slot::kOperand, 1},
                           matrix(s.out_channels, s.in_channels, Tag::ab), {Slot::kOperand, 0},
                           matrix(pixels, s.in_channels, Tag::ab));
  if (computes(request, s))
    if (auto kernel = narrow_input_grad(request, lying(s))) return kernel;
  return prepare_gradient<Backward>(
      request, s, &Geometry::weight, &Geometry::input,
      [](const Description& d) {
        return Side{DNNL_ARG_WEIGHTS, d.weights_desc()};
      },
      [](const Description& d) {
        return Side{DNNL_ARG_DIFF_SRC, d.diff_src_desc()};
      });
}

std::unique_ptr<Kernel> prepare_conv2d_weight_grad(const KernelRequest& request) {
  using Backward = dnnl::convolution_backward_weights;
  using Description = Backward::primitive_desc;
  const ConvShape s = ConvShape::of(request.op, request.attrs, request.operands[0].shape,
                                    request.results[0].shape, request.operands[1].shape);
  if (request.operands[0].dtype == DType::kF32 && computes(request, s) &&
      cpu::PixelWeightGrad::suits(s)) {
    const cpu::PixelWeightGrad gradient(s);
    return make_kernel(
        [gradient](const RunContext& context, void* const* operands, void* const* results) {
          gradient.run(static_cast<const float*>(operands[0]),
                       static_cast<const float*>(operands[1]), static_cast<float*>(results[0]),
                       context.scratch);
        },
        gradient.scratch_bytes(), "cpu:pixels");
  }
  const int64_t pixels = s.batch * s.height * s.width;
  if (is_product(request, s) && 2 * s.out_channels >= s.in_channels)
    return prepare_product(matrix(s.out_channels, pixels, Tag::ba), {Slot::kOperand, 1},
                           matrix(pixels, s.in_channels, Tag::ab), {Slot::kOperand, 0},
                           matrix(s.out_channels, s.in_channels, Tag::ab));
  if (computes(request, s))
    if (auto kernel = narrow_weight_grad(request, lying(s))) return kernel;
  return prepare_gradient<Backward>(
      request, s, &Geometry::input, &Geometry::weight,
      [](const Description& d) {
        return Side{DNNL_ARG_SRC, d.src_desc()};
      },
      [](const Description& d) {
        return Side{DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc()};
      });
}

}  // namespace paddle::onednn
