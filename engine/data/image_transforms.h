#pragma once
// Transforms of images, which are fields [channels, height, width] or [height, width].

#include <memory>

#include "data/transforms.h"

namespace paddle::data {

std::unique_ptr<Transform> make_image_transform(const TransformOptions& options);

}  // namespace paddle::data
