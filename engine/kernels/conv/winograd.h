#pragma once
// Winograd convolution (winograd_simd.h) of 3 × 3 kernels with constant weights: a quarter of the
// multiplications of the direct sum with tiles of 4 × 4 pixels, less than half with 2 × 2. 3-D
// convolutions sum over kernel planes before the output transform. Transformed values cost some of
// the last bits: errors are about 1e-6 of the results' magnitude, against 2e-7 for the direct sum.
// A value that is not finite affects all pixels of its tiles.

#include <memory>

#include "kernels/conv/conv_shape.h"
#include "kernels/conv/winograd_simd.h"
#include "kernels/epilogue.h"

namespace paddle::cpu {

class Winograd {
 public:
  /// The tile size (2 or 4 pixels a side) with the lowest cost for a float32 convolution with
  /// constant weights, or 0 if the direct sum is cheaper or the shape is not supported.
  /// `skip_prepack`: weights are transformed in each run.
  static int64_t best_tile(const ConvShape& shape, bool skip_prepack);

  /// `weight` is [out, in, 3, 3] or [out, in, planes, 3, 3], contiguous, at any address. With
  /// `skip_prepack` it must outlive the object.
  Winograd(const ConvShape& shape, int64_t tile, const void* weight, bool skip_prepack);
  int64_t tile() const { return tile_; }
  size_t scratch_bytes() const;
  /// x and y are channels last; `epilogue.residual` may be y.
  void run(const float* x, const BoundEpilogue& epilogue, float* y, std::byte* scratch) const;

 private:
  struct TileOrigin;
  TileOrigin tile_origin(int64_t t) const;
  // The three steps for tiles [begin, end), in all planes.
  void transform_input(int64_t begin, int64_t end, const float* x,
                       const WinogradPoints& points) const;
  void multiply(int64_t tiles, const WinogradPoints& from, const float* weight,
                const WinogradPoints& to) const;
  void transform_output(int64_t begin, int64_t end, const WinogradPoints& points,
                        const BoundEpilogue& epilogue, float* y) const;
  size_t worker_bytes() const;
  size_t work_bytes() const;

  ConvShape shape_;
  int64_t tile_, points_, panels_;
  int64_t tile_rows_, tile_columns_, tiles_;  ///< of one plane, and of one plane of the whole batch
  int64_t block_;                             ///< tiles that pass through the steps together
  int64_t workers_ = 1;  ///< that each have a block of their own; 1: all threads share one block
  const void* weight_;   ///< the original weights
  std::shared_ptr<Storage> packed_;  ///< [point, panel, plane, in, column]; null with skip_prepack
};

}  // namespace paddle::cpu
