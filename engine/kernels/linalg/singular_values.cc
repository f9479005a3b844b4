// Singular values, their vectors, and pseudo-inverses. Computed in float64, whatever the type.

#include <Eigen/SVD>

#include "kernels/linalg/matrices-inl.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class T>
using ColumnMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// x = u * diag(values) * v^H, with as many columns as singular values.
template <class T>
struct Svd {
  Eigen::VectorXd values;
  ColumnMatrix<T> u, v;
};

Svd<double> decompose(const ColumnMatrix<double>& x) {
  const Eigen::BDCSVD<ColumnMatrix<double>> svd(x, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.singularValues(), svd.matrixU(), svd.matrixV()};
}

/// A complex matrix becomes a real bidiagonal one, which is decomposed as such: a second copy of
/// the solver would take the compiler a minute.
Svd<std::complex<double>> decompose(const ColumnMatrix<std::complex<double>>& x) {
  using Complex = std::complex<double>;
  if (x.rows() < x.cols()) {
    Svd<Complex> out = decompose(ColumnMatrix<Complex>(x.adjoint()));
    std::swap(out.u, out.v);
    return out;
  }
  Eigen::internal::UpperBidiagonalization<ColumnMatrix<Complex>> bidiagonal(x);
  const Svd<double> inner =
      decompose(ColumnMatrix<double>(bidiagonal.bidiagonal().toDenseMatrix().topRows(x.cols())));
  Svd<Complex> out;
  out.values = inner.values;
  out.u = ColumnMatrix<Complex>::Zero(x.rows(), x.cols());
  out.u.topRows(x.cols()) = inner.u.cast<Complex>();
  out.u.applyOnTheLeft(bidiagonal.householderU());
  out.v = inner.v.cast<Complex>();
  out.v.applyOnTheLeft(bidiagonal.householderV());
  return out;
}

/// Calls use(i, decomposition) for each matrix of the operand.
template <class T, class Use>
void for_each_svd(std::string_view op, const MatrixSizes& sizes, void* operand, Use use) {
  if (sizes.least() == 0) return;
  for_each_of(sizes.count, 20 * sizes.cost(), [&](int64_t i) {
    const In<T> x = matrix_in<T>(operand, i, sizes.rows, sizes.columns);
    if (!x.allFinite()) fail(ErrorCode::kData, op, ": a matrix has elements that are not finite");
    use(i, decompose(ColumnMatrix<Wide<T>>(x.template cast<Wide<T>>())));
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_singular_values(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  return visit_matrix(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      for_each_svd<T>("svd", sizes, operands[0], [&](int64_t i, const Svd<Wide<T>>& svd) {
        matrix_out<Real<T>>(results[0], i, sizes.least(), 1) = svd.values.template cast<Real<T>>();
        matrix_out<T>(results[1], i, sizes.rows, sizes.least()) = svd.u.template cast<T>();
        matrix_out<T>(results[2], i, sizes.least(), sizes.columns) =
            svd.v.adjoint().template cast<T>();
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_pseudo_inverse(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const double rcond = PseudoInverseAttrs(request.attrs).rcond;
  return visit_matrix(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      for_each_svd<T>("pinv", sizes, operands[0], [&](int64_t i, const Svd<Wide<T>>& svd) {
        ColumnMatrix<Wide<T>> left = svd.v;
        for (int64_t k = 0; k < sizes.least(); ++k)
          left.col(k) *= svd.values(k) > rcond * svd.values(0) ? 1 / svd.values(k) : 0.0;
        const ColumnMatrix<Wide<T>> inverse = left * svd.u.adjoint();
        matrix_out<T>(results[0], i, sizes.columns, sizes.rows) = inverse.template cast<T>();
      });
    });
  });
}

}  // namespace paddle::cpu
