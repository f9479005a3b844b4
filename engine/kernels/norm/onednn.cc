// Batch normalization (f32 and bf16) and layer normalization (f32) with their gradients as oneDNN
// primitives. oneDNN works with variances, our operations with reciprocal standard deviations and
// running statistics, so they are converted. Chosen by default only for channels last: elsewhere
// our own kernels are as fast or faster.

#include <cmath>

#include "kernels/onednn/program.h"
#include "ops/generated/nn.h"

namespace paddle::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Flags = dnnl::normalization_flags;

Desc vector_of(int64_t n) { return Desc({n}, dnnl::memory::data_type::f32, Tag::a); }

bool present(const KernelRequest& request, size_t operand) {
  return operand < request.operands.size() && request.operands[operand].present;
}
bool absent_or_f32(const KernelRequest& request, size_t operand) {
  return !present(request, operand) || request.operands[operand].dtype == DType::kF32;
}

/// A vector with one float per channel or row, in scratch.
struct Vector {
  MemoryRef slot;
  float* in(const RunContext& context) const {
    return reinterpret_cast<float*>(context.scratch + slot.index);
  }
};

/// Appends variance = 1 / rstd², from operand `rstd`; the primitive then uses an epsilon of 0.
Vector variance_from(Program& program, size_t rstd, int64_t n) {
  const Vector out{program.scratch(vector_of(n))};
  program.add({rstd}, [=](const RunContext& context, void* const* operands, void* const*) {
    const float* const r = static_cast<const float*>(operands[rstd]);
    float* const v = out.in(context);
    for (int64_t i = 0; i < n; ++i) v[i] = 1 / (r[i] * r[i]);
  });
  return out;
}

/// The weight, or ones in scratch: a gradient primitive computes the sums for the weight only with
/// one.
MemoryRef weight_or_ones(Program& program, const KernelRequest& request, size_t weight, int64_t n) {
  if (present(request, weight)) return {MemoryRef::kOperand, weight};
  const Vector ones{program.scratch(vector_of(n))};
  program.add({}, [=](const RunContext& context, void* const*, void* const*) {
    std::fill_n(ones.in(context), n, 1.0f);
  });
  return ones.slot;
}

float reciprocal_stddev(float variance, double epsilon) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(variance) + epsilon));
}

// --- batch normalization ---

/// x as [batch, channels, everything else, 1].
struct NchwView {
  Desc desc;
  int64_t channels;
  bool channels_last;

  NchwView(const Layout& x, const std::string& data_format) {
    const bool last = x.shape.size() > 2 && !data_format.empty() && data_format.back() == 'C';
    channels = last ? x.shape.back() : x.shape[1];
    const int64_t rest = x.size() / (x.shape[0] * channels);
    channels_last = last || rest == 1;
    desc = Desc({x.shape[0], channels, rest, 1}, data_type(x.dtype),
                channels_last ? Tag::nhwc : Tag::nchw);
  }
};

bool accepts(const KernelRequest& request, const NchwView& image,
             const std::string& implementation) {
  if (request.prepare.backend_pinned) return !is_reference(implementation);
  return image.channels_last && is_jit(implementation);
}

}  // namespace

