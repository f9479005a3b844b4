// Eigenvalues and eigenvectors. Vectors have length 1, and their largest component is real and
// positive, so that they do not depend on the algorithm. Computed in float64, whatever the type.

#include <Eigen/Eigenvalues>

#include "kernels/linalg/matrices-inl.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class Derived>
void normalize_columns(Eigen::MatrixBase<Derived>& vectors) {
  for (Eigen::Index k = 0; k < vectors.cols(); ++k) {
    auto column = vectors.col(k);
    Eigen::Index largest = 0;
    column.cwiseAbs().maxCoeff(&largest);
    const auto size = std::abs(column(largest));
    if (size > 0) column *= Eigen::numext::conj(column(largest)) / size;
    column /= column.norm();
  }
}

/// Eigenvalues in ascending order and vectors of the Hermitian matrix with this lower triangle.
template <class T>
void solve_hermitian(const Matrix<T>& x, Eigen::VectorXd& values, Matrix<T>& vectors) {
  const Eigen::SelfAdjointEigenSolver<Matrix<T>> solver(x);
  if (solver.info() != Eigen::Success)
    fail(ErrorCode::kData, "eigh: the iteration does not converge");
  values = solver.eigenvalues();
  vectors = solver.eigenvectors();
  normalize_columns(vectors);
}

template <class T>
void solve_general(const Matrix<T>& x, Eigen::VectorXcd& values,
                   Matrix<std::complex<double>>& vectors) {
  using Solver = std::conditional_t<kIsComplex<T>, Eigen::ComplexEigenSolver<Matrix<T>>,
                                    Eigen::EigenSolver<Matrix<T>>>;
  const Solver solver(x);
  if (solver.info() != Eigen::Success)
    fail(ErrorCode::kData, "eig: the iteration does not converge");
  values = solver.eigenvalues();
  vectors = solver.eigenvectors();
  normalize_columns(vectors);
}

}  // namespace

std::unique_ptr<Kernel> prepare_eigh_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t n = sizes.rows;
  const bool upper = EighFactorsAttrs(request.attrs).upper;
  return visit_matrix(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (n == 0) return;
      for_each_of(sizes.count, 10 * sizes.cost(), [&](int64_t i) {
        const auto x = matrix_in<T>(operands[0], i, n, n);
        if (!x.allFinite())
          fail(ErrorCode::kData, "eigh: a matrix has elements that are not finite");
        Matrix<Wide<T>> wide = x.template cast<Wide<T>>(), vectors;
        if (upper) wide = Matrix<Wide<T>>(wide.adjoint());
        Eigen::VectorXd values;
        solve_hermitian<Wide<T>>(wide, values, vectors);
        matrix_out<Real<T>>(results[0], i, n, 1) = values.template cast<Real<T>>();
        matrix_out<T>(results[1], i, n, n) = vectors.template cast<T>();
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_eig_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t n = sizes.rows;
  return visit_matrix(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Complex = std::complex<Real<T>>;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (n == 0) return;
      for_each_of(sizes.count, 25 * sizes.cost(), [&](int64_t i) {
        const auto x = matrix_in<T>(operands[0], i, n, n);
        if (!x.allFinite())
          fail(ErrorCode::kData, "eig: a matrix has elements that are not finite");
        Eigen::VectorXcd values;
        Matrix<std::complex<double>> vectors;
        solve_general<Wide<T>>(x.template cast<Wide<T>>(), values, vectors);
        matrix_out<Complex>(results[0], i, n, 1) = values.template cast<Complex>();
        matrix_out<Complex>(results[1], i, n, n) = vectors.template cast<Complex>();
      });
    });
  });
}

}  // namespace paddle::cpu
