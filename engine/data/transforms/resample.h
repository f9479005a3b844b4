#pragma once
// Reading images between their pixels: resizing a window, for the transforms that need it.

#include "data/transforms.h"

namespace paddle::data {

/// The last two axes of an image [channels, height, width] or [height, width], and how many planes
/// there are.
struct Frame {
  int64_t planes, height, width;
};
Frame frame_of(const Value& image);
/// `shape` with other last two axes.
Dims with_size(Dims shape, int64_t height, int64_t width);

struct Window {
  int64_t top, left, height, width;
};

/// Resizes a window of an image to height x width, into `out`: bilinear with half-pixel centers and
/// antialiasing, as Pillow does it, or nearest.
void resize_window(const Value& in, const Window& window, int64_t height, int64_t width,
                   bool nearest, Value& out);

/// Where a pixel (x, y) of the result, both counted from the center, is read in the image:
/// (xx x + xy y + x0, yx x + yy y + y0).
struct Map {
  double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
};
/// An image of the same size whose pixels are read at `map`, bilinear or nearest; `outside` beyond
/// its edges.
void warp(const Value& in, const Map& map, bool nearest, double outside, Value& out);

/// Where a window that is resized to height x width, or what `warp` does, puts points.
Placement placement_of(const Window& window, int64_t height, int64_t width);
Placement placement_of(const Map& map, int64_t height, int64_t width);

}  // namespace paddle::data
