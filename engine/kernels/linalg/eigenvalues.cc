// Eigenvalues and eigenvectors. Vectors have length 1, and their largest component is real and
// positive, so that they do not depend on the algorithm.

#include <algorithm>

#include "kernels/linalg/matrices.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class T>
Real<T> squared_size(T v) {
  if constexpr (kIsComplex<T>)
    return std::norm(v);
  else
    return v * v;
}

template <class T>
void normalize_columns(ColumnMatrix<T>& vectors) {
  for (int64_t k = 0; k < vectors.columns; ++k) {
    T* const column = vectors.column(k);
    Real<T> squares = 0, most = -1;
    T largest(0);
    for (int64_t i = 0; i < vectors.rows; ++i) {
      const Real<T> square = squared_size(column[i]);
      squares += square;
      if (square > most) {
        most = square;
        largest = column[i];
      }
    }
    if (!(most > 0)) continue;
    T factor = std::abs(largest) / largest;
    factor /= std::sqrt(squares);
    for (int64_t i = 0; i < vectors.rows; ++i) column[i] *= factor;
  }
}

template <class T>
void require_finite(std::string_view op, const T* x, int64_t n) {
  if (!all_finite(x, n * n))
    fail(ErrorCode::kData, op, ": a matrix has elements that are not finite");
}

/// A matrix whose lower or upper triangle is given by rows, with its lower triangle. The upper
/// triangle of rows is the lower one of columns, conjugated.
template <class C, class T>
ColumnMatrix<C> load_hermitian(const T* x, int64_t n, bool upper) {
  ColumnMatrix<C> out = upper ? load_transposed<C>(x, n, n) : load<C>(x, n, n);
  if constexpr (kIsComplex<C>)
    if (upper)
      for (C& v : out.values) v = std::conj(v);
  return out;
}

}  // namespace

std::unique_ptr<Kernel> prepare_eigvalsh(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t n = sizes.rows;
  const bool upper = EigvalshAttrs(request.attrs).UPLO == "U";
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (n == 0) return;
      const Lapack<C> lapack("eigh");
      for_each_of(sizes.count, 5 * sizes.cost(), [&](int64_t i) {
        const T* const x = matrix_at<T>(operands[0], i, n, n);
        require_finite("eigh", x, n);
        const auto found = lapack.eigvalsh(load_hermitian<C>(x, n, upper));
        std::transform(found.begin(), found.end(), matrix_at<Real<T>>(results[0], i, n, 1),
                       [](auto v) { return static_cast<Real<T>>(v); });
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_eigvals(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t n = sizes.rows;
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    using Complex = std::complex<Real<T>>;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (n == 0) return;
      const Lapack<C> lapack("eig");
      for_each_of(sizes.count, 15 * sizes.cost(), [&](int64_t i) {
        const T* const x = matrix_at<T>(operands[0], i, n, n);
        require_finite("eig", x, n);
        const auto found = lapack.eigvals(load<C>(x, n, n));
        std::transform(found.begin(), found.end(), matrix_at<Complex>(results[0], i, n, 1),
                       [](auto v) { return static_cast<Complex>(v); });
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_eigh_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t n = sizes.rows;
  const bool upper = EighFactorsAttrs(request.attrs).upper;
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (n == 0) return;
      const Lapack<C> lapack("eigh");
      for_each_of(sizes.count, 10 * sizes.cost(), [&](int64_t i) {
        const T* const x = matrix_at<T>(operands[0], i, n, n);
        require_finite("eigh", x, n);
        ColumnMatrix<C> vectors = load_hermitian<C>(x, n, upper);
        const auto found = lapack.eigh(vectors);
        normalize_columns(vectors);
        Real<T>* const values = matrix_at<Real<T>>(results[0], i, n, 1);
        for (size_t k = 0; k < found.size(); ++k) values[k] = static_cast<Real<T>>(found[k]);
        store(vectors, matrix_at<T>(results[1], i, n, n));
      });
    });
  });
}

std::unique_ptr<Kernel> prepare_eig_factors(const KernelRequest& request) {
  const MatrixSizes sizes(request.operands[0].shape);
  const int64_t n = sizes.rows;
  return visit_matrix(request.operands[0].dtype, sizes, [&](auto tag, auto computed) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    using Complex = std::complex<Real<T>>;
    return make_kernel([=](const RunContext&, void* const* operands, void* const* results) {
      if (n == 0) return;
      const Lapack<C> lapack("eig");
      for_each_of(sizes.count, 25 * sizes.cost(), [&](int64_t i) {
        const T* const x = matrix_at<T>(operands[0], i, n, n);
        require_finite("eig", x, n);
        Eig<C> found = lapack.eig(load<C>(x, n, n));
        normalize_columns(found.vectors);
        Complex* const values = matrix_at<Complex>(results[0], i, n, 1);
        for (size_t k = 0; k < found.values.size(); ++k)
          values[k] = static_cast<Complex>(found.values[k]);
        store(found.vectors, matrix_at<Complex>(results[1], i, n, n));
      });
    });
  });
}

}  // namespace paddle::cpu
