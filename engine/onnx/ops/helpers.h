#pragma once
// Helpers that several operator implementations share.

#include <string>
#include <utility>
#include <vector>

#include "onnx/operator_tables.h"
#include "ops/generated/math.h"

namespace paddle::onnx {

/// Rules that apply one function of ops/ to the inputs unchanged.
template <Tensor (*F)(const Tensor&)>
Values unary(NodeCall& c) {
  return {F(c.tensor(0))};
}
template <Tensor (*F)(const Tensor&, const Tensor&)>
Values binary(NodeCall& c) {
  c.check_same_dtype({0, 1});
  return {F(c.tensor(0), c.tensor(1))};
}

/// A 0-D tensor.
Tensor scalar(double value, DType dtype);
Tensor int_scalar(int64_t value, DType dtype = DType::kI64);
/// 0, 1, …, n - 1 as int64.
Tensor iota(const Dim& n);
/// Smallest and largest value of an integer dtype.
std::pair<double, double> integer_range(DType dtype);
/// A 1-D tensor.
Tensor int_vector(const std::vector<int64_t>& values, DType dtype = DType::kI64);
/// The size of an axis; DataDependentError if it is symbolic.
int64_t constant_dim(const Tensor& x, int64_t axis);
/// The shape of x; DataDependentError if it is symbolic.
Dims constant_shape(const Tensor& x);
/// x[start:end:step] along an axis.
Tensor slice_axis(const Tensor& x, int64_t axis, const Dim& start, const Dim& end,
                  int64_t step = 1);
/// x [steps, batch, ...] with the first `lengths` [batch] steps of each sequence reversed.
Tensor reverse_sequences(const Tensor& x, const Tensor& lengths);
/// Pads an axis with a mode of `Pad`, or crops it for negative sizes; `fill` is for mode
/// "constant".
Tensor pad_axis(const Tensor& x, int64_t axis, int64_t before, int64_t after,
                const std::string& mode, const Tensor& fill);
/// Rules that several operators share.
Values average_pool_rule(NodeCall& c);
Values max_pool_rule(NodeCall& c);
Values global_average_pool_rule(NodeCall& c);
Values global_max_pool_rule(NodeCall& c);
Values nchwc_upsample_rule(NodeCall& c);
Values dynamic_quantize_lstm_rule(NodeCall& c);
Values attn_lstm_rule(NodeCall& c);
Values qlinear_conv_rule(NodeCall& c);
Values conv_transpose_rule(NodeCall& c);
/// 0, 1, …, n - 1.
std::vector<int64_t> leading_axes(int64_t n);
/// The conversion of operator Cast: values beyond the range of an 8-bit float type saturate or (not
/// `saturate`) become infinity or NaN; `mode` is the rounding to powers of two (float8e8m0).
Tensor convert(const Tensor& x, DType to, bool saturate, const std::string& mode);
/// Computes f(x) in float32 for 16-bit floats and casts back.
template <class F>
Tensor compute_in_float32(const Tensor& x, F&& f) {
  if (x.dtype() != DType::kF16 && x.dtype() != DType::kBF16) return f(x);
  return ops::cast(f(ops::cast(x, DType::kF32)), x.dtype());
}

/// x / size, or 0 where size is 0.
inline Tensor divide_no_nan(const Tensor& x, const Tensor& size) {
  const Tensor zero = scalar(0, x.dtype());
  return ops::where(ops::equal(size, zero), zero, x / size);
}

/// Limit on indices along one axis for operators that enumerate them.
int64_t max_listed_indices();

}  // namespace paddle::onnx
