// Singular values, their vectors, and pseudo-inverses.

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/linalg/matrices.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

/// A kernel that calls use(tag, i, lapack, matrix, results) for each matrix of the operand.
template <class Use>
std::unique_ptr<Kernel> for_each_finite(std::string_view op, const KernelRequest& request,
                                        Use use) {
  const MatrixSizes sizes(request.operands[0].shape);
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (sizes.least() == 0) return;
      const Lapack<C> lapack(op);
      for_each_of(sizes.count, 20 * sizes.cost(), [&](int64_t i) {
        const T* const x = matrix_at<T>(operands[0], i, sizes.rows, sizes.columns);
        if (!all_finite(x, sizes.rows * sizes.columns))
          fail(ErrorCode::kData, op, ": a matrix has elements that are not finite");
        use(tag, i, lapack, load<C>(x, sizes.rows, sizes.columns), results);
      });
    });
  });
}

template <class Values, class T>
void store_values(const Values& values, T* to) {
  std::transform(values.begin(), values.end(), to, [](auto v) { return static_cast<T>(v); });
}

}  // namespace

std::unique_ptr<Kernel> prepare_svdvals(const KernelRequest& request) {
  return for_each_finite(
      "svd", request, [](auto tag, int64_t i, const auto& lapack, auto x, void* const* results) {
        using T = typename decltype(tag)::type;
        const auto values = lapack.singular_values(std::move(x));
        store_values(values, matrix_at<Real<T>>(results[0], i, std::ssize(values), 1));
      });
}

std::unique_ptr<Kernel> prepare_singular_values(const KernelRequest& request) {
  return for_each_finite(
      "svd", request, [](auto tag, int64_t i, const auto& lapack, auto x, void* const* results) {
        using T = typename decltype(tag)::type;
        const auto svd = lapack.svd(std::move(x));
        const int64_t rows = svd.u.rows, columns = svd.vh.columns, least = svd.u.columns;
        store_values(svd.values, matrix_at<Real<T>>(results[0], i, least, 1));
        store(svd.u, matrix_at<T>(results[1], i, rows, least));
        store(svd.vh, matrix_at<T>(results[2], i, least, columns));
      });
}

std::unique_ptr<Kernel> prepare_pseudo_inverse(const KernelRequest& request) {
  const double rcond = PseudoInverseAttrs(request.attrs).rcond;
  return for_each_finite(
      "pinv", request,
      [rcond](auto tag, int64_t i, const auto& lapack, auto x, void* const* results) {
        using T = typename decltype(tag)::type;
        auto svd = lapack.svd(std::move(x));
        const int64_t rows = svd.u.rows, columns = svd.vh.columns;
        for (int64_t k = 0; k < svd.u.columns; ++k) {
          const auto value = svd.values[static_cast<size_t>(k)];
          using R = std::remove_const_t<decltype(value)>;
          const R factor = static_cast<double>(value) > rcond * static_cast<double>(svd.values[0])
                               ? R(1) / value
                               : R(0);
          std::for_each_n(svd.u.column(k), rows, [&](auto& v) { v *= factor; });
        }
        store(lapack.adjoint_product(svd.vh, svd.u), matrix_at<T>(results[0], i, columns, rows));
      });
}

}  // namespace paddle::cpu
