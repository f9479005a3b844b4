#pragma once
// The routines of LAPACK and BLAS that the module calls, for the four element types. Their types
// follow the Fortran interface: every argument is a pointer, and the length of each character
// argument follows at the end.

#include <complex>
#include <cstddef>
#include <type_traits>

namespace paddle::lapack {

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;
template <class T>
inline constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

template <class T>
using Gesdd = void(const char* job, const int* m, const int* n, T* a, const int* lda, T* s, T* u,
                   const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, int* iwork,
                   int* info, size_t);
template <class T>
using ComplexGesdd = void(const char* job, const int* m, const int* n, T* a, const int* lda,
                          Real<T>* s, T* u, const int* ldu, T* vt, const int* ldvt, T* work,
                          const int* lwork, Real<T>* rwork, int* iwork, int* info, size_t);
template <class T>
using Syevd = void(const char* job, const char* side, const int* n, T* a, const int* lda, T* w,
                   T* work, const int* lwork, int* iwork, const int* liwork, int* info, size_t,
                   size_t);
template <class T>
using Heevd = void(const char* job, const char* side, const int* n, T* a, const int* lda,
                   Real<T>* w, T* work, const int* lwork, Real<T>* rwork, const int* lrwork,
                   int* iwork, const int* liwork, int* info, size_t, size_t);
template <class T>
using Geev = void(const char* left, const char* right, const int* n, T* a, const int* lda, T* wr,
                  T* wi, T* vl, const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork,
                  int* info, size_t, size_t);
template <class T>
using ComplexGeev = void(const char* left, const char* right, const int* n, T* a, const int* lda,
                         T* w, T* vl, const int* ldvl, T* vr, const int* ldvr, T* work,
                         const int* lwork, Real<T>* rwork, int* info, size_t, size_t);
template <class T>
using Geqrt = void(const int* m, const int* n, const int* nb, T* a, const int* lda, T* t,
                   const int* ldt, T* work, int* info);
template <class T>
using Gemqrt = void(const char* side, const char* trans, const int* m, const int* n, const int* k,
                    const int* nb, const T* v, const int* ldv, const T* t, const int* ldt, T* c,
                    const int* ldc, T* work, int* info, size_t, size_t);
template <class T>
using Getrf = void(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);
template <class T>
using Getri = void(const int* n, T* a, const int* lda, const int* pivots, T* work, const int* lwork,
                   int* info);
template <class T>
using Getrs = void(const char* trans, const int* n, const int* columns, const T* a, const int* lda,
                   const int* pivots, T* b, const int* ldb, int* info, size_t);
template <class T>
using Potrf = void(const char* side, const int* n, T* a, const int* lda, int* info, size_t);
template <class T>
using Gemm = void(const char* trans_x, const char* trans_y, const int* m, const int* n,
                  const int* k, const T* alpha, const T* x, const int* ldx, const T* y,
                  const int* ldy, const T* beta, T* out, const int* ldo, size_t, size_t);

extern "C" {
Gesdd<float> sgesdd_;
Gesdd<double> dgesdd_;
ComplexGesdd<Complex64> cgesdd_;
ComplexGesdd<Complex128> zgesdd_;
Syevd<float> ssyevd_;
Syevd<double> dsyevd_;
Heevd<Complex64> cheevd_;
Heevd<Complex128> zheevd_;
Geev<float> sgeev_;
Geev<double> dgeev_;
ComplexGeev<Complex64> cgeev_;
ComplexGeev<Complex128> zgeev_;
Geqrt<float> sgeqrt_;
Geqrt<double> dgeqrt_;
Geqrt<Complex64> cgeqrt_;
Geqrt<Complex128> zgeqrt_;
Gemqrt<float> sgemqrt_;
Gemqrt<double> dgemqrt_;
Gemqrt<Complex64> cgemqrt_;
Gemqrt<Complex128> zgemqrt_;
Getrf<float> sgetrf_;
Getrf<double> dgetrf_;
Getrf<Complex64> cgetrf_;
Getrf<Complex128> zgetrf_;
Getri<float> sgetri_;
Getri<double> dgetri_;
Getri<Complex64> cgetri_;
Getri<Complex128> zgetri_;
Getrs<float> sgetrs_;
Getrs<double> dgetrs_;
Getrs<Complex64> cgetrs_;
Getrs<Complex128> zgetrs_;
Potrf<float> spotrf_;
Potrf<double> dpotrf_;
Potrf<Complex64> cpotrf_;
Potrf<Complex128> zpotrf_;
Gemm<float> sgemm_;
Gemm<double> dgemm_;
Gemm<Complex64> cgemm_;
Gemm<Complex128> zgemm_;

/// Of OpenBLAS only.
[[gnu::weak]] void openblas_set_num_threads(int threads);
/// 0 where it was built without threads, 1 with threads of its own, 2 with those of OpenMP.
[[gnu::weak]] int openblas_get_parallel();
}

/// The one of four functions that is for T.
template <class T, class S, class D, class C, class Z>
constexpr auto* select(S* s, D* d, C* c, Z* z) {
  if constexpr (std::is_same_v<T, float>)
    return s;
  else if constexpr (std::is_same_v<T, double>)
    return d;
  else if constexpr (std::is_same_v<T, Complex64>)
    return c;
  else
    return z;
}

}  // namespace paddle::lapack
