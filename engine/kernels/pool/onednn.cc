// 2-D average pooling and its gradient as oneDNN primitives, in f32 and bf16. Max pooling uses our
// own loops: oneDNN's ignores NaN and turns -inf into the lowest finite value.

#include "kernels/onednn/program.h"
#include "kernels/pool/pool_shape.h"
#include "ops/generated/nn.h"

namespace paddle::onednn {
namespace {

using cpu::PoolShape;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

struct Pooling {
  PoolShape s;
  dnnl::memory::data_type type;
  dnnl::algorithm algorithm;

  Desc input() const { return Desc({s.batch, s.channels, s.height, s.width}, type, tag()); }
  Desc output() const {
    return Desc({s.batch, s.channels, s.out_height, s.out_width}, type, tag());
  }
  dnnl::memory::dims strides() const { return {s.stride_height, s.stride_width}; }
  dnnl::memory::dims kernel() const { return {s.kernel_height, s.kernel_width}; }
  dnnl::memory::dims before() const { return {s.top, s.left}; }
  /// By how much the last windows extend beyond the input.
  dnnl::memory::dims after() const {
    const auto overhang = [](int64_t count, int64_t stride, int64_t window, int64_t size,
                             int64_t first) {
      return std::max<int64_t>(0, (count - 1) * stride + window - size - first);
    };
    return {overhang(s.out_height, s.stride_height, s.kernel_height, s.height, s.top),
            overhang(s.out_width, s.stride_width, s.kernel_width, s.width, s.left)};
  }
  Tag tag() const { return s.channels_last ? Tag::nhwc : Tag::nchw; }

  /// False if oneDNN uses a different divisor or does not support such windows.
  bool fits(bool exclusive, std::optional<double> divisor) const {
    if (s.batch < 1 || s.channels < 1 || s.height < 1 || s.width < 1 || s.out_height < 1 ||
        s.out_width < 1 || divisor)
      return false;
    const auto last = after();
    // Every window contains an element. Windows that ceil_mode adds have a smaller divisor than
    // others.
    if (s.top >= s.kernel_height || s.left >= s.kernel_width || last[0] >= s.kernel_height ||
        last[1] >= s.kernel_width)
      return false;
    return exclusive || (last[0] <= s.bottom && last[1] <= s.right);
  }
  dnnl::pooling_forward::primitive_desc forward() const {
    return {{dnnl::prop_kind::forward_training, algorithm, input(), output(), strides(), kernel(),
             before(), after()},
            user_scratchpad(),
            cpu_engine(),
            true};
  }
};

dnnl::algorithm average(bool exclusive) {
  return exclusive ? dnnl::algorithm::pooling_avg_exclude_padding
                   : dnnl::algorithm::pooling_avg_include_padding;
}

bool accepts(const KernelRequest& request, const std::string& implementation) {
  return request.prepare.backend_pinned ? !is_reference(implementation) : is_jit(implementation);
}

/// The pooling described by the attributes of avg_pool2d or its gradient, if oneDNN supports it.
template <class PoolAttrs>
std::optional<Pooling> pooling(const KernelRequest& request, const Dims& input,
                               const Dims& output) {
  const PoolAttrs attrs(request.attrs);
  const DType dtype = request.operands[0].dtype;
  if (!supports(dtype)) return std::nullopt;
  Pooling p{PoolShape(input, output, attrs.data_format == "NHWC"), data_type(dtype),
            average(attrs.exclusive)};
  p.s.windows(attrs.kernel_size, attrs.stride, attrs.padding, request.op.name());
  if (!p.fits(attrs.exclusive, attrs.divisor_override)) return std::nullopt;
  return p;
}

/// A program of one primitive.
template <class Primitive, class Description>
std::unique_ptr<Kernel> single(const Description& description,
                               const std::vector<Program::Argument>& arguments) {
  auto program = std::make_unique<Program>();
  program->add(Primitive(description), description.scratchpad_desc(), arguments);
  program->set_name(description.impl_info_str());
  return program;
}

}  // namespace

std::unique_ptr<Kernel> prepare_avg_pool2d(const KernelRequest& request) {
  const auto p =
      pooling<AvgPool2dAttrs>(request, request.operands[0].shape, request.results[0].shape);
  if (!p) return nullptr;
  // Sums of neighbors are faster than windows.
  if (p->s.covers_planes() && p->type == dnnl::memory::data_type::f32 &&
      !request.prepare.backend_pinned)
    return nullptr;
  const auto description = p->forward();
  if (!description || !accepts(request, description.impl_info_str())) return nullptr;
  return single<dnnl::pooling_forward>(description,
                                       {{DNNL_ARG_SRC, p->input(), {MemoryRef::kOperand, 0}},
                                        {DNNL_ARG_DST, p->output(), {MemoryRef::kResult, 0}}});
}

std::unique_ptr<Kernel> prepare_avg_pool2d_grad(const KernelRequest& request) {
  const auto p =
      pooling<AvgPool2dGradAttrs>(request, request.results[0].shape, request.operands[0].shape);
  if (!p) return nullptr;
  const auto forward = p->forward();
  if (!forward) return nullptr;
  const dnnl::pooling_backward::primitive_desc description(
      {p->algorithm, p->input(), p->output(), p->strides(), p->kernel(), p->before(), p->after()},
      user_scratchpad(), cpu_engine(), forward, true);
  if (!description || !accepts(request, description.impl_info_str())) return nullptr;
  return single<dnnl::pooling_backward>(description,
                                        {{DNNL_ARG_DIFF_DST, p->output(), {MemoryRef::kOperand, 0}},
                                         {DNNL_ARG_DIFF_SRC, p->input(), {MemoryRef::kResult, 0}}});
}

}  // namespace paddle::onednn
