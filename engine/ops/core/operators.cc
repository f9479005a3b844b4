#include "ops/core/operators.h"

#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

#include <algorithm>

namespace paddle {

Tensor operator+(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return ops::subtract(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return ops::multiply(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return ops::divide(a, b); }
Tensor operator-(const Tensor& a) { return ops::neg(a); }
Tensor operator+(const Tensor& a, double b) { return ops::add(a, Tensor::number(b)); }
Tensor operator+(double a, const Tensor& b) { return ops::add(Tensor::number(a), b); }
Tensor operator-(const Tensor& a, double b) { return ops::subtract(a, Tensor::number(b)); }
Tensor operator-(double a, const Tensor& b) { return ops::subtract(Tensor::number(a), b); }
Tensor operator*(const Tensor& a, double b) { return ops::multiply(a, Tensor::number(b)); }
Tensor operator*(double a, const Tensor& b) { return ops::multiply(Tensor::number(a), b); }
Tensor operator/(const Tensor& a, double b) { return ops::divide(a, Tensor::number(b)); }
Tensor operator/(double a, const Tensor& b) { return ops::divide(Tensor::number(a), b); }

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (same_shape(x.shape(), shape)) return x;
  const size_t lead = x.shape().size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < x.shape().size(); ++i) {
    const bool added = i < lead;
    const bool stretched = !added && !x.shape()[i].same(shape[i - lead]) &&
                           shape[i - lead].is_constant() && shape[i - lead].value() == 1;
    if (added || stretched) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return x;
  const Tensor summed = ops::sum(x, axes, std::nullopt, true);
  return lead > 0 ? ops::reshape(summed, shape) : summed;
}

Tensor full_of(const Shape& shape, double value, DType dtype) {
  return ops::full(shape, AttrValue(value), dtype);
}

Tensor zeros_like(const Tensor& x) { return full_of(x.shape(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return full_of(x.shape(), 1, x.dtype()); }

Tensor restore_axes(const Tensor& reduced, const std::vector<int64_t>& axes, bool kept) {
  return kept || axes.empty() ? reduced : ops::unsqueeze(reduced, axes);
}

Tensor dim_value(const Dim& dim, DType dtype) {
  if (dim.is_constant()) return full_of({}, static_cast<double>(dim.value()), dtype);
  return ops::dim_value(dim, dtype);
}

Tensor range_of(const Dim& count, DType dtype) {
  return ops::cumsum(full_of({count}, 1, dtype), int64_t{0}) - Tensor::number(int64_t{1});
}

Tensor count_of(const Shape& shape, const std::vector<int64_t>& axes, DType dtype) {
  Dim count = 1;
  for (const int64_t a : axes) count = count * shape[static_cast<size_t>(a)];
  return dim_value(count, dtype);
}

std::vector<int64_t> normal_axes(const std::optional<std::vector<int64_t>>& axes, int64_t rank) {
  std::vector<int64_t> out;
  if (!axes || axes->empty()) {
    for (int64_t i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  if (rank == 0) return out;
  for (const int64_t a : *axes) out.push_back(a < 0 ? a + rank : a);
  std::sort(out.begin(), out.end());
  return out;
}

Tensor reduce_loss(const Tensor& loss, const std::string& reduction) {
  if (reduction == "mean") return ops::mean(loss);
  if (reduction == "sum") return ops::sum(loss);
  return loss;
}

Tensor mask_of(const Tensor& condition, const Tensor& like) {
  return ops::cast(condition, like.dtype());
}

}  // namespace paddle
