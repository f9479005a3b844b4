// Singular values, their vectors, and pseudo-inverses. Computed in float64, whatever the type.

#include <Eigen/SVD>

#include "kernels/linalg/matrices-inl.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class T>
using Svd = Eigen::BDCSVD<Matrix<Wide<T>>>;

/// Calls use(i, decomposition) for each matrix of the operand.
template <class T, class Use>
void for_each_svd(std::string_view op, const MatrixSizes& sizes, void* operand, Use use) {
  if (sizes.least() == 0) return;
  for_each_of(sizes.count, 20 * sizes.cost(), [&](int64_t i) {
    const In<T> x = matrix_in<T>(operand, i, sizes.rows, sizes.columns);
    if (!x.allFinite()) fail(ErrorCode::kData, op, ": a matrix has elements that are not finite");
    use(i, Svd<T>(x.template cast<Wide<T>>(), Eigen::ComputeThinU | Eigen::ComputeThinV));
  });
}

}  // namespace

std::unique_ptr<Kernel> prepare_singular_values(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  return visit_matrix(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      for_each_svd<T>("svd", sizes, operands[0], [&](int64_t i, const Svd<T>& svd) {
        matrix_out<Real<T>>(results[0], i, sizes.least(), 1) =
            svd.singularValues().template cast<Real<T>>();
        matrix_out<T>(results[1], i, sizes.rows, sizes.least()) = svd.matrixU().template cast<T>();
        matrix_out<T>(results[2], i, sizes.least(), sizes.columns) =
            svd.matrixV().adjoint().template cast<T>();
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
      for_each_svd<T>("pinv", sizes, operands[0], [&](int64_t i, const Svd<T>& svd) {
        const auto& values = svd.singularValues();
        Matrix<Wide<T>> left = svd.matrixV();
        for (int64_t k = 0; k < sizes.least(); ++k)
          left.col(k) *= values(k) > rcond * values(0) ? 1 / values(k) : 0.0;
        const Matrix<Wide<T>> inverse = left * svd.matrixU().adjoint();
        matrix_out<T>(results[0], i, sizes.columns, sizes.rows) = inverse.template cast<T>();
      });
    });
  });
}

}  // namespace paddle::cpu
