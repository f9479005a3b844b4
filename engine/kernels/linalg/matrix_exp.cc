// The exponential of matrices: Higham, "The scaling and squaring method for the matrix exponential
// revisited" (2005).

#include <Eigen/LU>
#include <array>
#include <cmath>

#include "kernels/linalg/matrices-inl.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

/// The diagonal Padé approximant of order 13, for matrices of a 1-norm of at most 5.37.
template <class T>
Matrix<T> exponential(const Matrix<T>& x) {
  using R = Real<T>;
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
  const double norm = static_cast<double>(x.cwiseAbs().colwise().sum().maxCoeff());
  if (!std::isfinite(norm)) return Matrix<T>::Constant(x.rows(), x.cols(), T(std::nan("")));
  int squarings = 0;
  if (norm > 5.371920351148152)
    squarings = static_cast<int>(std::ceil(std::log2(norm / 5.371920351148152)));
  const auto c = [&](size_t i) { return T(static_cast<R>(b[i])); };
  const Matrix<T> a = x * T(static_cast<R>(std::ldexp(1.0, -squarings)));
  const Matrix<T> identity = Matrix<T>::Identity(x.rows(), x.cols());
  const Matrix<T> a2 = a * a, a4 = a2 * a2, a6 = a4 * a2;
  const Matrix<T> odd_high = a6 * (c(13) * a6 + c(11) * a4 + c(9) * a2);
  const Matrix<T> odd = a * (odd_high + c(7) * a6 + c(5) * a4 + c(3) * a2 + c(1) * identity);
  const Matrix<T> even_high = a6 * (c(12) * a6 + c(10) * a4 + c(8) * a2);
  const Matrix<T> even = even_high + c(6) * a6 + c(4) * a4 + c(2) * a2 + c(0) * identity;
  Matrix<T> out = Eigen::PartialPivLU<Matrix<T>>(even - odd).solve(even + odd);
  for (int i = 0; i < squarings; ++i) out = Matrix<T>(out * out);
  return out;
}

}  // namespace

std::unique_ptr<Kernel> prepare_matrix_exp(const KernelRequest& request) {
  return for_each_matrix(
      request, [](auto tag, int64_t i, int64_t n, void* const* operands, void* const* results) {
        using T = typename decltype(tag)::type;
        if (n == 0) return;
        matrix_out<T>(results[0], i, n, n) =
            exponential<Computed<T>>(computed_in<T>(operands[0], i, n, n)).template cast<T>();
      });
}

}  // namespace paddle::cpu
