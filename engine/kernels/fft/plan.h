#pragma once
// Discrete Fourier transforms of any length: mixed radix by Stockham's method, which needs no
// reordering, and Bluestein's method for lengths with large prime factors. Several rows are
// transformed side by side (`lanes`), with real and imaginary parts apart, so that every inner loop
// runs over contiguous numbers.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace paddle::cpu {

/// Real and imaginary parts of values: element k of lane l is at k * lanes + l.
template <class T>
struct Parts {
  T* re;
  T* im;
  /// Exchanged parts: the transform of swapped values, swapped, is the inverse transform.
  Parts swapped() const { return {im, re}; }
};

template <class T>
class FftPlan {
 public:
  explicit FftPlan(int64_t n);

  int64_t length() const { return n_; }
  /// Elements per lane of each of the two buffers that `forward` works in: at least n.
  int64_t buffer_length() const { return inner_ ? inner_->n_ : n_; }

  /// True if single rows are transformed as fast as several side by side: their passes soon have
  /// strides that fill vectors.
  bool by_row() const { return by_row_; }

  /// x[k] = Σ_j x[j] exp(-2πi jk / n) for each lane. Overwrites both buffers; returns the one that
  /// holds the result.
  Parts<T> forward(Parts<T> x, Parts<T> other, int64_t lanes) const;

 private:
  struct Pass {
    int64_t radix, count;     ///< count: butterflies per lane and stride
    std::vector<T> twiddles;  ///< per butterfly: radix - 1 pairs
  };

  Parts<T> run_passes(Parts<T> x, Parts<T> y, int64_t lanes) const;
  Parts<T> bluestein(Parts<T> x, Parts<T> other, int64_t lanes) const;

  int64_t n_;
  std::vector<Pass> passes_;
  bool by_row_ = false;
  std::vector<T> columns_;  ///< twiddles of the first pass (FftPass::columns), for single rows
  std::vector<std::vector<T>> roots_;  ///< per pass of a radix above 5: the radix-th roots of one
  // Bluestein: a convolution of chirps by transforms of a power of two.
  std::unique_ptr<FftPlan> inner_;
  std::vector<T> chirp_;     ///< exp(-πi k² / n), pairs
  std::vector<T> spectrum_;  ///< of the other chirp, divided by the inner length, pairs
};

extern template class FftPlan<float>;
extern template class FftPlan<double>;

}  // namespace paddle::cpu
