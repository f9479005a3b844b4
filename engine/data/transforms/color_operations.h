#pragma once
// Operations on the colors of uint8 images [channels, height, width] (3 channels: RGB) or
// [height, width], in place. Those that exist in Pillow's ImageOps and ImageEnhance compute the
// same.

#include "data/dataset.h"

namespace paddle::data {

/// Factors: 1 changes nothing. Brightness blends with black, contrast with the mean grey,
/// saturation with the grey image.
void adjust_brightness(Value& image, double factor);
void adjust_contrast(Value& image, double factor);
void adjust_saturation(Value& image, double factor);
/// Shifts the hue by a share of the color circle, -0.5 … 0.5. Grey images stay.
void adjust_hue(Value& image, double shift);
/// Blends with a smoothed image: above 1 sharpens.
void adjust_sharpness(Value& image, double factor);
/// Gaussian, with a kernel of 3 sigma either way and the edge repeated.
void blur(Value& image, double sigma);
/// Inverts values of at least `threshold`.
void solarize(Value& image, int threshold);
/// Keeps the highest `bits` of a value.
void posterize(Value& image, int bits);
/// Stretches each channel to 0 … 255.
void auto_contrast(Value& image);
/// Makes the values of each channel equally frequent.
void equalize(Value& image);

}  // namespace paddle::data
