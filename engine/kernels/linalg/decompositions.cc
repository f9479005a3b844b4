// QR and LU factors.

#include <Eigen/QR>
#include <cmath>

#include "kernels/linalg/matrices-inl.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {

std::unique_ptr<Kernel> prepare_qr_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t width = QrFactorsAttrs(request.attrs).complete ? sizes.rows : sizes.least();
  return visit_matrix(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      for_each_of(sizes.count, sizes.cost(), [&](int64_t i) {
        auto q = matrix_out<T>(results[0], i, sizes.rows, width);
        auto r = matrix_out<T>(results[1], i, width, sizes.columns);
        if (sizes.least() == 0) {
          q.setIdentity();
          r.setZero();
          return;
        }
        using C = Computed<T>;
        const Eigen::HouseholderQR<Matrix<C>> qr(
            computed_in<T>(operands[0], i, sizes.rows, sizes.columns));
        const Matrix<C> basis = qr.householderQ() * Matrix<C>::Identity(sizes.rows, width);
        q = basis.template cast<T>();
        Matrix<C> upper = Matrix<C>::Zero(width, sizes.columns);
        upper.topRows(sizes.least()) =
            qr.matrixQR().topRows(sizes.least()).template triangularView<Eigen::Upper>();
        r = upper.template cast<T>();
      });
    });
  });
}

namespace {

/// |re| + |im|, by which LAPACK chooses pivots.
template <class T>
Real<T> size_of(T z) {
  if constexpr (kIsComplex<T>)
    return std::abs(z.real()) + std::abs(z.imag());
  else
    return std::abs(z);
}

/// row -= factor * other, n elements.
template <class T>
void subtract_multiple(T* row, T factor, const T* other, int64_t n) {
  if constexpr (kIsComplex<T>) {
    const auto re = factor.real(), im = factor.imag();
    auto* const to = reinterpret_cast<Real<T>*>(row);
    const auto* const from = reinterpret_cast<const Real<T>*>(other);
    for (int64_t j = 0; j < n; ++j) {
      to[2 * j] -= re * from[2 * j] - im * from[2 * j + 1];
      to[2 * j + 1] -= re * from[2 * j + 1] + im * from[2 * j];
    }
  } else {
    for (int64_t j = 0; j < n; ++j) row[j] -= factor * other[j];
  }
}

/// LU factors in place, by panels of columns: rows below a panel are updated with all of it at
/// once, while it is in cache. Returns the first pivot that is 0, counted from 1, or 0.
template <class T>
int32_t factor_lu(T* a, int64_t m, int64_t n, int32_t* pivots) {
  constexpr int64_t kPanel = 48;
  const int64_t steps = std::min(m, n);
  int32_t singular = 0;
  for (int64_t first = 0; first < steps; first += kPanel) {
    const int64_t last = std::min(steps, first + kPanel);
    for (int64_t k = first; k < last; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < m; ++i)
        if (size_of(a[i * n + k]) > size_of(a[pivot * n + k])) pivot = i;
      pivots[k] = static_cast<int32_t>(pivot + 1);
      if (pivot != k) std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      const T top = a[k * n + k];
      if (top == T(0)) {
        if (singular == 0) singular = static_cast<int32_t>(k + 1);
        continue;
      }
      for (int64_t i = k + 1; i < m; ++i) {
        a[i * n + k] /= top;
        subtract_multiple(a + i * n + k + 1, a[i * n + k], a + k * n + k + 1, last - k - 1);
      }
    }
    for (int64_t i = first + 1; i < m; ++i)
      for (int64_t k = first; k < std::min(i, last); ++k)
        subtract_multiple(a + i * n + last, a[i * n + k], a + k * n + last, n - last);
  }
  return singular;
}

}  // namespace

std::unique_ptr<Kernel> prepare_lu_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  return visit_matrix(request.operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      auto* const pivots = static_cast<int32_t*>(results[1]);
      auto* const infos = static_cast<int32_t*>(results[2]);
      for_each_of(sizes.count, sizes.cost(), [&](int64_t i) {
        const int64_t size = sizes.rows * sizes.columns;
        T* const out = static_cast<T*>(results[0]) + i * size;
        std::copy_n(static_cast<const T*>(operands[0]) + i * size, size, out);
        infos[i] = factor_lu(out, sizes.rows, sizes.columns, pivots + i * sizes.least());
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
