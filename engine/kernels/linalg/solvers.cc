// Inverses, determinants, Cholesky factors and linear systems, one matrix of the batch at a time.

#include <Eigen/Dense>

#include "kernels/linalg/matrices-inl.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class C>
Eigen::PartialPivLU<Matrix<C>> factors(std::string_view op, const Matrix<C>& x) {
  Eigen::PartialPivLU<Matrix<C>> lu(x);
  for (Eigen::Index i = 0; i < x.rows(); ++i)
    if (lu.matrixLU()(i, i) == C(0)) fail(ErrorCode::kData, op, ": a matrix is singular");
  return lu;
}

}  // namespace

std::unique_ptr<Kernel> prepare_inv(const KernelRequest& request) {
  return for_each_matrix(
      request, [](auto tag, int64_t i, int64_t n, void* const* operands, void* const* results) {
        using T = typename decltype(tag)::type;
        if (n == 0) return;
        matrix_out<T>(results[0], i, n, n) =
            factors("inv", computed_in<T>(operands[0], i, n, n)).inverse().template cast<T>();
      });
}

std::unique_ptr<Kernel> prepare_det(const KernelRequest& request) {
  return for_each_matrix(request, [](auto tag, int64_t i, int64_t n, void* const* operands,
                                     void* const* results) {
    using T = typename decltype(tag)::type;
    using C = Computed<T>;
    static_cast<T*>(results[0])[i] =
        n == 0 ? T(1)
               : static_cast<T>(Eigen::PartialPivLU<Matrix<C>>(computed_in<T>(operands[0], i, n, n))
                                    .determinant());
  });
}

std::unique_ptr<Kernel> prepare_log_abs_det(const KernelRequest& request) {
  return for_each_matrix(
      request, [](auto tag, int64_t i, int64_t n, void* const* operands, void* const* results) {
        using T = typename decltype(tag)::type;
        using C = Computed<T>;
        C sign = 1;
        Real<C> total = 0;
        if (n > 0) {
          const Eigen::PartialPivLU<Matrix<C>> lu(computed_in<T>(operands[0], i, n, n));
          sign = static_cast<C>(lu.permutationP().determinant());
          for (int64_t k = 0; k < n; ++k) {
            const C pivot = lu.matrixLU()(k, k);
            const Real<C> size = std::abs(pivot);
            sign *= size == 0 ? C(0) : pivot / size;
            total += std::log(size);
          }
        }
        static_cast<T*>(results[0])[i] = static_cast<T>(sign);
        static_cast<Real<T>*>(results[1])[i] = static_cast<Real<T>>(total);
      });
}

std::unique_ptr<Kernel> prepare_solve_matrices(const KernelRequest& request) {
  const int64_t columns = request.operands[1].shape.back();
  return for_each_matrix(request, [columns](auto tag, int64_t i, int64_t n, void* const* operands,
                                            void* const* results) {
    using T = typename decltype(tag)::type;
    if (n == 0 || columns == 0) return;
    matrix_out<T>(results[0], i, n, columns) =
        factors("solve", computed_in<T>(operands[0], i, n, n))
            .solve(computed_in<T>(operands[1], i, n, columns))
            .template cast<T>();
  });
}

std::unique_ptr<Kernel> prepare_cholesky(const KernelRequest& request) {
  const bool upper = CholeskyAttrs(request.attrs).upper;
  return for_each_matrix(request, [upper](auto tag, int64_t i, int64_t n, void* const* operands,
                                          void* const* results) {
    using T = typename decltype(tag)::type;
    if (n == 0) return;
    using C = Computed<T>;
    Matrix<C> x = computed_in<T>(operands[0], i, n, n);
    if (upper) x = Matrix<C>(x.adjoint());
    auto y = matrix_out<T>(results[0], i, n, n);
    const Eigen::LLT<Matrix<C>> llt(x);
    if (llt.info() != Eigen::Success)
      fail(ErrorCode::kData, "cholesky: a matrix is not positive definite");
    Matrix<C> factor = llt.matrixL();
    if (upper) factor = Matrix<C>(factor.adjoint());
    y = factor.template cast<T>();
  });
}

}  // namespace paddle::cpu
