#include "kernels/linalg/lapack.h"

#include <algorithm>
#include <limits>

#include "base/module.h"
#include "kernels/linalg/module/interface.h"

namespace paddle::cpu {
namespace {

const paddle_lapack_table& open_lapack(std::string_view op) {
  const auto open = [&] {
    Module module(Module::default_path("lapack"), PADDLE_LAPACK_VERSION);
    return module.require<decltype(paddle_lapack)>("paddle_lapack",
                                                   str(op, ": this installation has no LAPACK"))();
  };
  static const paddle_lapack_table& table = *open();
  return table;
}

template <class T>
constexpr char kType = kIsComplex<T> ? (std::is_same_v<Real<T>, float> ? 'c' : 'z')
                                     : (std::is_same_v<T, float> ? 's' : 'd');

}  // namespace

template <class T>
Lapack<T>::Lapack(std::string_view op) : op_(op), functions_(open_lapack(op)) {}

/// A number of rows or columns as LAPACK takes it.
template <class T>
int Lapack<T>::size(int64_t n) const {
  if (n > std::numeric_limits<int>::max())
    fail(ErrorCode::kUsage, op_, ": a matrix has ", n, " rows or columns, expected at most ",
         std::numeric_limits<int>::max());
  return static_cast<int>(n);
}

/// Returns `info` if it is not negative.
template <class T>
int Lapack<T>::checked(int info) const {
  if (info == PADDLE_LAPACK_NO_MEMORY)
    fail(ErrorCode::kDevice, op_, ": a matrix is too large for the workspace of LAPACK");
  if (info < 0) fail(ErrorCode::kInternal, op_, ": LAPACK rejects its argument ", -info);
  return info;
}

template <class T>
void Lapack<T>::check_convergence(int info) const {
  if (checked(info) > 0) fail(ErrorCode::kData, op_, ": the iteration does not converge");
}

template <class T>
Svd<T> Lapack<T>::svd(ColumnMatrix<T> x) const {
  const int64_t least = std::min(x.rows, x.columns);
  Svd<T> out{std::vector<Real<T>>(static_cast<size_t>(least)), {x.rows, least}, {least, x.columns}};
  check_convergence(functions_.svd(kType<T>, size(x.rows), size(x.columns), x.data(),
                                   out.values.data(), out.u.data(), out.vh.data()));
  return out;
}

template <class T>
std::vector<Real<T>> Lapack<T>::singular_values(ColumnMatrix<T> x) const {
  std::vector<Real<T>> values(static_cast<size_t>(std::min(x.rows, x.columns)));
  check_convergence(functions_.svd(kType<T>, size(x.rows), size(x.columns), x.data(), values.data(),
                                   nullptr, nullptr));
  return values;
}

template <class T>
std::vector<Real<T>> Lapack<T>::eigh(ColumnMatrix<T>& x) const {
  std::vector<Real<T>> values(static_cast<size_t>(x.rows));
  check_convergence(functions_.eigh(kType<T>, 1, size(x.rows), x.data(), values.data()));
  return values;
}

template <class T>
std::vector<Real<T>> Lapack<T>::eigvalsh(ColumnMatrix<T> x) const {
  std::vector<Real<T>> values(static_cast<size_t>(x.rows));
  check_convergence(functions_.eigh(kType<T>, 0, size(x.rows), x.data(), values.data()));
  return values;
}

template <class T>
Eig<T> Lapack<T>::eig(ColumnMatrix<T> x) const {
  Eig<T> out{std::vector<std::complex<Real<T>>>(static_cast<size_t>(x.rows)), {x.rows, x.rows}};
  check_convergence(
      functions_.eig(kType<T>, size(x.rows), x.data(), out.values.data(), out.vectors.data()));
  return out;
}

template <class T>
std::vector<std::complex<Real<T>>> Lapack<T>::eigvals(ColumnMatrix<T> x) const {
  std::vector<std::complex<Real<T>>> values(static_cast<size_t>(x.rows));
  check_convergence(functions_.eig(kType<T>, size(x.rows), x.data(), values.data(), nullptr));
  return values;
}

template <class T>
Qr<T> Lapack<T>::qr(ColumnMatrix<T> x, int64_t width) const {
  Qr<T> out{{x.rows, width}, {width, x.columns}};
  checked(functions_.qr(kType<T>, size(x.rows), size(x.columns), size(width), x.data(),
                        out.q.data(), out.r.data()));
  return out;
}

template <class T>
int32_t Lapack<T>::lu(ColumnMatrix<T>& x, int32_t* pivots) const {
  return checked(functions_.lu(kType<T>, size(x.rows), size(x.columns), x.data(), pivots));
}

template <class T>
void Lapack<T>::inverse(ColumnMatrix<T>& factors, const int32_t* pivots) const {
  checked(functions_.inverse(kType<T>, size(factors.rows), factors.data(), pivots));
}

template <class T>
void Lapack<T>::solve(const ColumnMatrix<T>& factors, const int32_t* pivots,
                      ColumnMatrix<T>& b) const {
  checked(functions_.solve(kType<T>, size(factors.rows), size(b.columns), factors.data(), pivots,
                           b.data()));
}

template <class T>
void Lapack<T>::cholesky(char side, ColumnMatrix<T>& x) const {
  if (checked(functions_.cholesky(kType<T>, side, size(x.rows), x.data())) > 0)
    fail(ErrorCode::kData, op_, ": a matrix is not positive definite");
}

template <class T>
ColumnMatrix<T> Lapack<T>::product(const ColumnMatrix<T>& x, const ColumnMatrix<T>& y) const {
  ColumnMatrix<T> out(x.rows, y.columns);
  checked(functions_.product(kType<T>, 0, size(out.rows), size(out.columns), size(x.columns),
                             x.data(), y.data(), out.data()));
  return out;
}

template <class T>
ColumnMatrix<T> Lapack<T>::adjoint_product(const ColumnMatrix<T>& x,
                                           const ColumnMatrix<T>& y) const {
  ColumnMatrix<T> out(x.columns, y.rows);
  checked(functions_.product(kType<T>, 1, size(out.rows), size(out.columns), size(x.rows), x.data(),
                             y.data(), out.data()));
  return out;
}

template class Lapack<float>;
template class Lapack<double>;
template class Lapack<std::complex<float>>;
template class Lapack<std::complex<double>>;

}  // namespace paddle::cpu
