#pragma once
// Small GEMMs with a fixed weight for recurrent layers: few rows (the batch), no packing. In f32
// and f64.

#include <cstdint>

namespace paddle::cpu {

template <class T>
struct RecurrentLoops {
  /// out[b, j] = Σ_k h[b, k] weight[j, k] for j in [first, last); rows of `out` are `out_stride`
  /// apart.
  void (*forward)(const T* h, int64_t batch, int64_t h_stride, const T* weight, int64_t hidden,
                  int64_t first, int64_t last, T* out, int64_t out_stride);
  /// out[b, k] = Σ_j g[b, j] weight[j, k] for k in [first, last) and j < gates.
  void (*backward)(const T* g, int64_t batch, int64_t g_stride, const T* weight, int64_t gates,
                   int64_t hidden, int64_t first, int64_t last, T* out);
  void (*sigmoid)(const T* x, T* y, int64_t n);
  void (*tanh)(const T* x, T* y, int64_t n);
};
template <class T>
const RecurrentLoops<T>& recurrent_loops();
template <>
const RecurrentLoops<float>& recurrent_loops<float>();
template <>
const RecurrentLoops<double>& recurrent_loops<double>();

}  // namespace paddle::cpu
