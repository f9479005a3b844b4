// Eigenvalues and eigenvectors. Vectors have length 1, and their largest component is real and
// positive, so that they do not depend on the algorithm.

#include <complex>

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
  const int64_t n = request.operands[0].shape.back();
  const bool upper = EigvalshAttrs(request.attrs).UPLO == "U";
  return for_each_finite(
      "eigh", 5, request,
      [=]<class C, class T>(const Lapack<C>& lapack, const T* x, int64_t i, void* const* results) {
        store_values(lapack.eigvalsh(load_hermitian<C>(x, n, upper)),
                     matrix_at<Real<T>>(results[0], i, n, 1));
      });
}

std::unique_ptr<Kernel> prepare_eigvals(const KernelRequest& request) {
  const int64_t n = request.operands[0].shape.back();
  return for_each_finite(
      "eig", 15, request,
      [=]<class C, class T>(const Lapack<C>& lapack, const T* x, int64_t i, void* const* results) {
        store_values(lapack.eigvals(load<C>(x, n, n)),
                     matrix_at<std::complex<Real<T>>>(results[0], i, n, 1));
      });
}

std::unique_ptr<Kernel> prepare_eigh_factors(const KernelRequest& request) {
  const int64_t n = request.operands[0].shape.back();
  const bool upper = EighFactorsAttrs(request.attrs).upper;
  return for_each_finite(
      "eigh", 10, request,
      [=]<class C, class T>(const Lapack<C>& lapack, const T* x, int64_t i, void* const* results) {
        ColumnMatrix<C> vectors = load_hermitian<C>(x, n, upper);
        const auto found = lapack.eigh(vectors);
        normalize_columns(vectors);
        store_values(found, matrix_at<Real<T>>(results[0], i, n, 1));
        store(vectors, matrix_at<T>(results[1], i, n, n));
      });
}

std::unique_ptr<Kernel> prepare_eig_factors(const KernelRequest& request) {
  const int64_t n = request.operands[0].shape.back();
  return for_each_finite(
      "eig", 25, request,
      [=]<class C, class T>(const Lapack<C>& lapack, const T* x, int64_t i, void* const* results) {
        using Complex = std::complex<Real<T>>;
        Eig<C> found = lapack.eig(load<C>(x, n, n));
        normalize_columns(found.vectors);
        store_values(found.values, matrix_at<Complex>(results[0], i, n, 1));
        store(found.vectors, matrix_at<Complex>(results[1], i, n, n));
      });
}

}  // namespace paddle::cpu
