#pragma once
// Quantized matrix products, shared by the operators of ONNX and com.microsoft.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// True for a tensor with one element and at most one axis.
bool is_single_element(const Tensor& v);
/// A vector of one element as 0-D; other (and undefined) tensors unchanged.
Tensor scalar_if_single(const Tensor& v);

/// Constant weights of a quantized product as int8 with zero point 0: one matrix, or two whose sum
/// it is if the values leave int8. Empty if the product does not run in int8.
Tensors int8_weights(const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero);

/// Sums of (x - zero) · weights plus the int32 bias; dequantized if there is a `scale` (per tensor
/// or per column), requantized if there is an `out_scale`. Optional tensors may be undefined.
Tensor quantized_matmul(const Tensor& x, const Tensors& weights, const Tensor& zero,
                        const Tensor& scale = {}, const Tensor& bias = {},
                        const Tensor& out_scale = {}, const Tensor& out_zero = {});

/// Float32 product of quantized x with the quantized matrix in inputs i (values), `i_scale` and
/// `i_zero`.
Tensor quantized_matmul_to_float(const NodeCall& c, const Tensor& x, const Tensor& x_zero,
                                 const Tensor& x_scale, size_t i, size_t i_scale, size_t i_zero);

/// Dequantizes rows of block-quantized weights; each block has a scale and a zero point. A
/// non-empty `group_of` maps columns to blocks (act-order) instead of `block` adjacent columns.
Tensor dequantize_blocks(const NodeCall& c, const Array& bytes, const Tensor& scales,
                         const Value& zeros, int64_t bits, int64_t rows, int64_t columns,
                         int64_t block, std::vector<int64_t> group_of = {});

}  // namespace paddle::onnx
