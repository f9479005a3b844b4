#pragma once
// The steps of QDQ lowering (lower_qdq.cc), and the matchers that they share. A quantized model
// surrounds float operations with quantize and dequantize operations; the steps turn that into
// integer operations.

#include "compiler/passes/passes.h"
#include "ops/quantization/quantized.h"

namespace paddle::passes::qdq {

/// Constants of more elements are not dequantized at compile time.
inline constexpr int64_t kMaxDequantized = int64_t{1} << 26;

// --- steps, in order ---

/// Moves dequantize below operations that only move elements (views, concat, gathers, also those of
/// tables with a scale for each row) and max pooling, rearranges constants as integers, cancels
/// quantize after dequantize, and requantizes constants.
void propagate_dequantize(ir::Function& function, const Evaluate& evaluate);
/// Replaces convolutions and matrix products of dequantized operands by quantized_conv,
/// quantized_conv_transpose, quantized_linear and quantized_matmul.
void form_int8_ops(ir::Function& function, const Int8Kernels& kernels);
/// Conv1d is conv2d with height 1 between unsqueeze and squeeze. Sinks the squeeze below the
/// elementwise operations after it, so that they are next to the convolution and can be fused.
void sink_squeeze(ir::Function& function);
/// Fuses scale, bias, residual, clamp and the next quantize into the integer operation before them.
void fuse_requantize(ir::Function& function);

/// Replaces products of floats with large constant weights of 4 or 8 bits by packed_linear; without
/// `any_rows` only those of few rows, where reading the weights takes the time.
void pack_weights(ir::Function& function, bool any_rows);

// --- matchers ---

/// The operations that the steps name.
struct Ops {
  const Op &quantize = get_op("quantize"), &dequantize = get_op("dequantize"),
           &quantized_conv = get_op("quantized_conv"),
           &quantized_conv_transpose = get_op("quantized_conv_transpose"),
           &quantized_linear = get_op("quantized_linear"),
           &quantized_matmul = get_op("quantized_matmul"), &conv2d = get_op("conv2d"),
           &conv3d = get_op("conv3d"), &conv_transpose = get_op("conv2d_input_grad"),
           &linear = get_op("linear"), &matmul = get_op("matmul"), &transpose = get_op("transpose"),
           &max_pool = get_op("max_pool2d"), &concat = get_op("concat"),
           &index_select = get_op("index_select"), &embedding = get_op("embedding"),
           &add = get_op("add"), &multiply = get_op("multiply"), &relu = get_op("relu"),
           &clip = get_op("clip"), &cast = get_op("cast"), &reshape = get_op("reshape"),
           &squeeze = get_op("squeeze"), &unsqueeze = get_op("unsqueeze"),
           &slice = get_op("strided_slice");
};
const Ops& known_ops();

bool is_8_bit(DType dtype);
/// True for quantized_conv, quantized_conv_transpose, quantized_linear and quantized_matmul.
bool is_int8_op(const Op& op);
bool is_scalar(const ir::Value* v);
bool is_constant_scalar(const ir::Value* v);
/// True for a finite, positive constant scalar, as scales have to be.
bool is_positive(const ir::Value* v);
bool same_scalar(const ir::Value* a, const ir::Value* b);
const AttrValue& attribute(const ir::Operation& o, const char* name);
void set_attribute(ir::Operation& o, const char* name, AttrValue value);
/// The producer of the value if it is an `op`, else null.
ir::Operation* produced_by(const ir::Value* v, const Op& op);
/// The per-tensor dequantize of 8-bit values that produces `v`, else null.
ir::Operation* per_tensor_dequantize(const ir::Value* v);
/// The only axis of `rank` along which `v` has several elements; -1 for a single element, -2 if
/// there are several such axes.
int varying_axis(const ir::Value* v, int rank);
Array flattened(const Array& a);
/// The bias [channels] of the int8 operation `o`: the int32 bias in units of the accumulator if
/// that is what `bias` dequantizes, else `bias` itself.
ir::Value* accumulator_bias(ir::Function& function, const ir::Operation& o, ir::Value* bias);

}  // namespace paddle::passes::qdq
