#pragma once
// The three steps of a 3 × 3 Winograd convolution in NHWC, in f32. An output tile of m × m pixels
// is computed from (m + 2)² transformed values (points) per input channel, with one product per
// point and pair of channels: (m + 2)² where the direct sum takes 9 m². (Lavin and Gray, Fast
// Algorithms for Convolutional Neural Networks, 2016)

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/loops.h"

namespace paddle::cpu {

/// The points of a block of tiles, as one matrix [tile, channel] per point, `pitch` floats apart;
/// for 3-D convolutions plane after plane.
struct WinogradPoints {
  float* data;
  int64_t pitch, channels;
};

/// The pixels of a tile, or of its input, that are inside the image.
struct WinogradWindow {
  int64_t first_row, first_column, rows, columns;
};

/// Tiles of 4 × 4 are evaluated at 0, ± near, ± far and infinity: closer together than the usual 1
/// and 2, which keeps one more digit.
constexpr double kWinogradNear = 0.625, kWinogradFar = 1.5;

struct WinogradLoops {
  /// Maximum output channels of a weight panel; a multiple of the vector length.
  int64_t panel;
  /// Transforms the kernels [3, 3] of one input channel, `stride` bytes between output channels
  /// from `w` on, into a row of each point's panel, `pitch` floats apart.
  void (*weight)(const std::byte* w, int64_t stride, int64_t panel, float* u, int64_t pitch);
  /// Transforms the pixels from x[first] on, which may be before the image, into row `tile` of the
  /// points; `stride` floats between rows.
  void (*input)(const float* x, int64_t first, int64_t stride, const WinogradWindow& window,
                int64_t tile, const WinogradPoints& points);
  /// c[tiles, panel] = Σ_plane a[plane, tiles, depth] u[plane], with u packed [plane, depth, panel]
  /// and `plane_stride` floats between planes of `a`.
  void (*product)(int64_t tiles, int64_t planes, int64_t depth, const float* a,
                  int64_t plane_stride, const float* u, int64_t panel, float* c, int64_t c_stride);
  /// Transforms row `tile` of the points into pixels, adds `bias` (per channel; may be null) and
  /// `residual` (laid out like y; may be null), and clamps from below to `clamp_min`.
  void (*output)(const WinogradPoints& points, int64_t tile, int64_t channels, const float* bias,
                 const float* residual, float clamp_min, float* y, int64_t stride,
                 const WinogradWindow& window);
};

/// For tiles of 2 × 2 or 4 × 4 pixels.
const WinogradLoops& winograd_loops(int64_t tile);

}  // namespace paddle::cpu
