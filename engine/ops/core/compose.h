#pragma once
// Helpers for decompositions: slices of an axis, checks, errors in the operation's name. For the
// .cc files of rules.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/core/operators.h"
#include "ops/core/rules.h"
#include "ops/core/size_limits.h"

namespace paddle::rules {

using Axes = std::vector<int64_t>;

/// Throws kUsage with the operation's name as prefix.
template <class... Parts>
[[noreturn, gnu::always_inline]] inline void reject(std::string_view op, const Parts&... parts) {
  fail(ErrorCode::kUsage, op, ": ", parts...);
}

/// Throws kUsage unless 32 bits hold the argument `name`, a size, count or factor.
inline void check_32_bits(std::string_view op, std::string_view name, int64_t value) {
  require_32_bits(value, op, ": ", name);
}

/// `axis` counted from 0; kUsage if it is out of range.
inline int64_t axis_of(std::string_view op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) reject(op, "axis ", axis, " is out of range for rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

/// x[start:end:stride] along one axis.
Tensor slice_axis(const Tensor& x, int64_t axis, const Dim& start, const Dim& end,
                  int64_t stride = 1);

/// The shape of the matrix product of the first two operands, as in NumPy.
Shape matmul_shape(InferContext& c, bool transpose_x, bool transpose_y);

/// Throws kUsage unless the operands of an elementwise loss have the same shape or the second is a
/// scalar: [n, 1] and [n] would broadcast to all pairs of samples.
void require_same_shape(std::string_view op, std::string_view x_name, const Tensor& x,
                        std::string_view y_name, const Tensor& y);
/// Throws kUsage if multiplying by `factor` would broadcast the loss to a larger shape.
void require_no_expansion(std::string_view op, std::string_view name, const Tensor& factor,
                          const Tensor& loss);

/// Throws kUsage if a size is negative.
void check_shape(InferContext& c, const Shape& shape);
/// Throws kUsage unless x is 1-D.
inline void check_vector(std::string_view op, const Tensor& x) {
  if (x.ndim() != 1) reject(op, "expected a vector, found ", x.type());
}

inline bool is_one(const Dim& d) { return d.is_constant() && d.value() == 1; }
Tensor flat(const Tensor& x);
inline Tensor integer(int64_t value) { return Tensor::number(value); }
inline Tensor number(double value) { return Tensor::number(value); }

}  // namespace paddle::rules
