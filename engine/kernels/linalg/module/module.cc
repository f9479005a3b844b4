// The module that decomposes matrices with LAPACK: workspaces around its routines. Sums are taken
// on the calling thread only, so results do not depend on the number of threads.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "kernels/linalg/module/interface.h"
#include "kernels/linalg/module/routines.h"

namespace {

using namespace paddle::lapack;

template <class T>
struct Tag {
  using type = T;
};

/// Held during each call where LAPACK takes one caller at a time. OpenBLAS locks its list of
/// buffers only where it has threads of its own: without, two callers may be given the same buffer,
/// and both get wrong results.
std::unique_lock<std::mutex> lock_library() {
  static std::mutex mutex;
  static const bool reentrant = !openblas_get_parallel || openblas_get_parallel() == 1;
  return reentrant ? std::unique_lock<std::mutex>() : std::unique_lock(mutex);
}

/// The result of `body(tag)` for the element type `type`.
template <class Body>
int for_type(char type, Body&& body) {
  const auto lock = lock_library();
  try {
    switch (type) {
      case 's':
        return body(Tag<float>());
      case 'd':
        return body(Tag<double>());
      case 'c':
        return body(Tag<Complex64>());
      default:
        return body(Tag<Complex128>());
    }
  } catch (const std::bad_alloc&) {
    return PADDLE_LAPACK_NO_MEMORY;
  }
}

/// The size of workspace that a routine has written into the first element. One that float cannot
/// represent was rounded, perhaps down.
template <class T>
int workspace_size(T first) {
  const auto size =
      static_cast<double>(std::nextafter(std::real(first), std::numeric_limits<Real<T>>::max()));
  if (size > std::numeric_limits<int>::max()) throw std::bad_alloc();
  return std::max(1, static_cast<int>(std::ceil(size)));
}

/// Calls `routine(work, lwork)`, first to ask for the size of the workspace, then with it.
template <class T, class Routine>
void with_workspace(Routine&& routine) {
  T first(0);
  routine(&first, -1);
  const int size = workspace_size(first);
  std::vector<T> work(static_cast<size_t>(size));
  routine(work.data(), size);
}

size_t square(int n) { return static_cast<size_t>(n) * static_cast<size_t>(n); }

/// The QR factors of a matrix as products of reflections. geqrf and orgqr work column by column up
/// to 128 columns; geqrt multiplies matrices from a few columns on.
template <class T>
class Reflections {
 public:
  /// `a`, [rows, columns], becomes the triangle and the reflections, and must outlive this. `most`
  /// columns are multiplied at a time.
  Reflections(int rows, int columns, T* a, int most)
      : rows_(rows),
        least_(std::min(rows, columns)),
        block_(std::min(32, least_)),
        a_(a),
        factors_(area(block_, least_)),
        work_(area(block_, std::max(most, columns))) {
    select<T>(sgeqrt_, dgeqrt_, cgeqrt_, zgeqrt_)(&rows, &columns, &block_, a, &rows,
                                                  factors_.data(), &block_, work_.data(), &info_);
  }

  /// The first code that LAPACK has returned; 0 if all calls succeeded.
  int info() const { return info_; }

  /// c becomes q c, for c [rows, columns].
  void multiply(int columns, T* c) { multiply(0, least_, columns, c); }

  /// c becomes the first `columns` columns of q.
  void write(int columns, T* c) {
    const auto height = static_cast<size_t>(rows_);
    std::fill_n(c, height * static_cast<size_t>(columns), T(0));
    for (size_t j = 0; j < static_cast<size_t>(columns); ++j) c[j * height + j] = T(1);
    // The last reflections leave the first columns of the identity.
    for (int first = (least_ - 1) / block_ * block_; first >= 0; first -= block_)
      multiply(first, std::min(block_, least_ - first), columns - first,
               c + static_cast<size_t>(first) * (height + 1));
  }

 private:
  static size_t area(int rows, int columns) {
    return static_cast<size_t>(rows) * static_cast<size_t>(columns);
  }

  /// By `count` reflections from `first` on, which leave the rows above.
  void multiply(int first, int count, int columns, T* c) {
    const int below = rows_ - first, block = std::min(block_, count);
    int info = 0;
    select<T>(sgemqrt_, dgemqrt_, cgemqrt_, zgemqrt_)(
        "L", "N", &below, &columns, &count, &block,
        a_ + static_cast<size_t>(first) * (static_cast<size_t>(rows_) + 1), &rows_,
        factors_.data() + area(block_, first), &block_, c, &rows_, work_.data(), &info, 1, 1);
    if (info_ == 0) info_ = info;
  }

