#pragma once
// The three steps of a 3 × 3 convolution by Winograd's minimal filtering, on images with channels
// last, in f32. An output tile of m × m pixels is computed from (m + 2)² numbers for each input
// channel, its points, by one product per point and pair of channels: (m + 2)² where the sum over
// the window takes 9 m². (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016)

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/loops.h"

namespace paddle::cpu {

/// The points of a block of tiles: `pitch` floats from one point's matrix to the next, in which a
/// tile has a row of channels; those of volumes lie plane after plane.
struct WinogradPoints {
  float* data;
  int64_t pitch, channels;
};

/// The pixels of a tile or of what it is computed from that the image has.
struct WinogradWindow {
  int64_t first_row, first_column, rows, columns;
};

/// The points at which tiles of 4 × 4 are evaluated are 0, ± near, ± far and infinity: closer to
/// each other than the usual 1 and 2, which keeps a digit more.
constexpr double kWinogradNear = 0.625, kWinogradFar = 1.5;

struct WinogradLoops {
  /// Columns of the weights, which are output channels, that lie together, at most; whole vectors.
  int64_t panel;
  /// The points of the windows [3, 3] of one input channel, from `w` on, `stride` bytes from output
  /// channel to output channel, into a row of each point's panel, `pitch` floats apart.
  void (*weight)(const std::byte* w, int64_t stride, int64_t panel, float* u, int64_t pitch);
  /// Row `tile` of the points from the pixels whose first one is at x[first], which may lie before
  /// the image; `stride` floats from row to row.
  void (*input)(const float* x, int64_t first, int64_t stride, const WinogradWindow& window,
                int64_t tile, const WinogradPoints& points);
  /// c[tiles, panel] = Σ_plane a[plane, tiles, depth] u[plane], with u packed [plane, depth, panel]
  /// and `plane_stride` floats from a plane of `a` to the next.
  void (*product)(int64_t tiles, int64_t planes, int64_t depth, const float* a,
                  int64_t plane_stride, const float* u, int64_t panel, float* c, int64_t c_stride);
  /// The pixels of a tile from row `tile` of the points, plus `bias` (channels; may be null) and
  /// `residual` (as y; may be null), not below `least`.
  void (*output)(const WinogradPoints& points, int64_t tile, int64_t channels, const float* bias,
                 const float* residual, float clamp_min, float* y, int64_t stride,
                 const WinogradWindow& window);
};

/// For tiles of 2 × 2 or 4 × 4 pixels.
const WinogradLoops& winograd_loops(int64_t tile);

}  // namespace paddle::cpu
