#pragma once
// Arithmetic on tensors in rules and layers: `x * 2.0 + y`. Numbers are weak scalars: they never
// widen a tensor. Also helpers that many gradient rules share.

#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle {

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator+(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(const Tensor& a, double b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(const Tensor& a, double b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(const Tensor& a, double b);
Tensor operator/(double a, const Tensor& b);

/// Sums `x` over the axes that broadcasting from `shape` added or expanded.
Tensor sum_to(const Tensor& x, const Shape& shape);
/// Zeros of the shape and dtype of `x`.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_of(const Shape& shape, double value, DType dtype);
/// Restores reduced axes with size 1, unless `kept`.
Tensor restore_axes(const Tensor& reduced, const std::vector<int64_t>& axes, bool kept);
/// Number of elements along the axes as a 0-D tensor of `dtype`, for symbolic dims too.
Tensor count_of(const Shape& shape, const std::vector<int64_t>& axes, DType dtype);
/// The axes of an optional attribute, counted from 0; none or [] means all.
std::vector<int64_t> normal_axes(const std::optional<std::vector<int64_t>>& axes, int64_t rank);
/// "mean", "sum" or "none" over all elements.
Tensor reduce_loss(const Tensor& loss, const std::string& reduction);
/// A condition as a mask of the dtype of `like`.
Tensor mask_of(const Tensor& condition, const Tensor& like);
/// 0, 1, …, count - 1 along a new 1-D tensor.
Tensor range_of(const Dim& count, DType dtype);
/// The value of a dim as a 0-D tensor of `dtype`, for a symbolic dim too.
Tensor dim_value(const Dim& dim, DType dtype);

}  // namespace paddle
