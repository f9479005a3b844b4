#pragma once
// One row of an RMS norm.

#include <cmath>

#include "kernels/reduce/reduce_simd.h"

namespace paddle::cpu {

/// out = x over the root of the mean of its squares, times weight [n], which may be null; out may
/// be x.
template <class C>
void rms_normalize(const C* x, const C* weight, C* out, int64_t n, double epsilon) {
  const RowLoops<C>& loops = row_loops<C>();
  const double mean_square = loops.squared_distance(x, n, C(0)) / static_cast<double>(n);
  loops.normalize(x, weight, nullptr, out, n, C(0),
                  static_cast<C>(1 / std::sqrt(mean_square + epsilon)));
}

}  // namespace paddle::cpu
