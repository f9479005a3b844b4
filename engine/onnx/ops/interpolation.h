#pragma once
// Reading images and volumes at real coordinates.

#include <string>

#include "tensor/tensor.h"

namespace paddle::onnx {

struct InterpolationOptions {
  std::string mode = "linear";    ///< nearest, linear or cubic
  std::string padding = "zeros";  ///< zeros, border or reflection
  bool align_corners = true;      ///< what reflection takes for the border
};

/// x [batch, channels, spatial...] at `coordinates`, one tensor [batch, points] for each spatial
/// axis, in places of that axis. Gives [batch, channels, points]. Spatial sizes must be known.
Tensor sample(const Tensor& x, const Tensors& coordinates, const InterpolationOptions& options);

}  // namespace paddle::onnx
