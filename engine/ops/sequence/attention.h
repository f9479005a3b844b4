#pragma once
// Attention as products of matrices, for tools that change these products.

#include <functional>

#include "tensor/tensor.h"

namespace paddle {

/// The operation `attention` from matmul and softmax: softmax(scale * query @ key^T
/// + mask) @ value, operands [batch, sequence, heads, dim]. `mask` may be undefined; `change` maps
/// the result of softmax [batch, heads, queries, keys] to what is multiplied by the value.
Tensor written_out_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                             const Tensor& mask, double scale, bool is_causal,
                             const std::function<Tensor(const Tensor&)>& change);

}  // namespace paddle