std::unique_ptr<Kernel> prepare_batch_norm(const KernelRequest& request) {
  using Forward = dnnl::batch_normalization_forward;
  const BatchNormAttrs attrs(request.attrs);
  const Layout& x = request.operands[0];
  if (!supports(x.dtype) || x.size() == 0) return nullptr;
  for (size_t i = 1; i <= 4; ++i)
    if (!absent_or_f32(request, i)) return nullptr;
  const bool batch = attrs.training && !attrs.use_global_stats.value_or(false);
  const NchwView shape(x, attrs.data_format);
  const Desc& image = shape.desc;
  const int64_t channels = shape.channels;
  Flags flags = batch ? Flags::none : Flags::use_global_stats;
  if (present(request, 3)) flags |= Flags::use_scale;
  if (present(request, 4)) flags |= Flags::use_shift;
  const Forward::primitive_desc description(
      {dnnl::prop_kind::forward_training, image, static_cast<float>(attrs.epsilon), flags},
      user_scratchpad(), cpu_engine(), true);
  if (!description || !accepts(request, shape, description.impl_info_str())) return nullptr;

  auto program = std::make_unique<Program>();
  const Desc vector_desc = vector_of(channels);
  const MemoryRef mean = batch ? program->scratch(vector_desc) : MemoryRef{MemoryRef::kOperand, 1};
  const MemoryRef variance =
      batch ? program->scratch(vector_desc) : MemoryRef{MemoryRef::kOperand, 2};
  std::vector<Program::Argument> arguments = {{DNNL_ARG_SRC, image, {MemoryRef::kOperand, 0}},
                                              {DNNL_ARG_DST, image, {MemoryRef::kResult, 0}},
                                              {DNNL_ARG_MEAN, vector_desc, mean},
                                              {DNNL_ARG_VARIANCE, vector_desc, variance}};
  if (present(request, 3))
    arguments.push_back({DNNL_ARG_SCALE, vector_desc, {MemoryRef::kOperand, 3}});
  if (present(request, 4))
    arguments.push_back({DNNL_ARG_SHIFT, vector_desc, {MemoryRef::kOperand, 4}});
  program->add(Forward(description), description.scratchpad_desc(), arguments);
  program->add({1, 2}, [=, momentum = batch ? attrs.momentum : 1.0, epsilon = attrs.epsilon](
                           const RunContext& context, void* const* operands, void* const* results) {
    const auto at = [&](MemoryRef slot) {
      return static_cast<const float*>(Program::address(slot, context, operands, results));
    };
    const float *m = at(mean), *v = at(variance);
    const auto blend = [&](size_t result, size_t old, const float* fresh) {
      const float* const before = static_cast<const float*>(operands[old]);
      float* const after = static_cast<float*>(results[result]);
      for (int64_t c = 0; after && c < channels; ++c)
        after[c] = static_cast<float>(static_cast<double>(before[c]) * momentum +
                                      static_cast<double>(fresh[c]) * (1 - momentum));
    };
    blend(1, 1, m);
    blend(2, 2, v);
    if (results[3]) std::copy_n(m, channels, static_cast<float*>(results[3]));
    float* const rstd = static_cast<float*>(results[4]);
    for (int64_t c = 0; rstd && c < channels; ++c) rstd[c] = reciprocal_stddev(v[c], epsilon);
  });
  program->set_name(description.impl_info_str());
  return program;
}

std::unique_ptr<Kernel> prepare_batch_norm_grad(const KernelRequest& request) {
  using Backward = dnnl::batch_normalization_backward;
  const BatchNormGradAttrs attrs(request.attrs);
  const Layout& x = request.operands[1];
  if (!supports(x.dtype) || x.size() == 0 || request.operands[0].dtype != x.dtype ||
      !absent_or_f32(request, 4))
    return nullptr;
  const NchwView shape(x, attrs.data_format);
  const Desc& image = shape.desc;
  const int64_t channels = shape.channels;
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (!attrs.batch_statistics) flags |= Flags::use_global_stats;
  const dnnl::batch_normalization_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, image, 0.0f, flags}, user_scratchpad(), cpu_engine(),
      true);
  if (!forward) return nullptr;
  const Backward::primitive_desc description({dnnl::prop_kind::backward, image, image, 0.0f, flags},
                                             user_scratchpad(), cpu_engine(), forward, true);
  if (!description || !accepts(request, shape, description.impl_info_str())) return nullptr;

  auto program = std::make_unique<Program>();
  const Desc vector_desc = vector_of(channels);
  const Vector variance = variance_from(*program, 3, channels);
  const MemoryRef weight = weight_or_ones(*program, request, 4, channels);
  program->add(Backward(description), description.scratchpad_desc(),
               {{DNNL_ARG_DIFF_DST, image, {MemoryRef::kOperand, 0}},
                {DNNL_ARG_SRC, image, {MemoryRef::kOperand, 1}},
                {DNNL_ARG_MEAN, vector_desc, {MemoryRef::kOperand, 2}},
                {DNNL_ARG_VARIANCE, vector_desc, variance.slot},
                {DNNL_ARG_SCALE, vector_desc, weight},
                {DNNL_ARG_SHIFT, vector_desc, weight},
                {DNNL_ARG_DIFF_SRC, image, {MemoryRef::kResult, 0}},
                {DNNL_ARG_DIFF_SCALE, vector_desc, {MemoryRef::kResult, 1}},
                {DNNL_ARG_DIFF_SHIFT, vector_desc, {MemoryRef::kResult, 2}}});
  program->set_name(description.impl_info_str());
  return program;
}

// --- layer normalization ---

