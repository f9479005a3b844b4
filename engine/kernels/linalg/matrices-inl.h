#pragma once
// Batches of matrices as Eigen sees them, for kernels that solve and decompose them one by one.

#include <Eigen/Core>
#include <algorithm>

#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "tensor/complex.h"

namespace paddle::cpu {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Real = typename RealPart<T>::type;
/// The same kind of number in f64.
template <class T>
using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
/// The type to compute in where floats are exact enough: complex numbers are computed in f64, so
/// that decompositions are compiled for one complex type.
template <class T>
using Computed = std::conditional_t<kIsComplex<T>, std::complex<double>, T>;
template <class T>
using In = Eigen::Map<const Matrix<T>>;
template <class T>
using Out = Eigen::Map<Matrix<T>>;

/// `make(tag)` for the types that solvers take; null for others.
template <class Make>
std::unique_ptr<Kernel> visit_matrix(DType dtype, const Make& make) {
  if (dtype == DType::kF64) return make(TypeTag<double>{});
  if (is_complex(dtype)) return visit_complex(dtype, make);
  return dtype == DType::kF32 ? make(TypeTag<float>{}) : nullptr;
}

/// Calls `body(tag, matrix index, size)` for every matrix of the first operand.
template <class Body>
std::unique_ptr<Kernel> for_each_matrix(const KernelRequest& request, Body body) {
  const Dims& shape = request.operands[0].shape;
  const int64_t n = shape.back(), rows = shape[shape.size() - 2];
  int64_t count = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  const auto make = [&](auto tag) {
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (rows != n) fail(ErrorCode::kUsage, "expected square matrices, found ", rows, " by ", n);
      parallel_for(count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n * n * n)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) body(tag, i, n, operands, results);
                   });
    });
  };
  return visit_matrix(request.operands[0].dtype, make);
}

template <class T>
In<T> matrix_in(const void* base, int64_t i, int64_t rows, int64_t columns) {
  return In<T>(static_cast<const T*>(base) + i * rows * columns, rows, columns);
}
/// The same in the type to compute in.
template <class T>
Matrix<Computed<T>> computed_in(const void* base, int64_t i, int64_t rows, int64_t columns) {
  return matrix_in<T>(base, i, rows, columns).template cast<Computed<T>>();
}
template <class T>
Out<T> matrix_out(void* base, int64_t i, int64_t rows, int64_t columns) {
  return Out<T>(static_cast<T*>(base) + i * rows * columns, rows, columns);
}

/// Calls `body(matrix index)` for `count` matrices in parallel; `cost` is that of one.
template <class Body>
void for_each_of(int64_t count, double cost, Body body) {
  const auto grain = static_cast<int64_t>(std::clamp(16384 / std::max(cost, 1.0), 1.0, 16384.0));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Rows, columns and number of the matrices of a tensor.
struct MatrixSizes {
  int64_t rows, columns, count = 1;

  explicit MatrixSizes(const Dims& shape) : rows(shape[shape.size() - 2]), columns(shape.back()) {
    for (size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  }
  int64_t least() const { return std::min(rows, columns); }
  double cost() const {
    return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(least());
  }
};

}  // namespace paddle::cpu
