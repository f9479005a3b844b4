// Inverses, determinants, Cholesky factors and linear systems, one matrix of the batch at a time.

#include <Eigen/Dense>

#include "kernels/linalg/matrices-inl.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

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
        T sign = 1;
        Real<T> total = 0;
        if (n > 0) {
          const Eigen::PartialPivLU<Matrix<T>> lu(matrix_in<T>(operands[0], i, n, n));
          sign = static_cast<T>(lu.permutationP().determinant());
          for (int64_t k = 0; k < n; ++k) {
            const T pivot = lu.matrixLU()(k, k);
            const Real<T> size = std::abs(pivot);
            sign *= size == 0 ? T(0) : pivot / size;
            total += std::log(size);
          }
        }
        static_cast<T*>(results[0])[i] = sign;
        static_cast<Real<T>*>(results[1])[i] = total;
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
      llt.compute(x.adjoint());
    else
      llt.compute(x);
    if (llt.info() != Eigen::Success)
      fail(ErrorCode::kData, "cholesky: a matrix is not positive definite");
    const Matrix<T> lower = llt.matrixL();
    if (upper)
      y = lower.adjoint();
    else
      y = lower;
  });
}

}  // namespace paddle::cpu
