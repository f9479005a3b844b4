#pragma once
// The passes of a Fourier transform, for the best instruction set of the machine.

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
};

void fft_pass(const FftPass<float>& pass);
void fft_pass(const FftPass<double>& pass);

/// Multiplies element k of every lane by factors[k], a pair.
void multiply_by(Parts<float> x, const float* factors, int64_t count, int64_t lanes);
void multiply_by(Parts<double> x, const double* factors, int64_t count, int64_t lanes);

}  // namespace paddle::cpu
