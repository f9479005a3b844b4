#pragma once
// Loops of distances between rows, for the best instruction set of the machine. T is float or
// double; sums are taken in T, in parts of kDistancePart elements.

#include <cstdint>

namespace paddle::cpu {

constexpr int64_t kDistancePart = 64;

template <class T>
struct DistanceLoops {
  /// Rows of y that lie side by side in a panel.
  int64_t panel;
  /// Element k of rows j, j + 1, … of y [rows, size], `panel` of them and zeros past the last one,
  /// in panel[k].
  void (*pack)(const T* y, int64_t rows, int64_t size, T* panel);
  /// Distances of `rows` rows of x [rows, size] to those of a panel, the first `columns` of which
  /// are stored, `stride` elements apart for the next row of x.
  void (*distances)(const T* x, int64_t rows, const T* panel, int64_t columns, int64_t size, T* out,
                    int64_t stride);
  /// out[i] = sum over the `count` rows y[j] of weight[i * count + j] (x[i] - y[j]), for `rows`
  /// rows of x and out.
  void (*weighted)(const T* x, int64_t rows, const T* y, const T* weight, int64_t count,
                   int64_t size, T* out);
};

template <class T>
DistanceLoops<T> distance_loops();

}  // namespace paddle::cpu
