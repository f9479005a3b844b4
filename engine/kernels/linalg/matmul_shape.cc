#include "kernels/linalg/matmul_shape.h"

#include <algorithm>
#include <utility>

namespace paddle::cpu {

MatmulShape MatmulShape::of(const Layout& x, const Layout& y, bool transpose_x, bool transpose_y) {
  MatmulShape s;
  Dims x_shape = x.shape, x_strides = x.strides, y_shape = y.shape, y_strides = y.strides;
  if (x_shape.size() == 1) {
    x_shape.insert(x_shape.begin(), 1);
    x_strides.insert(x_strides.begin(), 0);
  } else if (transpose_x) {
    std::swap(x_shape[x_shape.size() - 1], x_shape[x_shape.size() - 2]);
    std::swap(x_strides[x_shape.size() - 1], x_strides[x_shape.size() - 2]);
  }
  if (y_shape.size() == 1) {
    y_shape.push_back(1);
    y_strides.push_back(0);
  } else if (transpose_y) {
    std::swap(y_shape[y_shape.size() - 1], y_shape[y_shape.size() - 2]);
    std::swap(y_strides[y_shape.size() - 1], y_strides[y_shape.size() - 2]);
  }
  const auto take_last = [](Dims& dims) {
    const int64_t last = dims.back();
    dims.pop_back();
    return last;
  };
  s.k = take_last(x_shape);
  s.x_column = take_last(x_strides);
  s.m = take_last(x_shape);
  s.x_row = take_last(x_strides);
  s.n = take_last(y_shape);
  s.y_column = take_last(y_strides);
  take_last(y_shape);
  s.y_row = take_last(y_strides);

  const size_t rank = std::max(x_shape.size(), y_shape.size());
  const auto align = [&](Dims& shape, Dims& strides) {
    shape.insert(shape.begin(), rank - shape.size(), 1);
    strides.insert(strides.begin(), rank - strides.size(), 0);
    for (size_t i = 0; i < rank; ++i)
      if (shape[i] == 1) strides[i] = 0;
  };
  align(x_shape, x_strides);
  align(y_shape, y_strides);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = x_shape[i] == 1 ? y_shape[i] : x_shape[i];
    if (size == 1) continue;
    // Adjacent batch axes that are contiguous in both operands are merged.
    if (!s.batch.empty() && s.x_batch.back() == x_strides[i] * size &&
        s.y_batch.back() == y_strides[i] * size) {
      s.batch.back() *= size;
      s.x_batch.back() = x_strides[i];
      s.y_batch.back() = y_strides[i];
    } else {
      s.batch.push_back(size);
      s.x_batch.push_back(x_strides[i]);
      s.y_batch.push_back(y_strides[i]);
    }
  }
  // Batches that share y are further rows of x.
  if (!s.batch.empty() && s.y_batch.back() == 0 &&
      (s.m == 1 || s.x_batch.back() == s.m * s.x_row)) {
    if (s.m == 1) s.x_row = s.x_batch.back();
    s.m *= s.batch.back();
    s.batch.pop_back();
    s.x_batch.pop_back();
    s.y_batch.pop_back();
  }
  return s;
}

int64_t MatmulShape::offset(const Dims& strides, int64_t index) const {
  int64_t result = 0;
  for (size_t i = batch.size(); i-- > 0;) {
    result += index % batch[i] * strides[i];
    index /= batch[i];
  }
  return result;
}

}  // namespace paddle::cpu