std::unique_ptr<Kernel> prepare_layer_norm(const KernelRequest& request) {
  using Forward = dnnl::layer_normalization_forward;
  const double epsilon = LayerNormAttrs(request.attrs).epsilon;
  const Layout& x = request.operands[0];
  if (!request.prepare.backend_pinned || x.dtype != DType::kF32 || x.size() == 0 ||
      !absent_or_f32(request, 1) || !absent_or_f32(request, 2))
    return nullptr;
  const int64_t rows = request.results[1].size(), n = x.size() / rows;
  const Desc matrix({rows, n}, data_type(x.dtype), Tag::ab), vector_desc = vector_of(n);
  Flags flags = Flags::none;
  if (present(request, 1)) flags |= Flags::use_scale;
  if (present(request, 2)) flags |= Flags::use_shift;
  const Forward::primitive_desc description({dnnl::prop_kind::forward_training, matrix,
                                             vector_of(rows), static_cast<float>(epsilon), flags},
                                            user_scratchpad(), cpu_engine(), true);
  if (!description || is_reference(description.impl_info_str())) return nullptr;

  auto program = std::make_unique<Program>();
  const MemoryRef mean = request.results[1].present ? MemoryRef{MemoryRef::kResult, 1}
                                                    : program->scratch(vector_of(rows));
  const MemoryRef variance = request.results[2].present ? MemoryRef{MemoryRef::kResult, 2}
                                                        : program->scratch(vector_of(rows));
  std::vector<Program::Argument> arguments = {{DNNL_ARG_SRC, matrix, {MemoryRef::kOperand, 0}},
                                              {DNNL_ARG_DST, matrix, {MemoryRef::kResult, 0}},
                                              {DNNL_ARG_MEAN, vector_of(rows), mean},
                                              {DNNL_ARG_VARIANCE, vector_of(rows), variance}};
  if (present(request, 1))
    arguments.push_back({DNNL_ARG_SCALE, vector_desc, {MemoryRef::kOperand, 1}});
  if (present(request, 2))
    arguments.push_back({DNNL_ARG_SHIFT, vector_desc, {MemoryRef::kOperand, 2}});
  program->add(Forward(description), description.scratchpad_desc(), arguments);
  if (request.results[2].present)
    program->add({}, [=](const RunContext&, void* const*, void* const* results) {
      float* const v = static_cast<float*>(results[2]);
      for (int64_t r = 0; r < rows; ++r) v[r] = reciprocal_stddev(v[r], epsilon);
    });
  program->set_name(description.impl_info_str());
  return program;
}

std::unique_ptr<Kernel> prepare_layer_norm_grad(const KernelRequest& request) {
  using Backward = dnnl::layer_normalization_backward;
  const Layout& x = request.operands[1];
  if (!request.prepare.backend_pinned || x.dtype != DType::kF32 || x.size() == 0 ||
      request.operands[0].dtype != x.dtype || !absent_or_f32(request, 4))
    return nullptr;
  const int64_t rows = request.operands[2].size(), n = x.size() / rows;
  const Desc matrix({rows, n}, data_type(x.dtype), Tag::ab), vector_desc = vector_of(n);
  const Flags flags = Flags::use_scale | Flags::use_shift;
  const dnnl::layer_normalization_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, matrix, vector_of(rows), 0.0f, flags}, user_scratchpad(),
      cpu_engine(), true);
  if (!forward) return nullptr;
  const Backward::primitive_desc description(
      {dnnl::prop_kind::backward, matrix, matrix, vector_of(rows), 0.0f, flags}, user_scratchpad(),
      cpu_engine(), forward, true);
  if (!description || is_reference(description.impl_info_str())) return nullptr;

  auto program = std::make_unique<Program>();
  const Vector variance = variance_from(*program, 3, rows);
  const MemoryRef weight = weight_or_ones(*program, request, 4, n);
  program->add(Backward(description), description.scratchpad_desc(),
               {{DNNL_ARG_DIFF_DST, matrix, {MemoryRef::kOperand, 0}},
                {DNNL_ARG_SRC, matrix, {MemoryRef::kOperand, 1}},
                {DNNL_ARG_MEAN, vector_of(rows), {MemoryRef::kOperand, 2}},
                {DNNL_ARG_VARIANCE, vector_of(rows), variance.slot},
                {DNNL_ARG_SCALE, vector_desc, weight},
                {DNNL_ARG_SHIFT, vector_desc, weight},
                {DNNL_ARG_DIFF_SRC, matrix, {MemoryRef::kResult, 0}},
                {DNNL_ARG_DIFF_SCALE, vector_desc, {MemoryRef::kResult, 1}},
                {DNNL_ARG_DIFF_SHIFT, vector_desc, {MemoryRef::kResult, 2}}});
  program->set_name(description.impl_info_str());
  return program;
}

}  // namespace paddle::onednn
