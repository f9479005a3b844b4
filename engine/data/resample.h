#pragma once
// Reading images between their pixels: resizing a window, for the transforms that need it.

#include "data/dataset.h"

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

}  // namespace paddle::data
