// QR and LU factors.

#include "kernels/linalg/matrices.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_qr_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t width = QrFactorsAttrs(request.attrs).complete ? sizes.rows : sizes.least();
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      const Lapack<C> lapack("qr");
      for_each_of(sizes.count, sizes.cost(), [&](int64_t i) {
        const T* const x = matrix_at<T>(operands[0], i, sizes.rows, sizes.columns);
        Qr<C> qr;
        if (sizes.least() > 0) {
          qr = lapack.qr(load<C>(x, sizes.rows, sizes.columns), width);
        } else {
          qr = {{sizes.rows, width}, {width, sizes.columns}};
          for (int64_t k = 0; k < width; ++k) qr.q.column(k)[k] = C(1);
        }
        store(qr.q, matrix_at<T>(results[0], i, sizes.rows, width));
        store(qr.r, matrix_at<T>(results[1], i, width, sizes.columns));
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_lu_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      auto* const pivots = static_cast<int32_t*>(results[1]);
      auto* const infos = static_cast<int32_t*>(results[2]);
      const Lapack<C> lapack("lu");
      for_each_of(sizes.count, sizes.cost(), [&](int64_t i) {
        if (sizes.least() == 0) {
          infos[i] = 0;
          return;
        }
        ColumnMatrix<C> x = load<C>(matrix_at<T>(operands[0], i, sizes.rows, sizes.columns),
                                    sizes.rows, sizes.columns);
        infos[i] = lapack.lu(x, pivots + i * sizes.least());
        store(x, matrix_at<T>(results[0], i, sizes.rows, sizes.columns));
      });
    });
  });
}

// The order of rows after the exchanges of row k with row pivots[k] - 1, k = 0, 1, …
std::unique_ptr<Kernel> prepare_lu_permutation(const KernelRequest& request) {
  const Layout &pivots = request.operands[0], &result = request.results[0];
  const int64_t rows = result.shape.back(), steps = pivots.shape.back();
  const int64_t count = rows == 0 ? 0 : result.size() / rows;
  return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
    for_each_of(count, static_cast<double>(rows), [&](int64_t i) {
      const auto* const from = static_cast<const int32_t*>(operands[0]) + i * steps;
      auto* const order = static_cast<int64_t*>(results[0]) + i * rows;
      for (int64_t k = 0; k < rows; ++k) order[k] = k;
      for (int64_t k = 0; k < std::min(steps, rows); ++k) {
        const int64_t other = from[k] - 1;
        if (other < 0 || other >= rows)
          fail(ErrorCode::kData, "the pivot ", from[k], " is out of range for ", rows, " rows");
        std::swap(order[k], order[other]);
      }
    });
  });
}

}  // namespace paddle::cpu
