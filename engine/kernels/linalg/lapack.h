#pragma once
// Matrix decompositions by LAPACK, for kernels that solve and decompose matrices one by one.
// Matrices are column-major; matrices.h copies them from and to tensors.

#include <complex>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/complex.h"

struct paddle_lapack_table;

namespace paddle::cpu {

template <class T>
using Real = typename RealPart<T>::type;

/// A column-major matrix without gaps, 0 at first.
template <class T>
struct ColumnMatrix {
  int64_t rows = 0, columns = 0;
  std::vector<T> values;

  ColumnMatrix() = default;
  ColumnMatrix(int64_t m, int64_t n) : rows(m), columns(n), values(static_cast<size_t>(m * n)) {}
  T* data() { return values.data(); }
  const T* data() const { return values.data(); }
  T* column(int64_t j) { return values.data() + j * rows; }
  const T* column(int64_t j) const { return values.data() + j * rows; }
};

/// x = u diag(values) vh with min(rows, columns) values, the largest first.
template <class T>
struct Svd {
  std::vector<Real<T>> values;
  ColumnMatrix<T> u, vh;
};

template <class T>
struct Eig {
  std::vector<std::complex<Real<T>>> values;
  ColumnMatrix<std::complex<Real<T>>> vectors;
};

template <class T>
struct Qr {
  ColumnMatrix<T> q, r;
};

/// LAPACK for one operation, whose name begins the messages of errors. T is float, double or a
/// complex number of them. Errors: kDevice if LAPACK is not installed or lacks memory; kData as
/// stated.
template <class T>
class Lapack {
 public:
  explicit Lapack(std::string_view op);

  /// kData if the iteration does not converge. The elements of x must be finite, here and in eigh
  /// and eig.
  Svd<T> svd(ColumnMatrix<T> x) const;
  /// The values only.
  std::vector<Real<T>> singular_values(ColumnMatrix<T> x) const;
  /// Eigenvalues in ascending order of the Hermitian matrix with the lower triangle of x, which
  /// becomes its vectors. kData if the iteration does not converge.
  std::vector<Real<T>> eigh(ColumnMatrix<T>& x) const;
  /// The eigenvalues only.
  std::vector<Real<T>> eigvalsh(ColumnMatrix<T> x) const;
  /// Eigenvalues and right eigenvectors. kData if the iteration does not converge.
  Eig<T> eig(ColumnMatrix<T> x) const;
  /// The eigenvalues only.
  std::vector<std::complex<Real<T>>> eigvals(ColumnMatrix<T> x) const;
  /// x = q r; q has `width` columns, min(rows, columns) or rows.
  Qr<T> qr(ColumnMatrix<T> x, int64_t width) const;
  /// x becomes its LU factors. `pivots`, of min(rows, columns) elements, are the exchanged rows,
  /// counted from 1. Returns the first pivot that is 0, counted from 1, or 0.
  int32_t lu(ColumnMatrix<T>& x, int32_t* pivots) const;
  /// LU factors become the inverse.
  void inverse(ColumnMatrix<T>& factors, const int32_t* pivots) const;
  /// b becomes the solution x of a x = b, a being given by its LU factors.
  void solve(const ColumnMatrix<T>& factors, const int32_t* pivots, ColumnMatrix<T>& b) const;
  /// The triangle `side` ('U' or 'L') of x becomes the factor u of u^H u, or l of l l^H. kData if x
  /// is not positive definite.
  void cholesky(char side, ColumnMatrix<T>& x) const;
  /// x y
  ColumnMatrix<T> product(const ColumnMatrix<T>& x, const ColumnMatrix<T>& y) const;
  /// x^H y^H
  ColumnMatrix<T> adjoint_product(const ColumnMatrix<T>& x, const ColumnMatrix<T>& y) const;

 private:
  int size(int64_t n) const;
  int checked(int info) const;
  void check_convergence(int info) const;

  std::string_view op_;
  const paddle_lapack_table& functions_;
};

extern template class Lapack<float>;
extern template class Lapack<double>;
extern template class Lapack<std::complex<float>>;
extern template class Lapack<std::complex<double>>;

}  // namespace paddle::cpu
