// The exponential of matrices: Higham, "The scaling and squaring method for the matrix exponential
// revisited" (2005).

#include <array>
#include <limits>

#include "kernels/linalg/matrices.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class C>
double norm_1(const ColumnMatrix<C>& x) {
  double most = 0;
  for (int64_t j = 0; j < x.columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < x.rows; ++i) sum += static_cast<double>(std::abs(x.column(j)[i]));
    if (!std::isfinite(sum)) return sum;
    most = std::max(most, sum);
  }
  return most;
}

/// The diagonal Padé approximant of order 13, for matrices of a 1-norm of at most 5.37.
template <class C>
ColumnMatrix<C> exponential(ColumnMatrix<C> a) {
  using R = Real<C>;
  constexpr std::array<double, 14> b = {64764752532480000,
                                        32382376266240000,
                                        7771770303897600,
                                        1187353796428800,
                                        129060195264000,
                                        10559470521600,
                                        670442572800,
                                        33522128640,
                                        1323241920,
                                        40840800,
                                        960960,
                                        16380,
                                        182,
                                        1};
  const double norm = norm_1(a);
  if (!std::isfinite(norm)) {
    std::fill(a.values.begin(), a.values.end(), C(std::numeric_limits<R>::quiet_NaN()));
    return a;
  }
  int squarings = 0;
  if (norm > 5.371920351148152)
    squarings = static_cast<int>(std::ceil(std::log2(norm / 5.371920351148152)));
  const auto scale = static_cast<R>(std::ldexp(1.0, -squarings));
  for (C& v : a.values) v *= scale;
  const Lapack<C> lapack("matrix_exp");
  const int64_t n = a.rows;
  const ColumnMatrix<C> a2 = lapack.product(a, a), a4 = lapack.product(a2, a2);
  const ColumnMatrix<C> a6 = lapack.product(a4, a2);
  // b[k + 6] a6 + b[k + 4] a4 + b[k + 2] a2 + b[k] identity; the last two are left out for high k
  const auto polynomial = [&](size_t k, bool low) {
    ColumnMatrix<C> out(n, n);
    for (size_t i = 0; i < out.values.size(); ++i)
      out.values[i] =
          low ? static_cast<R>(b[k + 6]) * a6.values[i] + static_cast<R>(b[k + 4]) * a4.values[i] +
                    static_cast<R>(b[k + 2]) * a2.values[i]
              : static_cast<R>(b[k + 4]) * a6.values[i] + static_cast<R>(b[k + 2]) * a4.values[i] +
                    static_cast<R>(b[k]) * a2.values[i];
    if (low)
      for (int64_t i = 0; i < n; ++i) out.column(i)[i] += static_cast<R>(b[k]);
    return out;
  };
  const auto sum = [](ColumnMatrix<C> x, const ColumnMatrix<C>& y) {
    for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += y.values[i];
    return x;
  };
  const ColumnMatrix<C> odd =
      lapack.product(a, sum(lapack.product(a6, polynomial(9, false)), polynomial(1, true)));
  const ColumnMatrix<C> even = sum(lapack.product(a6, polynomial(8, false)), polynomial(0, true));
  ColumnMatrix<C> out = sum(even, odd), below = even;
  for (size_t i = 0; i < below.values.size(); ++i) below.values[i] -= odd.values[i];
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  if (lapack.lu(below, pivots.data()) > 0)
    fail(ErrorCode::kData, "matrix_exp: the approximation is singular");
  lapack.solve(below, pivots.data(), out);
  for (int i = 0; i < squarings; ++i) out = lapack.product(out, out);
  return out;
}

}  // namespace

// The exponential of the transpose is the transpose of the exponential.
std::unique_ptr<Kernel> prepare_matrix_exp(const KernelRequest& request) {
  return for_each_matrix(request, [](auto tag, auto computed, int64_t i, int64_t n,
                                     void* const* operands, void* const* results) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    if (n == 0) return;
    store_transposed(exponential(load_transposed<C>(matrix_at<T>(operands[0], i, n, n), n, n)),
                     matrix_at<T>(results[0], i, n, n));
  });
}

}  // namespace paddle::cpu