  int rows_, least_, block_, info_ = 0;
  T* a_;
  std::vector<T> factors_, work_;
};

/// The upper triangle of a, with zeros below, in r of `height` rows and as many columns.
template <class T>
void copy_triangle(const T* a, size_t rows, size_t columns, size_t height, T* r) {
  for (size_t j = 0; j < columns; ++j)
    std::copy_n(a + j * rows, std::min(j + 1, height), r + j * height);
}

template <class T>
int svd_of_any(int rows, int columns, T* a, Real<T>* values, T* u, T* vh) {
  const int least = std::min(rows, columns);
  std::vector<int> integers(8 * static_cast<size_t>(least));
  const char* const job = u ? "S" : "N";
  int info = 0;
  if constexpr (kComplex<T>) {
    const size_t low = static_cast<size_t>(least),
                 high = static_cast<size_t>(std::max(rows, columns));
    std::vector<Real<T>> reals(low * std::max(5 * low + 7, 2 * high + 2 * low + 1));
    with_workspace<T>([&](T* work, int size) {
      select<T>(sgesdd_, dgesdd_, cgesdd_, zgesdd_)(job, &rows, &columns, a, &rows, values, u,
                                                    &rows, vh, &least, work, &size, reals.data(),
                                                    integers.data(), &info, 1);
    });
  } else {
    with_workspace<T>([&](T* work, int size) {
      select<T>(sgesdd_, dgesdd_, cgesdd_, zgesdd_)(job, &rows, &columns, a, &rows, values, u,
                                                    &rows, vh, &least, work, &size, integers.data(),
                                                    &info, 1);
    });
  }
  return info;
}

/// Of a tall matrix through the square triangle of its QR factors, as gesdd does from 11 rows for 6
/// columns on.
template <class T>
int svd(int rows, int columns, T* a, Real<T>* values, T* u, T* vh) {
  if (columns < 64 || 6 * int64_t{rows} < 11 * int64_t{columns})
    return svd_of_any(rows, columns, a, values, u, vh);
  const auto height = static_cast<size_t>(rows), width = static_cast<size_t>(columns);
  Reflections<T> q(rows, columns, a, columns);
  if (q.info() != 0) return q.info();
  std::vector<T> triangle(square(columns)), left(u ? square(columns) : 0);
  copy_triangle(a, height, width, width, triangle.data());
  const int info = svd_of_any(columns, columns, triangle.data(), values, u ? left.data() : u, vh);
  if (info != 0 || !u) return info;
  std::fill_n(u, height * width, T(0));
  for (size_t j = 0; j < width; ++j) std::copy_n(left.data() + j * width, width, u + j * height);
  q.multiply(columns, u);
  return q.info();
}

template <class T>
int eigh(bool vectors, int n, T* a, Real<T>* values) {
  const char* const job = vectors ? "V" : "N";
  const int integer_count = 3 + 5 * n;
  std::vector<int> integers(static_cast<size_t>(integer_count));
  int info = 0;
  if constexpr (kComplex<T>) {
    const size_t real_count = 1 + 5 * static_cast<size_t>(n) + 2 * square(n);
    if (real_count > static_cast<size_t>(std::numeric_limits<int>::max())) throw std::bad_alloc();
    const int real_size = static_cast<int>(real_count);
    std::vector<Real<T>> reals(real_count);
    with_workspace<T>([&](T* work, int size) {
      select<T>(ssyevd_, dsyevd_, cheevd_, zheevd_)(job, "L", &n, a, &n, values, work, &size,
                                                    reals.data(), &real_size, integers.data(),
                                                    &integer_count, &info, 1, 1);
    });
  } else {
    with_workspace<T>([&](T* work, int size) {
      select<T>(ssyevd_, dsyevd_, cheevd_, zheevd_)(job, "L", &n, a, &n, values, work, &size,
                                                    integers.data(), &integer_count, &info, 1, 1);
    });
  }
  return info;
}

template <class T>
int eig(int n, T* a, std::complex<Real<T>>* values, std::complex<Real<T>>* vectors) {
  const int one = 1;
  const char* const job = vectors ? "V" : "N";
  int info = 0;
  if constexpr (kComplex<T>) {
    std::vector<Real<T>> reals(2 * static_cast<size_t>(n));
    with_workspace<T>([&](T* work, int size) {
      select<T>(sgeev_, dgeev_, cgeev_, zgeev_)("N", job, &n, a, &n, values, nullptr, &one, vectors,
                                                &n, work, &size, reals.data(), &info, 1, 1);
    });
  } else {
    std::vector<T> real(static_cast<size_t>(n)), imaginary(real.size());
    std::vector<T> columns(vectors ? square(n) : 0);
    with_workspace<T>([&](T* work, int size) {
      select<T>(sgeev_, dgeev_, cgeev_, zgeev_)("N", job, &n, a, &n, real.data(), imaginary.data(),
                                                nullptr, &one, columns.data(), &n, work, &size,
                                                &info, 1, 1);
    });
    // Of a pair of conjugate values the first has a positive imaginary part; two columns hold the
    // real and imaginary parts of its vector.
    const auto size = static_cast<size_t>(n);
    for (size_t j = 0; j < size; ++j) {
      values[j] = {real[j], imaginary[j]};
      if (!vectors) continue;
      const T* const column = columns.data() + j * size;
      std::complex<T>* const out = vectors + j * size;
      if (imaginary[j] > 0 && j + 1 < size) {
        for (size_t i = 0; i < size; ++i) {
          out[i] = {column[i], column[size + i]};
          out[size + i] = std::conj(out[i]);
        }
        values[j + 1] = {real[j + 1], imaginary[j + 1]};
        ++j;
      } else {
        std::copy_n(column, size, out);
      }
    }
  }
  return info;
}

template <class T>
int qr(int rows, int columns, int width, T* a, T* q, T* r) {
  Reflections<T> reflections(rows, columns, a, width);
  if (reflections.info() != 0) return reflections.info();
  copy_triangle(a, static_cast<size_t>(rows), static_cast<size_t>(columns),
                static_cast<size_t>(width), r);
  reflections.write(width, q);
  return reflections.info();
}

/// By getri, or as the solution for the identity where that takes less time.
template <class T>
int inverse(int n, T* factors, const int* pivots) {
  constexpr int kSmall = 32, kSolved = 256;
  int info = 0;
  if (!kComplex<T> && n > kSmall && n <= kSolved) {
    const std::vector<T> copy(factors, factors + square(n));
    std::fill_n(factors, square(n), T(0));
    for (size_t j = 0; j < static_cast<size_t>(n); ++j)
      factors[j * (static_cast<size_t>(n) + 1)] = T(1);
    select<T>(sgetrs_, dgetrs_, cgetrs_, zgetrs_)("N", &n, &n, copy.data(), &n, pivots, factors, &n,
                                                  &info, 1);
    return info;
  }
  const auto invert = [&](T* work, int size) {
    select<T>(sgetri_, dgetri_, cgetri_, zgetri_)(&n, factors, &n, pivots, work, &size, &info);
  };
  // Batches of small matrices spend no time on their workspace.
  if (n <= kSmall) {
    T work[kSmall];
    invert(work, kSmall);
  } else {
    with_workspace<T>(invert);
  }
  return info;
}

const paddle_lapack_table kTable = {
    .svd =
        [](char type, int rows, int columns, void* a, void* values, void* u, void* vh) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            return svd(rows, columns, static_cast<T*>(a), static_cast<Real<T>*>(values),
                       static_cast<T*>(u), static_cast<T*>(vh));
          });
        },
    .eigh =
        [](char type, int vectors, int n, void* a, void* values) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            return eigh(vectors != 0, n, static_cast<T*>(a), static_cast<Real<T>*>(values));
          });
        },
    .eig =
        [](char type, int n, void* a, void* values, void* vectors) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            using C = std::complex<Real<T>>;
            return eig(n, static_cast<T*>(a), static_cast<C*>(values), static_cast<C*>(vectors));
          });
        },
    .qr =
        [](char type, int rows, int columns, int width, void* a, void* q, void* r) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            return qr(rows, columns, width, static_cast<T*>(a), static_cast<T*>(q),
                      static_cast<T*>(r));
          });
        },
    .lu =
        [](char type, int rows, int columns, void* a, int* pivots) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            int info = 0;
            select<T>(sgetrf_, dgetrf_, cgetrf_, zgetrf_)(&rows, &columns, static_cast<T*>(a),
                                                          &rows, pivots, &info);
            return info;
          });
        },
    .inverse =
        [](char type, int n, void* factors, const int* pivots) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            return inverse(n, static_cast<T*>(factors), pivots);
          });
        },
    .solve =
        [](char type, int n, int columns, const void* factors, const int* pivots, void* b) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            int info = 0;
            select<T>(sgetrs_, dgetrs_, cgetrs_, zgetrs_)("N", &n, &columns,
                                                          static_cast<const T*>(factors), &n,
                                                          pivots, static_cast<T*>(b), &n, &info, 1);
            return info;
          });
        },
    .cholesky =
        [](char type, char side, int n, void* a) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            int info = 0;
            select<T>(spotrf_, dpotrf_, cpotrf_, zpotrf_)(&side, &n, static_cast<T*>(a), &n, &info,
                                                          1);
            return info;
          });
        },
    .product =
        [](char type, int adjoint, int rows, int columns, int depth, const void* x, const void* y,
           void* out) {
          return for_type(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            const T one(1), zero(0);
            const char* const trans = adjoint ? "C" : "N";
            const int x_rows = adjoint ? depth : rows, y_rows = adjoint ? columns : depth;
            select<T>(sgemm_, dgemm_, cgemm_, zgemm_)(
                trans, trans, &rows, &columns, &depth, &one, static_cast<const T*>(x), &x_rows,
                static_cast<const T*>(y), &y_rows, &zero, static_cast<T*>(out), &rows, 1, 1);
            return 0;
          });
        },
};

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int paddle_module_version() { return PADDLE_LAPACK_VERSION; }

[[gnu::visibility("default")]] const paddle_lapack_table* paddle_lapack() {
  if (openblas_set_num_threads) openblas_set_num_threads(1);
  return &kTable;
}
}
