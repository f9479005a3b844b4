#pragma once
// 3 × 3 convolutions by constant weights with fewer multiplications than the sum over the window
// takes (winograd_loops.h): a quarter with tiles of 4 × 4 pixels, less than half with 2 × 2. Those
// of volumes sum the points of a few planes before they come back to pixels. Sums
// are taken of transformed numbers, which costs some of the last bits: errors against exact sums
// are about 1e-6 of the results' size, where those of the sum over the window are 2e-7. What is not
// finite in an image reaches all pixels of its tiles.

#include <memory>

#include "kernels/conv/conv_shape.h"
#include "kernels/conv/winograd_simd.h"
#include "kernels/epilogue.h"

namespace paddle::cpu {

class Winograd {
 public:
  /// The tile, 2 or 4 pixels a side, with which a convolution in f32 by constant weights takes the
  /// least time, or 0 where the sum over the window does, or where it cannot be computed so.
  /// `once`: the weights are transformed for each run.
  static int64_t best_tile(const ConvShape& shape, bool skip_prepack);

  /// `weight` is [out, in, 3, 3] or [out, in, planes, 3, 3], contiguous, at any address; if `once`,
  /// it must live on.
  Winograd(const ConvShape& shape, int64_t tile, const void* weight, bool skip_prepack);
  int64_t tile() const { return tile_; }
  size_t scratch_bytes() const;
  /// x and y have channels last; `residual` may be y.
  void run(const float* x, const BoundEpilogue& epilogue, float* y, std::byte* scratch) const;

 private:
  struct TileOrigin;
  TileOrigin tile_origin(int64_t t) const;
  // The three steps for tiles from `begin` to `end`, in all planes.
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
  int64_t tile_rows_, tile_columns_, tiles_;  ///< of a plane, and of a plane of all volumes
  int64_t block_;                             ///< tiles that go through the steps together
  int64_t workers_ = 1;  ///< that each have blocks of their own; one: all threads share a block
  const void* weight_;   ///< the weights
  std::shared_ptr<Storage> packed_;  ///< [point, panel, plane, in, column]; null: made in each run
};

}  // namespace paddle::cpu
