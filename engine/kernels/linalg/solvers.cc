// Inverses, determinants, Cholesky factors, singular values and linear systems, one matrix of the
// batch at a time.

#include <Eigen/Dense>

#include "base/parallel.h"
#include "ops/core/kernel.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using In = Eigen::Map<const Matrix<T>>;
template <class T>
using Out = Eigen::Map<Matrix<T>>;

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
  const DType dtype = request.operands[0].dtype;
  if (dtype == DType::kF64) return make(TypeTag<double>{});
  return dtype == DType::kF32 ? make(TypeTag<float>{}) : nullptr;
}

template <class T>
In<T> matrix_in(const void* base, int64_t i, int64_t rows, int64_t columns) {
  return In<T>(static_cast<const T*>(base) + i * rows * columns, rows, columns);
}
template <class T>
Out<T> matrix_out(void* base, int64_t i, int64_t rows, int64_t columns) {
  return Out<T>(static_cast<T*>(base) + i * rows * columns, rows, columns);
}

template <class T>
Eigen::PartialPivLU<Matrix<T>> factors(std::string_view op, const In<T>& x) {
  Eigen::PartialPivLU<Matrix<T>> lu(x);
  for (Eigen::Index i = 0; i < x.rows(); ++i)
    if (lu.matrixLU()(i, i) == T(0)) fail(ErrorCode::kData, op, ": a matrix is singular");
  return lu;
}

}  // namespace

std::unique_ptr<Kernel> prepare_inv(const KernelRequest& request) {
  return for_each_matrix(
      request, [](auto tag, int64_t i, int64_t n, void* const* operands, void* const* results) {
        using T = typename decltype(tag)::type;
        if (n == 0) return;
        matrix_out<T>(results[0], i, n, n) =
            factors<T>("inv", matrix_in<T>(operands[0], i, n, n)).inverse();
      });
}

std::unique_ptr<Kernel> prepare_det(const KernelRequest& request) {
  return for_each_matrix(
      request, [](auto tag, int64_t i, int64_t n, void* const* operands, void* const* results) {
        using T = typename decltype(tag)::type;
        const auto x = matrix_in<T>(operands[0], i, n, n);
        static_cast<T*>(results[0])[i] =
            n == 0 ? T(1) : Eigen::PartialPivLU<Matrix<T>>(x).determinant();
      });
}

std::unique_ptr<Kernel> prepare_log_abs_det(const KernelRequest& request) {
  return for_each_matrix(
      request, [](auto tag, int64_t i, int64_t n, void* const* operands, void* const* results) {
        using T = typename decltype(tag)::type;
        T sign = 1, total = 0;
        if (n > 0) {
          const Eigen::PartialPivLU<Matrix<T>> lu(matrix_in<T>(operands[0], i, n, n));
          sign = static_cast<T>(lu.permutationP().determinant());
          for (int64_t k = 0; k < n; ++k) {
            const T pivot = lu.matrixLU()(k, k);
            sign *= static_cast<T>((pivot > 0) - (pivot < 0));
            total += std::log(std::abs(pivot));
          }
        }
        static_cast<T*>(results[0])[i] = sign;
        static_cast<T*>(results[1])[i] = total;
      });
}

std::unique_ptr<Kernel> prepare_solve_matrices(const KernelRequest& request) {
  const int64_t columns = request.operands[1].shape.back();
  return for_each_matrix(request, [columns](auto tag, int64_t i, int64_t n, void* const* operands,
                                            void* const* results) {
    using T = typename decltype(tag)::type;
    if (n == 0 || columns == 0) return;
    matrix_out<T>(results[0], i, n, columns) =
        factors<T>("solve", matrix_in<T>(operands[0], i, n, n))
            .solve(matrix_in<T>(operands[1], i, n, columns));
  });
}

std::unique_ptr<Kernel> prepare_singular_values(const KernelRequest& request) {
  const Dims& shape = request.operands[0].shape;
  const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  const int64_t min_size = std::min(rows, columns);
  int64_t count = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  const auto make = [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (min_size == 0) return;
      parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Eigen::JacobiSVD<Matrix<T>> svd(matrix_in<T>(operands[0], i, rows, columns),
                                                Eigen::ComputeThinU | Eigen::ComputeThinV);
          matrix_out<T>(results[0], i, min_size, 1) = svd.singularValues();
          matrix_out<T>(results[1], i, rows, min_size) = svd.matrixU();
          matrix_out<T>(results[2], i, min_size, columns) = svd.matrixV().transpose();
        }
      });
    });
  };
  const DType dtype = request.operands[0].dtype;
  if (dtype == DType::kF64) return make(TypeTag<double>{});
  return dtype == DType::kF32 ? make(TypeTag<float>{}) : nullptr;
}

std::unique_ptr<Kernel> prepare_cholesky(const KernelRequest& request) {
  const bool upper = CholeskyAttrs(request.attrs).upper;
  return for_each_matrix(request, [upper](auto tag, int64_t i, int64_t n, void* const* operands,
                                          void* const* results) {
    using T = typename decltype(tag)::type;
    if (n == 0) return;
    const auto x = matrix_in<T>(operands[0], i, n, n);
    auto y = matrix_out<T>(results[0], i, n, n);
    Eigen::LLT<Matrix<T>> llt;
    if (upper)
      llt.compute(x.transpose());
    else
      llt.compute(x);
    if (llt.info() != Eigen::Success)
      fail(ErrorCode::kData, "cholesky: a matrix is not positive definite");
    const Matrix<T> lower = llt.matrixL();
    if (upper)
      y = lower.transpose();
    else
      y = lower;
  });
}

}  // namespace paddle::cpu
