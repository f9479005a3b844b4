#pragma once
// Batches of matrices for kernels that solve and decompose them one by one, in parallel.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <type_traits>

#include "base/parallel.h"
#include "kernels/linalg/lapack.h"
#include "ops/core/kernel.h"
#include "tensor/strided_copy.h"

namespace paddle::cpu {

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

/// Calls `body(matrix index)` for `count` matrices in parallel; `cost` is that of one. At most 64
/// at a time: OpenBLAS has 128 buffers for its callers, and ends the process when they are used up.
template <class Body>
void for_each_of(int64_t count, double cost, Body body) {
  constexpr int64_t kMaxWorkers = 64;
  const auto cheap = static_cast<int64_t>(std::clamp(16384 / std::max(cost, 1.0), 1.0, 16384.0));
  parallel_for(count, std::max(cheap, (count + kMaxWorkers - 1) / kMaxWorkers),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) body(i);
               });
}

/// The same kind of number in f64.
template <class T>
using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;

/// Small matrices are computed in f64 whatever their type: it takes no longer, and a gradient
/// through close eigenvalues needs the digits.
constexpr int64_t kSmallMatrix = 32;

/// `make(tag, computed)` with the type of the elements and the type to compute in, for the types
/// that solvers take; null for others.
template <class Make>
std::unique_ptr<Kernel> visit_matrix(DType dtype, const MatrixSizes& sizes, const Make& make) {
  const auto choose = [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    if (std::max(sizes.rows, sizes.columns) <= kSmallMatrix) return make(tag, TypeTag<Wide<T>>{});
    return make(tag, tag);
  };
  if (dtype == DType::kF32) return choose(TypeTag<float>{});
  if (dtype == DType::kF64) return choose(TypeTag<double>{});
  return is_complex(dtype) ? visit_complex(dtype, choose) : nullptr;
}

/// A kernel that calls `body(tag, computed, matrix index, size, operands, results)` for every
/// square matrix of the first operand.
template <class Body>
std::unique_ptr<Kernel> for_each_matrix(const KernelRequest& request, Body body) {
  const MatrixSizes sizes(request.operands[0].shape);
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (sizes.rows != sizes.columns)
        fail(ErrorCode::kUsage, "expected square matrices, found ", sizes.rows, " by ",
             sizes.columns);
      for_each_of(sizes.count, sizes.cost(),
                  [&](int64_t i) { body(tag, computed, i, sizes.rows, operands, results); });
    });
  });
}

/// The matrix `i` of a tensor.
template <class T>
const T* matrix_at(const void* base, int64_t i, int64_t rows, int64_t columns) {
  return static_cast<const T*>(base) + i * rows * columns;
}
template <class T>
T* matrix_at(void* base, int64_t i, int64_t rows, int64_t columns) {
  return static_cast<T*>(base) + i * rows * columns;
}

/// to[j, i] = from[i, j] of row-major matrices, with a conversion.
template <class From, class To>
void transpose(const From* from, int64_t rows, int64_t columns, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    StridedCopy({columns, rows}, {1, columns}, sizeof(To)).run(from, to);
    return;
  }
  constexpr int64_t kBlock = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock)
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock)
      for (int64_t j = j0; j < std::min(columns, j0 + kBlock); ++j)
        for (int64_t i = i0; i < std::min(rows, i0 + kBlock); ++i)
          to[j * rows + i] = static_cast<To>(from[i * columns + j]);
}

/// A row-major matrix, to compute in C.
template <class C, class T>
ColumnMatrix<C> load(const T* from, int64_t rows, int64_t columns) {
  ColumnMatrix<C> out(rows, columns);
  transpose(from, rows, columns, out.data());
  return out;
}
template <class C, class T>
void store(const ColumnMatrix<C>& from, T* to) {
  transpose(from.data(), from.columns, from.rows, to);
}

/// The transpose of a row-major matrix: its elements in the same order.
template <class C, class T>
ColumnMatrix<C> load_transposed(const T* from, int64_t rows, int64_t columns) {
  ColumnMatrix<C> out(columns, rows);
  std::transform(from, from + rows * columns, out.data(), [](T v) { return static_cast<C>(v); });
  return out;
}
template <class C, class T>
void store_transposed(const ColumnMatrix<C>& from, T* to) {
  std::transform(from.values.begin(), from.values.end(), to, [](C v) { return static_cast<T>(v); });
}

template <class T>
bool all_finite(const T* values, int64_t count) {
  const auto finite = [](T v) {
    if constexpr (kIsComplex<T>)
      return std::isfinite(v.real()) && std::isfinite(v.imag());
    else
      return std::isfinite(v);
  };
  return std::all_of(values, values + count, finite);
}

/// A kernel that calls `use(lapack, x, i, results)` for each matrix i of the operand, whose
/// elements are x and finite; kData otherwise. A call costs `work` times MatrixSizes::cost. `op`
/// begins the messages of errors.
template <class Use>
std::unique_ptr<Kernel> for_each_finite(std::string_view op, double work,
                                        const KernelRequest& request, Use use) {
  const MatrixSizes sizes(request.operands[0].shape);
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (sizes.least() == 0) return;
      const Lapack<C> lapack(op);
      for_each_of(sizes.count, work * sizes.cost(), [&](int64_t i) {
        const T* const x = matrix_at<T>(operands[0], i, sizes.rows, sizes.columns);
        if (!all_finite(x, sizes.rows * sizes.columns))
          fail(ErrorCode::kData, op, ": a matrix has elements that are not finite");
        use(lapack, x, i, results);
      });
    });
  });
}

template <class Values, class T>
void store_values(const Values& values, T* to) {
  std::transform(values.begin(), values.end(), to, [](auto v) { return static_cast<T>(v); });
}

}  // namespace paddle::cpu
