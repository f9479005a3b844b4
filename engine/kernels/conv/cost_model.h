#pragma once
// What oneDNN, whose vectors hold channels, computes in vain where channels do not fill them. Our
// own convolutions, which run at its rate, are taken by these numbers.

#include "kernels/common/rounding.h"
#include "kernels/conv/conv_shape.h"

namespace paddle::cpu {

inline constexpr int64_t kAvx512Lanes = 16;

/// The part of the vectors' lanes that n elements fill, squared: lanes that are not filled cost
/// about as much again where elements are brought into vectors.
inline double lane_utilization(int64_t n, int64_t lanes) {
  const double fraction = static_cast<double>(n) / static_cast<double>(round_up(n, lanes));
  return fraction * fraction;
}

/// Multiplications of oneDNN over those that are needed, where it computes so many channels.
inline double padded_flop_ratio(const ConvShape& s, int64_t in, int64_t out) {
  return static_cast<double>(in * out) / static_cast<double>(s.in_channels * s.out_channels);
}

/// The same of the convolution itself, on a machine with vectors of so many lanes.
inline double onednn_flop_ratio(const ConvShape& s, int64_t lanes) {
  const bool is_few = s.in_channels <= kAvx512Lanes;
  const int64_t in = s.in_channels <= lanes ? s.in_channels : round_up(s.in_channels, lanes);
  // Its code for AVX2 is slower than ours for few input channels.
  const double slower = is_few && lanes < kAvx512Lanes ? 1.3 : 1.0;
  return slower * padded_flop_ratio(s, in, round_up(s.out_channels, lanes));
}

}  // namespace paddle::cpu
