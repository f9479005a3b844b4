#pragma once
// Cost model: the fraction of FLOPs that oneDNN wastes because its vectors hold channels, which few
// channels do not fill. Used to choose our small-channel convolutions, which otherwise run at the
// same rate.

#include "kernels/common/rounding.h"
#include "kernels/conv/conv_shape.h"

namespace paddle::cpu {

inline constexpr int64_t kAvx512Lanes = 16;

/// The share of SIMD lanes that n elements fill, squared: idle lanes cost as much again when
/// elements are gathered into vectors.
inline double lane_utilization(int64_t n, int64_t lanes) {
  const double fraction = static_cast<double>(n) / static_cast<double>(round_up(n, lanes));
  return fraction * fraction;
}

/// Multiplications with padded channel counts over those that are needed.
inline double padded_flop_ratio(const ConvShape& s, int64_t in, int64_t out) {
  return static_cast<double>(in * out) / static_cast<double>(s.in_channels * s.out_channels);
}

/// The same for oneDNN's forward convolution on a machine with vectors of `lanes` floats.
inline double onednn_flop_ratio(const ConvShape& s, int64_t lanes) {
  const bool is_few = s.in_channels <= kAvx512Lanes;
  const int64_t in = s.in_channels <= lanes ? s.in_channels : round_up(s.in_channels, lanes);
  // oneDNN's AVX2 code is slower than ours for few input channels.
  const double slower = is_few && lanes < kAvx512Lanes ? 1.3 : 1.0;
  return slower * padded_flop_ratio(s, in, round_up(s.out_channels, lanes));
}

}  // namespace paddle::cpu
