#pragma once
// The C interface of the module that decomposes matrices with LAPACK (libpaddle_lapack.so). The
// engine loads the module on first use, and the module does not depend on the engine.
//
// Matrices are column-major without gaps. `type` is their element type by LAPACK's letter: 's' and
// 'd' for float and double, 'c' and 'z' for the complex ones. Values that are real by definition
// are of the real type. Functions may be called from several threads at once; none starts threads.
// They return 0, a positive number that LAPACK's documentation of the routine explains, or
// PADDLE_LAPACK_NO_MEMORY.

/// Grows with each change of this interface.
#define PADDLE_LAPACK_VERSION 2
#define PADDLE_LAPACK_NO_MEMORY (-1000)

extern "C" {

/// PADDLE_LAPACK_VERSION of the module (base/module.h).
int paddle_module_version();

/// gesdd: a = u diag(values) vh, with k = min(rows, columns) values, the largest first. u is
/// [rows, k], vh [k, columns], or both null for the values only; `a` is overwritten.
typedef int paddle_lapack_svd_function(char type, int rows, int columns, void* a, void* values,
                                       void* u, void* vh);
/// syevd and heevd: values in ascending order; `a`, of which the lower triangle is read, becomes
/// the vectors, or is overwritten if they are not wanted.
typedef int paddle_lapack_eigh_function(char type, int vectors, int n, void* a, void* values);
/// geev: n complex values and [n, n] complex right vectors, or null for the values only; `a` is
/// overwritten.
typedef int paddle_lapack_eig_function(char type, int n, void* a, void* values, void* vectors);
/// geqrt and gemqrt: a = q r; `width` is min(rows, columns) or rows. `a` is overwritten, q is
/// [rows, width], and the upper triangle of r, [width, columns], is written.
typedef int paddle_lapack_qr_function(char type, int rows, int columns, int width, void* a, void* q,
                                      void* r);
/// getrf: `a` becomes its factors; pivots count from 1. Positive: the first pivot that is 0.
typedef int paddle_lapack_lu_function(char type, int rows, int columns, void* a, int* pivots);
/// getri or getrs: the factors of a matrix become its inverse.
typedef int paddle_lapack_inverse_function(char type, int n, void* factors, const int* pivots);
/// getrs: b, [n, columns], becomes the solution x of a x = b.
typedef int paddle_lapack_solve_function(char type, int n, int columns, const void* factors,
                                         const int* pivots, void* b);
/// potrf: the triangle `side` ('U' or 'L') of `a` becomes the factor u of u^H u, or l of l l^H.
/// Positive: the size of the first leading minor that is not positive.
typedef int paddle_lapack_cholesky_function(char type, char side, int n, void* a);
/// gemm: out = x y, [rows, columns], over `depth`; with `adjoint`, out = x^H y^H.
typedef int paddle_lapack_product_function(char type, int adjoint, int rows, int columns, int depth,
                                           const void* x, const void* y, void* out);

/// The functions above, in one table that is never freed.
struct paddle_lapack_table {
  paddle_lapack_svd_function* svd;
  paddle_lapack_eigh_function* eigh;
  paddle_lapack_eig_function* eig;
  paddle_lapack_qr_function* qr;
  paddle_lapack_lu_function* lu;
  paddle_lapack_inverse_function* inverse;
  paddle_lapack_solve_function* solve;
  paddle_lapack_cholesky_function* cholesky;
  paddle_lapack_product_function* product;
};
const paddle_lapack_table* paddle_lapack();
}
