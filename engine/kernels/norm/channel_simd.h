#pragma once
// Vector loops over channels-last rows for batch normalization: each channel has its own center,
// scale and sums. For f32 and f64.

#include <cstdint>

namespace paddle::cpu {

template <class T>
struct ChannelLoops {
  /// first += x - center, second += (x - center)², row by row.
  void (*moments)(const T* x, int64_t rows, int64_t channels, const T* center, T* first, T* second);
  /// sum += g, centered_sum += g (x - center), row by row.
  void (*grad_sums)(const T* g, const T* x, int64_t rows, int64_t channels, const T* center, T* sum,
                    T* centered_sum);
  /// out = (x - center) scale + shift; out may be x.
  void (*affine)(const T* x, T* out, int64_t channels, const T* center, const T* scale,
                 const T* shift);
  /// out = g scale + (x - center) slope + shift; out may be g or x.
  void (*combine)(const T* g, const T* x, T* out, int64_t channels, const T* center, const T* scale,
                  const T* slope, const T* shift);
};
template <class T>
const ChannelLoops<T>& channel_loops();
template <>
const ChannelLoops<float>& channel_loops<float>();
template <>
const ChannelLoops<double>& channel_loops<double>();

}  // namespace paddle::cpu
