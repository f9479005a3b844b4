#pragma once
// Interpolation of spatial data at real coordinates.

#include <string>

#include "tensor/tensor.h"

namespace paddle::onnx {

struct InterpolationOptions {
  std::string mode = "linear";    ///< nearest, linear or cubic
  std::string padding = "zeros";  ///< zeros, border or reflection
  bool align_corners = true;      ///< whether reflection is at pixel centers or edges
};

/// Samples x [batch, channels, spatial...] at `coordinates`: one tensor [batch, points] per spatial
/// axis, in pixels. Returns [batch, channels, points]. Spatial sizes must be constant.
Tensor interpolate_at(const Tensor& x, const Tensors& coordinates,
                      const InterpolationOptions& options);

}  // namespace paddle::onnx
