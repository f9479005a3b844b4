// Singular values, their vectors, and pseudo-inverses.

#include <algorithm>
#include <type_traits>

#include "kernels/linalg/matrices.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_svdvals(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  return for_each_finite(
      "svd", 20, request,
      [=]<class C, class T>(const Lapack<C>& lapack, const T* x, int64_t i, void* const* results) {
        store_values(lapack.singular_values(load<C>(x, sizes.rows, sizes.columns)),
                     matrix_at<Real<T>>(results[0], i, sizes.least(), 1));
      });
}

std::unique_ptr<Kernel> prepare_singular_values(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  return for_each_finite(
      "svd", 20, request,
      [=]<class C, class T>(const Lapack<C>& lapack, const T* x, int64_t i, void* const* results) {
        const auto svd = lapack.svd(load<C>(x, sizes.rows, sizes.columns));
        const int64_t least = sizes.least();
        store_values(svd.values, matrix_at<Real<T>>(results[0], i, least, 1));
        store(svd.u, matrix_at<T>(results[1], i, sizes.rows, least));
        store(svd.vh, matrix_at<T>(results[2], i, least, sizes.columns));
      });
}

std::unique_ptr<Kernel> prepare_pseudo_inverse(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const double rcond = PseudoInverseAttrs(request.attrs).rcond;
  return for_each_finite(
      "pinv", 20, request,
      [=]<class C, class T>(const Lapack<C>& lapack, const T* x, int64_t i, void* const* results) {
        auto svd = lapack.svd(load<C>(x, sizes.rows, sizes.columns));
        for (int64_t k = 0; k < svd.u.columns; ++k) {
          const auto value = svd.values[static_cast<size_t>(k)];
          using R = std::remove_const_t<decltype(value)>;
          const R factor = static_cast<double>(value) > rcond * static_cast<double>(svd.values[0])
                               ? R(1) / value
                               : R(0);
          std::for_each_n(svd.u.column(k), sizes.rows, [&](auto& v) { v *= factor; });
        }
        store(lapack.adjoint_product(svd.vh, svd.u),
              matrix_at<T>(results[0], i, sizes.columns, sizes.rows));
      });
}

}  // namespace paddle::cpu
