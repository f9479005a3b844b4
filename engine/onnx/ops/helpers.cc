#include "onnx/ops/helpers.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "ops/generated/creation.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {

Tensor scalar(double value, DType dtype) { return ops::full(Shape(), value, dtype); }

Tensor int_scalar(int64_t value, DType dtype) { return ops::full(Shape(), value, dtype); }

Tensor iota(const Dim& n) {
  return ops::arange(AttrValue(0), AttrValue(n), AttrValue(1), DType::kI64);
}

std::pair<double, double> integer_range(DType dtype) {
  const int bits = info(dtype).bits;
  if (info(dtype).kind == DTypeKind::kUnsigned) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

Tensor int_vector(const std::vector<int64_t>& values, DType dtype) {
  return Tensor(Array::from(values, {static_cast<int64_t>(values.size())}).cast(dtype));
}

int64_t constant_dim(const Tensor& x, int64_t axis) {
  const Dim& d = x.dim(axis);
  if (!d.is_constant())
    throw DataDependentError(ErrorCode::kModel, str("the size ", d, " must be constant"));
  return d.value();
}

Dims constant_shape(const Tensor& x) {
  Dims out;
  for (int64_t i = 0; i < x.ndim(); ++i) out.push_back(constant_dim(x, i));
  return out;
}

Tensor slice_axis(const Tensor& x, int64_t axis, const Dim& start, const Dim& end, int64_t step) {
  return ops::strided_slice(x, {axis}, {start}, {end}, {step});
}

std::vector<int64_t> leading_axes(int64_t n) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n; ++i) axes.push_back(i);
  return axes;
}

int64_t max_listed_indices() { return std::min(int64_t{1} << 26, limits().memory / 64); }

}  // namespace paddle::onnx
