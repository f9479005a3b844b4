#pragma once
// Inner loops of reductions. Accumulators have 8 bytes: double for floats, int64 for bool and
// signed integers, uint64 for unsigned ones, so that f32 sums do not depend on their order
// noticeably.

#include <cstdint>

#include "tensor/dtype.h"

namespace paddle::cpu {

enum class Reduction : uint8_t { kSum, kProd, kMax, kMin, kAll, kAny };

/// Maximum number of accumulators of a run; always a power of two.
constexpr int64_t kMaxRunLanes = 32;
constexpr int64_t kRunPiece = 64;

struct ReduceLoops {
  /// Folds n elements of a run, element i into accumulator i modulo `run_lanes` or a divisor of it.
  /// A run may be passed in pieces; all but the last must be multiples of kRunPiece.
  void (*run)(void* lanes, const void* x, int64_t n);
  /// Folds the accumulators of a run into the first one; those from `used` on are empty.
  void (*fold)(void* lanes, int64_t used);
  /// Folds x[i] into accumulators[i], for i < n.
  void (*rows)(void* accumulators, const void* x, int64_t n);
  /// Folds others[i] into accumulators[i].
  void (*combine)(void* accumulators, const void* others, int64_t n);
  /// Resets accumulators.
  void (*clear)(void* accumulators, int64_t n);
  int run_lanes;  ///< at most kMaxRunLanes
  /// results[r] = what run and fold give for the n elements from x[r * n] on; null for integers.
  void (*all_runs)(double* results, const void* x, int64_t count, int64_t n) = nullptr;
};

/// `compute` is bool, an integer type, f32 or f64.
ReduceLoops reduce_loops(Reduction reduction, DType compute);
/// The type of the accumulators: f64, i64 or u64.
DType accumulator_type(DType compute);

// Loops over rows for softmax and similar operations, in f32 and f64. All propagate NaN.
template <class T>
struct RowLoops {
  T (*max)(const T* x, int64_t n);                    ///< -inf if n is 0
  double (*sum_exp)(const T* x, int64_t n, T shift);  ///< Σ exp(x - shift)
  /// y = exp(x - shift), and the sum; y may be x.
  double (*exp_and_sum)(const T* x, T* y, int64_t n, T shift);
  void (*scale)(const T* x, T* y, int64_t n, T factor);          ///< y = x * factor
  void (*subtract_both)(const T* x, T* y, int64_t n, T a, T b);  ///< y = (x - a) - b
  double (*sum)(const T* x, int64_t n);
  double (*dot)(const T* x, const T* y, int64_t n);
  double (*squared_distance)(const T* x, int64_t n, T center);          ///< Σ (x - center)²
  double (*dot_centered)(const T* g, const T* x, int64_t n, T center);  ///< Σ g (x - center)
  void (*multiply)(const T* x, const T* y, T* out, int64_t n);
  /// out = (x - center) y; out may be x.
  void (*multiply_centered)(const T* x, const T* y, T* out, int64_t n, T center);
  /// out = (x - center) * scale * weight + bias; weight and bias may be null.
  void (*normalize)(const T* x, const T* weight, const T* bias, T* out, int64_t n, T center,
                    T scale);
  /// out = a g + b (x - center) + c; out may be g or x.
  void (*combine)(const T* g, const T* x, T* out, int64_t n, T a, T b, T center, T c);
  /// out = (x - center) scale + bias; out may be x.
  void (*affine)(const T* x, T* out, int64_t n, T center, T scale, T bias);
  void (*add)(T* sum, const T* x, int64_t n);  ///< sum += x
  /// sum += g (x - center) scale
  void (*add_centered)(T* sum, const T* g, const T* x, int64_t n, T center, T scale);
};
template <class T>
const RowLoops<T>& row_loops();
template <>
const RowLoops<float>& row_loops<float>();
template <>
const RowLoops<double>& row_loops<double>();

}  // namespace paddle::cpu
