// Quantized matmul of two activations. oneDNN requires int8 on the right side: uint8 is copied with
// its highest bit flipped, which subtracts 128 from each value and from the zero point.

#include <string_view>

#include "base/thread_scope.h"
#include "kernels/linalg/matmul_shape.h"
#include "kernels/quantized/onednn.h"
#include "kernels/quantized/onednn_requantize.h"
#include "ops/generated/quantization.h"

namespace paddle::onednn {

bool has_int8_matmul(const TargetInfo&, DType, DType) {
  static const bool kGenerated = [] {
    if (!has_vnni()) return false;
    dnnl::primitive_attr attributes = user_scratchpad();
    attributes.set_zero_points(DNNL_ARG_SRC, 0, {DNNL_RUNTIME_S32_VAL});
    attributes.set_zero_points(DNNL_ARG_WEIGHTS, 0, {DNNL_RUNTIME_S32_VAL});
    const Desc x({2, 32, 64}, Type::u8, Tag::abc), y({2, 64, 32}, Type::s8, Tag::abc),
        out({2, 32, 32}, Type::f32, Tag::abc);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, y, out), attributes,
                                                   cpu_engine(), true);
    // Other implementations are slower than float with zero points on the right.
    return description && std::string_view(description.impl_info_str()).starts_with("brg");
  }();
  return kGenerated;
}

namespace {

/// An operand and its layout where the primitive reads it.
struct MatmulOperand {
  MemoryRef slot;
  Layout layout;
};

/// The operand in place if the primitive can read it, else a dense copy.
MatmulOperand matmul_operand(Program& program, const KernelRequest& request,
                             const QuantizedMatmulAttrs& attrs, size_t operand, uint8_t xor_mask) {
  MatmulOperand out = {{MemoryRef::kOperand, operand}, request.operands[operand]};
  const bool left = operand == q::kX;
  auto s = cpu::MatmulShape::of(request.operands[q::kX], request.operands[q::kWeight],
                                attrs.transpose_x, attrs.transpose_y);
  const bool usable = left ? normalize_strides(s.m, s.k, s.x_row, s.x_column)
                           : normalize_strides(s.k, s.n, s.y_row, s.y_column);
  const bool forward = std::all_of(out.layout.strides.begin(), out.layout.strides.end(),
                                   [](int64_t stride) { return stride >= 0; });
  if (usable && forward && xor_mask == 0) return out;
  // Matrices whose rows are interleaved are copied one after the other, because there is no
  // generated code for them with few columns. Transposed matrices stay transposed, which copies
  // faster.
  const bool transposed = (left ? s.x_column : s.y_column) != 1;
  const DenseOperand copy =
      make_dense(program, operand, out.layout,
                 usable && transposed ? AxisOrder::kMemory : AxisOrder::kLogical, xor_mask);
  out.slot = copy.slot;
  out.layout.strides = copy.strides;
  return out;
}

}  // namespace

std::unique_ptr<Kernel> prepare_quantized_matmul(const KernelRequest& request) {
  const Layout &result = request.results[0], &residual = request.operands[q::kResidual];
  if (result.size() == 0) return nothing_to_do();
  if (request.operands[q::kX].size() == 0 || !has_vnni()) return nullptr;
  const QuantizedMatmulAttrs attrs(request.attrs);
  RequantizePostOps requantize(request, attrs.step_dtype, attrs.low, attrs.high);
  if (!requantize.read()) return nullptr;
  const int64_t depth = request.operands[q::kX].shape.rbegin()[attrs.transpose_x ? 1 : 0];
  const ThreadScope threads(threads_for(result.size() * depth / 4));

  auto program = std::make_unique<Program>();
  const bool flips_sign_bit = request.operands[q::kWeight].dtype == DType::kU8;
  const MatmulOperand left = matmul_operand(*program, request, attrs, q::kX, 0),
                      right = matmul_operand(*program, request, attrs, q::kWeight,
                                             flips_sign_bit ? 0x80 : 0);
  auto s = cpu::MatmulShape::of(left.layout, right.layout, attrs.transpose_x, attrs.transpose_y);
  if (s.batch.size() > 8 || !normalize_strides(s.m, s.k, s.x_row, s.x_column) ||
      !normalize_strides(s.k, s.n, s.y_row, s.y_column))
    return nullptr;
  Dims channels(s.batch.size() + 2, 1), out_dims = s.batch;
  channels.back() = s.n;
  out_dims.insert(out_dims.end(), {s.m, s.n});
  const dnnl::primitive_attr attributes =
      requantize.attributes(*program, 1 << (channels.size() - 1), channels);
  const Desc x = matrix_desc(data_type(left.layout.dtype), s.batch, s.x_batch, s.m, s.k, s.x_row,
                             s.x_column),
             y = matrix_desc(Type::s8, s.batch, s.y_batch, s.k, s.n, s.y_row, s.y_column),
             out(out_dims, data_type(result.dtype), contiguous_strides(out_dims));
  const Layout& bias_layout = request.operands[q::kBias];
  if (requantize.has_int32_bias() && bias_layout.size() != s.n) return nullptr;
  const Desc bias = requantize.has_int32_bias()
                        ? Desc(channels, Type::s32, contiguous_strides(channels))
                        : Desc();
  const dnnl::matmul::primitive_desc description(requantize.has_int32_bias()
                                                     ? dnnl::matmul::desc(x, y, bias, out)
                                                     : dnnl::matmul::desc(x, y, out),
                                                 attributes, cpu_engine(), true);
  if (!description) return nullptr;

  std::vector<Program::Argument> arguments = requantize.arguments();
  arguments.insert(arguments.end(), {{DNNL_ARG_SRC, x, left.slot},
                                     {DNNL_ARG_WEIGHTS, y, right.slot},
                                     {DNNL_ARG_DST, out, {MemoryRef::kResult, 0}}});
  if (requantize.has_int32_bias())
    arguments.push_back({DNNL_ARG_BIAS, bias, make_dense(*program, q::kBias, bias_layout).slot});
  if (residual.present && !residual.is_contiguous()) {
    const Desc dense({result.size()}, data_type(residual.dtype), Tag::a);
    program->reorder(make_dense(*program, q::kResidual, residual).slot, dense,
                     {MemoryRef::kResult, 0}, dense);
  } else {
    requantize.begin(*program, 0, out.get_size());
  }
  program->add(dnnl::matmul(description), description.scratchpad_desc(), arguments);
  program->set_name(description.impl_info_str());
  return program;
}

}  // namespace paddle::onednn
