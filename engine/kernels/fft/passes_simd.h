#pragma once
// The passes of a Fourier transform, for the best instruction set of the machine.

#include <complex>
#include <cstdint>

#include "kernels/fft/plan.h"

namespace paddle::cpu {

/// y[q + s (r p + k)] = w[p, k] Σ_j exp(-2πi jk / r) x[q + s (p + m j)] for p < m, k < r, q < s.
template <class T>
struct FftPass {
  int64_t radix;   ///< r
  int64_t count;   ///< m
  int64_t stride;  ///< s
  Parts<T> x, y;
  const T* twiddles;  ///< w as pairs [m, r - 1]; that of k = 0 is 1
  const T* roots;     ///< exp(-2πi k / r) as pairs, for radices above 5
  /// The real and then the imaginary parts of w[:, k], for each k from 1 on; may be null. For a
  /// stride of 1 and a radix of 4.
  const T* columns;
};

void fft_pass(const FftPass<float>& pass);
void fft_pass(const FftPass<double>& pass);

/// Multiplies element k of every lane by factors[k], a pair.
void multiply_by(Parts<float> x, const float* factors, int64_t count, int64_t lanes);
void multiply_by(Parts<double> x, const double* factors, int64_t count, int64_t lanes);

/// Between rows of numbers and the parts of one lane.
template <class T>
struct FftRowLoops {
  void (*split)(const std::complex<T>* in, int64_t n, Parts<T> out);
  void (*join)(Parts<T> in, int64_t n, T scale, std::complex<T>* out);
  /// The first `bins` of the spectra of two real rows, each half the sum or difference that y, the
  /// transform of the rows as real and imaginary part, has; `odd` may be null. Imaginary parts are
  /// multiplied by `sign`.
  void (*split_pair)(Parts<T> y, int64_t n, int64_t bins, T half, T sign, std::complex<T>* even,
                     std::complex<T>* odd);
};
template <class T>
FftRowLoops<T> fft_row_loops();

}  // namespace paddle::cpu
