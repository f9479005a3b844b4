// matmul and linear as oneDNN primitives, in f32 and bf16. kAlgorithms lists the ways to compute
// one.

#include "kernels/linalg/matmul.h"

#include <string_view>

#include "base/thread_scope.h"
#include "kernels/common/algorithm_table.h"
#include "kernels/linalg/few_rows.h"
#include "kernels/linalg/matmul_shape.h"
#include "kernels/onednn/post_ops.h"
#include "kernels/onednn/strided_operand.h"
#include "ops/generated/linalg.h"

namespace paddle::onednn {
namespace {

using Desc = dnnl::memory::desc;
using cpu::MatmulShape;

/// A product in the types and layouts that oneDNN computes.
struct MatmulProblem {
  const KernelRequest& request;
  MatmulShape shape;
  OperandIndices at;
  Epilogue epilogue;
  bool biased = false;
  bool serial = false;  ///< small enough for one thread
  Desc x = {}, y = {}, bias = {}, out = {};

  DType dtype() const { return request.operands[0].dtype; }
  /// The right side is constant and gets the layout that an implementation prefers.
  bool prepacks() const { return request.operands[1].constant && !request.prepare.skip_prepack; }
  dnnl::matmul::desc desc() const {
    const Desc right =
        prepacks() ? Desc(y.dims(), y.data_type(), dnnl::memory::format_tag::any) : y;
    return biased ? dnnl::matmul::desc(x, right, bias, out) : dnnl::matmul::desc(x, right, out);
  }
  /// oneDNN's first choice; empty if it has none.
  dnnl::matmul::primitive_desc first_choice() const {
    return {desc(), post_ops(epilogue), cpu_engine(), true};
  }
};

/// True for the implementation that packs both sides in each run.
bool repacks_every_run(const dnnl::matmul::primitive_desc& description) {
  return std::string_view(description.impl_info_str()) == "gemm:jit";
}

/// A program of this primitive on operands of these layouts; `bias` is read if there is one.
template <class Primitive>
std::unique_ptr<Program> make_program(const MatmulProblem& p,
                                      const typename Primitive::primitive_desc& description,
                                      const Desc& x, const Desc& right, const Desc& bias,
                                      const Desc& out) {
  auto program = std::make_unique<Program>();
  const MemoryRef weights =
      program->prepack_operand(p.request, 1, p.at[1], right, description.weights_desc());
  std::vector<Program::Argument> arguments = {
      {DNNL_ARG_SRC, x, {MemoryRef::kOperand, p.at[0]}},
      {DNNL_ARG_WEIGHTS, description.weights_desc(), weights},
      {DNNL_ARG_DST, out, {MemoryRef::kResult, 0}}};
  if (p.biased) arguments.push_back({DNNL_ARG_BIAS, bias, {MemoryRef::kOperand, p.at[2]}});
  add_residual_copy(*program, p.epilogue, p.request.results[0]);
  program->add(Primitive(description), description.scratchpad_desc(), arguments);
  program->set_name(description.impl_info_str());
  return program;
}

std::unique_ptr<Program> matmul_program(const MatmulProblem& p,
                                        const dnnl::matmul::primitive_desc& description) {
  return make_program<dnnl::matmul>(p, description, p.x, p.y, p.bias, p.out);
}

/// Large products that oneDNN computes faster with its second choice, which packs both sides: those
/// with a large k and few columns, and those with a transposed left side of at most as many rows as
/// columns. Measured on Zen 4 (docs/performance/kernel_choices.md).
double repacking_speedup(const MatmulProblem& p) {
  const MatmulShape& s = p.shape;
  const bool plain =
      !p.biased && p.epilogue.residual < 0 && !p.epilogue.activation && p.dtype() == DType::kF32;
  if (!plain || p.prepacks() || s.batches() != 1 || s.m * s.n * s.k < int64_t{1} << 29 ||
      s.y_column != 1)
    return 0;
  const bool faster = s.x_column == 1 ? s.k >= 2 * s.n : s.n >= s.m && s.m >= 384;
  return faster ? cpu::kPreferred : 0;
}

/// Null if oneDNN has no implementation that packs both sides.
std::unique_ptr<Kernel> prepare_repacking(const MatmulProblem& p) {
  // Further choices are looked for in the first two arguments, which have to last as long.
  const auto desc = p.desc();
  const auto attributes = post_ops(p.epilogue);
  dnnl::matmul::primitive_desc description(desc, attributes, cpu_engine(), true);
  while (description && !repacks_every_run(description))
    if (!description.next_impl()) return nullptr;
  return description ? matmul_program(p, description) : nullptr;
}

/// With fewer rows, reading the right side dominates in either form.
constexpr int64_t kMinRows = 4;

/// With as many rows, the convolution is faster even if the right side is reordered in each run.
constexpr int64_t kMinRowsOfReordered = 128;

/// A product as a pointwise convolution over an image of one row. Without AVX-512 oneDNN's matmul
/// packs the right side in each run, and reaches half of the rate of its convolutions. Measured on
/// Zen 3 and Zen 4 (docs/performance/kernel_choices.md).
double pointwise_conv_speedup(const MatmulProblem& p) {
  const MatmulShape& s = p.shape;
  const bool has_rows =
      p.prepacks() ? s.m >= kMinRows : s.m >= kMinRowsOfReordered && cpu::vector_bytes() == 32;
  const bool fits = p.dtype() == DType::kF32 && !p.serial && s.batches() == 1 && has_rows &&
                    s.x_column == 1 && s.x_row == s.k;
  return fits ? cpu::kPreferred : 0;
}

/// Null if oneDNN's matmul has prepacked code, or its convolution has none.
std::unique_ptr<Kernel> prepare_pointwise_conv(const MatmulProblem& p) {
  if (const auto usual = p.first_choice(); !usual || !repacks_every_run(usual)) return nullptr;
  const MatmulShape& s = p.shape;
  using Tag = dnnl::memory::format_tag;
  const auto type = dnnl::memory::data_type::f32;
  const Desc x({1, s.k, 1, s.m}, type, Tag::nhwc), out({1, s.n, 1, s.m}, type, Tag::nhwc);
  const Desc weight_desc({s.n, s.k, 1, 1}, type, Dims{s.y_column, s.y_row, 1, 1});
  const Desc any(weight_desc.dims(), type, Tag::any), bias({s.n}, type, Tag::a);
  using Forward = dnnl::convolution_forward;
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto how = dnnl::algorithm::convolution_direct;
  const Dims one = {1, 1}, none = {0, 0};
  const Forward::primitive_desc description(
      p.biased ? Forward::desc(kind, how, x, any, bias, out, one, none, none)
               : Forward::desc(kind, how, x, any, out, one, none, none),
      post_ops(p.epilogue), cpu_engine(), true);
  if (!description || !std::string_view(description.impl_info_str()).starts_with("jit_1x1"))
    return nullptr;
  return make_program<Forward>(p, description, x, weight_desc, bias, out);
}

/// Null where oneDNN's implementation is not a fast one.
std::unique_ptr<Kernel> prepare_primitive(const MatmulProblem& p) {
  const auto description = p.first_choice();
  if (!description || is_reference(description.impl_info_str())) return nullptr;
  return matmul_program(p, description);
}

/// Reading the matrix once takes a third of the time of oneDNN's form for one row.
double few_rows_speedup(const MatmulProblem& p) {
  return cpu::is_few_rows(p.shape) ? cpu::kPreferred : 0;
}

std::unique_ptr<Kernel> prepare_few_rows(const MatmulProblem& p) {
  return cpu::prepare_few_rows(p.request, p.shape, p.at, p.epilogue, p.biased);
}

constexpr cpu::Algorithm<MatmulProblem> kAlgorithms[] = {
    {"few_rows", few_rows_speedup, prepare_few_rows},
    {"pointwise_conv", pointwise_conv_speedup, prepare_pointwise_conv},
    {"repacking", repacking_speedup, prepare_repacking},
    {"matmul", cpu::baseline, prepare_primitive},
};

/// Multiplications that our GEMM computes in the time that oneDNN takes to generate code for a
/// shape, about 0.1 ms.
constexpr int64_t kJitCost = int64_t{1} << 18;

std::unique_ptr<Kernel> matmul(const KernelRequest& request, MatmulShape s,
                               const OperandIndices& at, const Epilogue& epilogue) {
  const bool biased = request.operands.size() > 2 && request.operands[2].present;
  const DType dtype = request.operands[0].dtype;
  if (!supports(dtype) || request.results[0].dtype != dtype) return nullptr;
  if (s.batches() == 0 || s.m == 0 || s.n == 0 || s.k == 0 || s.batch.size() > 8) return nullptr;
  if (!normalize_strides(s.m, s.k, s.x_row, s.x_column) ||
      !normalize_strides(s.k, s.n, s.y_row, s.y_column))
    return nullptr;
  for (size_t i = 0; i < s.batch.size(); ++i)
    if (s.x_batch[i] < 0 || s.y_batch[i] < 0) return nullptr;

  if (request.prepare.single_run && s.batches() * s.m * s.n * s.k <= kJitCost) return nullptr;

  const int64_t multiplications = s.batches() * s.m * s.n * s.k;
  const ThreadScope threads(threads_for(multiplications));
  const auto type = data_type(dtype);
  MatmulProblem problem{request, s, at, epilogue, biased, is_small(multiplications)};
  problem.x = matrix_desc(type, s.batch, s.x_batch, s.m, s.k, s.x_row, s.x_column);
  problem.y = matrix_desc(type, s.batch, s.y_batch, s.k, s.n, s.y_row, s.y_column);
  Dims result = s.batch;
  result.insert(result.end(), {s.m, s.n});
  problem.out = Desc(result, type, contiguous_strides(result));
  if (biased) {
    const Layout& layout = request.operands[2];
    if (layout.size() != s.n || layout.shape.empty() || layout.shape.back() != s.n ||
        (s.n > 1 && layout.strides.back() != 1) || !supports(layout.dtype))
      return nullptr;
    Dims dims(result.size(), 1);
    dims.back() = s.n;
    problem.bias = Desc(dims, data_type(layout.dtype), contiguous_strides(dims));
  }
  return cpu::prepare_best<MatmulProblem>(kAlgorithms, problem);
}

}  // namespace

std::unique_ptr<Kernel> matmul_with_epilogue(const KernelRequest& request, const OperandIndices& at,
                                             const Epilogue& epilogue) {
  const MatmulAttrs attrs(request.attrs);
  return matmul(request,
                MatmulShape::of(request.operands[0], request.operands[1], attrs.transpose_x,
                                attrs.transpose_y),
                at, epilogue);
}

std::unique_ptr<Kernel> linear_with_epilogue(const KernelRequest& request, const OperandIndices& at,
                                             const Epilogue& epilogue) {
  return matmul(request, MatmulShape::of(request.operands[0], request.operands[1], false, false),
                at, epilogue);
}

std::unique_ptr<Kernel> prepare_matmul(const KernelRequest& request) {
  return matmul_with_epilogue(request, {0, 1, 2}, {});
}

std::unique_ptr<Kernel> prepare_linear(const KernelRequest& request) {
  return linear_with_epilogue(request, {0, 1, 2}, {});
}

}  // namespace paddle::onednn
