#pragma once
// Products of quantised matrices, which the operators of ONNX and of com.microsoft share.

#include "onnx/graph/node_call.h"

namespace paddle::onnx {

/// True for one number, be it a scalar or a vector of one.
bool is_single_element(const Tensor& v);
/// A vector of one number as a scalar; others, and undefined ones, as they are.
Tensor scalar_if_single(const Tensor& v);

/// The right side of a product of bytes with a known matrix as int8 with the zero point 0: one
/// matrix, or two whose sum it is; none where the product does not run on integers.
Tensors int8_weights(const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero);

/// The sums of (x - zero) · weights and the int32 bias on integers; as numbers where there is a
/// scale (one or per column), quantised where there is a second one, for the result. Others may be
/// undefined.
Tensor quantized_matmul(const Tensor& x, const Tensors& weights, const Tensor& zero,
                        const Tensor& scale = {}, const Tensor& bias = {},
                        const Tensor& out_scale = {}, const Tensor& out_zero = {});

/// The product in float32 of bytes whose scale is `scale`, with a matrix that inputs i (values),
/// `i_scale` and `i_zero` give.
Tensor quantized_matmul_to_float(const NodeCall& c, const Tensor& x, const Tensor& x_zero,
                                 const Tensor& x_scale, size_t i, size_t i_scale, size_t i_zero);

/// Rows of weights in blocks of `block`, each with a scale and a zero point, as numbers. Where
/// `group_of` is not empty it gives the block of each column, and they are not side by side.
Tensor dequantize_blocks(const NodeCall& c, const Array& bytes, const Tensor& scales,
                         const Value& zeros, int64_t bits, int64_t rows, int64_t columns,
                         int64_t block, std::vector<int64_t> group_of = {});

}  // namespace paddle::onnx
