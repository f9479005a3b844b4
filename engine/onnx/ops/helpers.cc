#include "onnx/ops/helpers.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace paddle::onnx {

Tensor scalar(double value, DType dtype) { return ops::full(Shape(), value, dtype); }

Tensor integer_scalar(int64_t value, DType dtype) { return ops::full(Shape(), value, dtype); }

Tensor count_up(const Dim& n) {
  return ops::arange(AttrValue(0), AttrValue(n), AttrValue(1), DType::kI64);
}

std::pair<double, double> range_of(DType dtype) {
  const int bits = info(dtype).bits;
  if (info(dtype).kind == DTypeKind::kUnsigned) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

Tensor integer_vector(const std::vector<int64_t>& values, DType dtype) {
  return Tensor(Array::from(values, {static_cast<int64_t>(values.size())}).cast(dtype));
}

int64_t known_size(const Tensor& x, int64_t axis) {
  const Dim& d = x.dim(axis);
  if (!d.is_constant()) throw NeedsValue(ErrorCode::kModel, str("the size ", d, " must be known"));
  return d.value();
}

Dims known_shape(const Tensor& x) {
  Dims out;
  for (int64_t i = 0; i < x.ndim(); ++i) out.push_back(known_size(x, i));
  return out;
}

Tensor part(const Tensor& x, int64_t axis, const Dim& start, const Dim& end, int64_t step) {
  return ops::strided_slice(x, {axis}, {start}, {end}, {step});
}

std::vector<int64_t> first_axes(int64_t n) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n; ++i) axes.push_back(i);
  return axes;
}

Tensor permuted(const Tensor& x, const std::vector<int64_t>& order) {
  return ops::transpose(x, order);
}

int64_t most_places() { return std::min(int64_t{1} << 26, limits().memory / 64); }

}  // namespace paddle::onnx
