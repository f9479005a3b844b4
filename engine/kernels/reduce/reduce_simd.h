#pragma once
// The inner loops of reductions. Accumulators are 8 bytes: double for floats, int64 for bool and
// signed integers, uint64 for unsigned ones, so that sums of f32 lose nothing to their order.

#include <cstdint>

#include "tensor/dtype.h"

namespace paddle::cpu {

enum class Reduction : uint8_t { kSum, kProd, kMax, kMin, kAll, kAny };

/// The most accumulators of a run; they are a power of two.
constexpr int64_t kMaxRunLanes = 32;

struct ReduceLoops {
  /// Folds n elements of a run: element i into accumulator i modulo `run_lanes`. A run may come in
  /// parts, of which all but the last hold multiples of that.
  void (*run)(void* lanes, const void* x, int64_t n);
  /// The first accumulator of a run takes the others; those from `used` on hold nothing.
  void (*fold)(void* lanes, int64_t used);
  /// accumulators[i] takes x[i], for i < n.
  void (*rows)(void* accumulators, const void* x, int64_t n);
  /// accumulators[i] takes others[i].
  void (*combine)(void* accumulators, const void* others, int64_t n);
  /// Accumulators of no elements.
  void (*clear)(void* accumulators, int64_t n);
  int run_lanes;  ///< at most kMaxRunLanes
};

/// `compute` is bool, an integer type, f32 or f64.
ReduceLoops reduce_loops(Reduction reduction, DType compute);
/// The type of the accumulators: f64, i64 or u64.
DType accumulator_type(DType compute);

// Row loops of softmax and its kin, for f32 and f64. All keep NaN.
template <class T>
struct RowLoops {
  T (*max)(const T* x, int64_t n);                    ///< -inf if n is 0
  double (*sum_exp)(const T* x, int64_t n, T shift);  ///< Σ exp(x - shift)
  /// y = exp(x - shift), and the sum; y may be x.
  double (*exp_and_sum)(const T* x, T* y, int64_t n, T shift);
  void (*scale)(const T* x, T* y, int64_t n, T factor);    ///< y = x * factor
  void (*subtract)(const T* x, T* y, int64_t n, T value);  ///< y = x - value
  double (*sum)(const T* x, int64_t n);
  double (*dot)(const T* x, const T* y, int64_t n);
  double (*squared_distance)(const T* x, int64_t n, T center);          ///< Σ (x - center)²
  double (*dot_centered)(const T* g, const T* x, int64_t n, T center);  ///< Σ g (x - center)
  void (*multiply)(const T* x, const T* y, T* out, int64_t n);
  /// out = (x - center) y; out may be x.
  void (*multiply_centered)(const T* x, const T* y, T* out, int64_t n, T center);
  /// out = (x - center) * scale * weight + bias, without weight and bias where those are null.
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
