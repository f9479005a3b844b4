#pragma once
// Samples as small pictures inside of pages.

#include <string>

#include "data/dataset.h"

namespace paddle::train {

/// The image of a sample as a `data:` URI of a PNG with at most 64 x 64 pixels; "" if no field is
/// an image, or if the sample cannot be read.
std::string picture_of(const data::Dataset& dataset, int64_t sample);

}  // namespace paddle::train
