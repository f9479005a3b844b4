// Inverses, determinants, Cholesky factors and linear systems, one matrix of the batch at a time.

#include "kernels/linalg/matrices.h"
#include "ops/generated/linalg.h"

namespace paddle::cpu {
namespace {

template <class C>
struct Lu {
  ColumnMatrix<C> factors;
  std::vector<int32_t> pivots;
  int32_t singular = 0;  ///< the first pivot that is 0, counted from 1

  Lu(const Lapack<C>& lapack, ColumnMatrix<C> x)
      : factors(std::move(x)), pivots(static_cast<size_t>(factors.rows)) {
    singular = lapack.lu(factors, pivots.data());
  }
  /// That of the permutation, 1 or -1.
  C sign() const {
    C out(1);
    for (size_t k = 0; k < pivots.size(); ++k)
      if (pivots[k] != static_cast<int32_t>(k + 1)) out = -out;
    return out;
  }
};

template <class C>
Lu<C> regular_lu(std::string_view op, const Lapack<C>& lapack, ColumnMatrix<C> x) {
  Lu<C> lu(lapack, std::move(x));
  if (lu.singular > 0) fail(ErrorCode::kData, op, ": a matrix is singular");
  return lu;
}

}  // namespace

// The inverse and the determinant of the transpose are those of the matrix, transposed.

std::unique_ptr<Kernel> prepare_inv(const KernelRequest& request) {
  return for_each_matrix(request, [](auto tag, auto computed, int64_t i, int64_t n,
                                     void* const* operands, void* const* results) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    if (n == 0) return;
    const Lapack<C> lapack("inv");
    Lu<C> lu =
        regular_lu("inv", lapack, load_transposed<C>(matrix_at<T>(operands[0], i, n, n), n, n));
    lapack.inverse(lu.factors, lu.pivots.data());
    store_transposed(lu.factors, matrix_at<T>(results[0], i, n, n));
  });
}

std::unique_ptr<Kernel> prepare_det(const KernelRequest& request) {
  return for_each_matrix(request, [](auto tag, auto computed, int64_t i, int64_t n,
                                     void* const* operands, void* const* results) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    C product(1);
    if (n > 0) {
      const Lu<C> lu(Lapack<C>("det"),
                     load_transposed<C>(matrix_at<T>(operands[0], i, n, n), n, n));
      product = lu.sign();
      for (int64_t k = 0; k < n; ++k) product *= lu.factors.column(k)[k];
    }
    static_cast<T*>(results[0])[i] = static_cast<T>(product);
  });
}

std::unique_ptr<Kernel> prepare_log_abs_det(const KernelRequest& request) {
  return for_each_matrix(request, [](auto tag, auto computed, int64_t i, int64_t n,
                                     void* const* operands, void* const* results) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    C sign(1);
    Real<C> total = 0;
    if (n > 0) {
      const Lu<C> lu(Lapack<C>("slogdet"),
                     load_transposed<C>(matrix_at<T>(operands[0], i, n, n), n, n));
      sign = lu.sign();
      for (int64_t k = 0; k < n; ++k) {
        const C pivot = lu.factors.column(k)[k];
        const Real<C> size = std::abs(pivot);
        sign *= size == 0 ? C(0) : pivot / size;
        total += std::log(size);
      }
    }
    static_cast<T*>(results[0])[i] = static_cast<T>(sign);
    static_cast<Real<T>*>(results[1])[i] = static_cast<Real<T>>(total);
  });
}

std::unique_ptr<Kernel> prepare_solve_matrices(const KernelRequest& request) {
  const int64_t columns = request.operands[1].shape.back();
  return for_each_matrix(request, [columns](auto tag, auto computed, int64_t i, int64_t n,
                                            void* const* operands, void* const* results) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    if (n == 0 || columns == 0) return;
    const Lapack<C> lapack("solve");
    const Lu<C> lu = regular_lu("solve", lapack, load<C>(matrix_at<T>(operands[0], i, n, n), n, n));
    ColumnMatrix<C> b = load<C>(matrix_at<T>(operands[1], i, n, columns), n, columns);
    lapack.solve(lu.factors, lu.pivots.data(), b);
    store(b, matrix_at<T>(results[0], i, n, columns));
  });
}

// The triangle of rows that is read and written is the opposite one of columns, and the factors of
// the conjugate of a matrix are the conjugates of its own, so nothing is transposed.
std::unique_ptr<Kernel> prepare_cholesky(const KernelRequest& request) {
  const bool upper = CholeskyAttrs(request.attrs).upper;
  return for_each_matrix(request, [upper](auto tag, auto computed, int64_t i, int64_t n,
                                          void* const* operands, void* const* results) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(computed)::type;
    if (n == 0) return;
    ColumnMatrix<C> x = load_transposed<C>(matrix_at<T>(operands[0], i, n, n), n, n);
    Lapack<C>("cholesky").cholesky(upper ? 'L' : 'U', x);
    for (int64_t j = 0; j < n; ++j) {
      C* const column = x.column(j);
      if (upper)
        std::fill_n(column, j, C(0));
      else
        std::fill(column + j + 1, column + n, C(0));
    }
    store_transposed(x, matrix_at<T>(results[0], i, n, n));
  });
}

}  // namespace paddle::cpu
