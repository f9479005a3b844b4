#pragma once
// Helpers that several operator implementations share.

#include <string>
#include <utility>
#include <vector>

#include "onnx/operator_tables.h"

namespace paddle::onnx {

/// Rules that apply one function of ops/ to the inputs as they are.
template <Tensor (*F)(const Tensor&)>
Values unary(NodeCall& c) {
  return {F(c.tensor(0))};
}
template <Tensor (*F)(const Tensor&, const Tensor&)>
Values binary(NodeCall& c) {
  c.check_same_dtype({0, 1});
  return {F(c.tensor(0), c.tensor(1))};
}

/// A 0-D tensor of this dtype.
Tensor scalar(double value, DType dtype);
Tensor int_scalar(int64_t value, DType dtype = DType::kI64);
/// 0 ... n - 1 as 64-bit integers.
Tensor iota(const Dim& n);
/// The least and the greatest number of an integer type.
std::pair<double, double> integer_range(DType dtype);
/// A vector of integers as a tensor.
Tensor int_vector(const std::vector<int64_t>& values, DType dtype = DType::kI64);
/// The size of an axis, which must be known.
int64_t constant_dim(const Tensor& x, int64_t axis);
/// The whole shape, which must be known.
Dims constant_shape(const Tensor& x);
/// [start, end) along an axis.
Tensor slice_axis(const Tensor& x, int64_t axis, const Dim& start, const Dim& end,
                  int64_t step = 1);
/// x [steps, batch, ...] with the first `lengths` [batch] steps of each sequence backwards.
Tensor reverse_sequences(const Tensor& x, const Tensor& lengths);
/// x with borders along an axis, as the modes of `Pad` make them, or less where they are negative;
/// `fill` is for the mode "constant".
Tensor pad_axis(const Tensor& x, int64_t axis, int64_t before, int64_t after,
                const std::string& mode, const Tensor& fill);
/// Rules that other forms of the operators share.
Values average_pool_rule(NodeCall& c);
Values max_pool_rule(NodeCall& c);
Values global_average_pool_rule(NodeCall& c);
Values global_max_pool_rule(NodeCall& c);
Values nchwc_upsample_rule(NodeCall& c);
Values dynamic_quantize_lstm_rule(NodeCall& c);
Values attn_lstm_rule(NodeCall& c);
Values qlinear_conv_rule(NodeCall& c);
Values conv_transpose_rule(NodeCall& c);
/// The axes 0 to n - 1.
std::vector<int64_t> leading_axes(int64_t n);
/// A cast as the operator Cast does it: what is out of range of an 8-bit float type becomes the
/// greatest number of the type or (not `saturate`) infinity or NaN; `mode` is for powers of two.
Tensor convert(const Tensor& x, DType to, bool saturate, const std::string& mode);
/// `f` on `x` in float32 if `x` is of a 16-bit float type, and back.
template <class F>
Tensor compute_in_float32(const Tensor& x, F&& f) {
  if (x.dtype() != DType::kF16 && x.dtype() != DType::kBF16) return f(x);
  return ops::cast(f(ops::cast(x, DType::kF32)), x.dtype());
}

/// x / size, and 0 where the size is 0.
inline Tensor divide_no_nan(const Tensor& x, const Tensor& size) {
  const Tensor zero = scalar(0, x.dtype());
  return ops::where(ops::equal(size, zero), zero, x / size);
}

/// How many places of one axis an operator may list that takes them one by one.
int64_t max_listed_indices();

}  // namespace paddle::onnx
