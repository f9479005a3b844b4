#pragma once
// Source coordinates, neighbors and weights of a resized axis, as ONNX defines them for Resize.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::onnx {

/// Interpolation mode, coordinate transformation and border handling.
struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

/// A rational scale.
struct Fraction {
  double numerator = 1, denominator = 1;
};

/// The simplest fraction that rounds to a float32 scale (by continued fractions): 3/10 for 0.3, 1/3
/// for a third.
Fraction simplest_fraction(double scale);

/// Sizes and scale of one axis.
struct AxisResize {
  int64_t axis = 0, input_size = 0, output_size = 0;
  double scale = 1, start = 0, end = 1;  ///< start and end: the region of tf_crop_and_resize
  Fraction exact = {};                   ///< the scale as a fraction
};

/// The input coordinate of output index `at` for linear and cubic, in float32 as in PyTorch and
/// ONNX Runtime.
float source_coordinate(const ResizeOptions& s, const AxisResize& a, int64_t at);
/// The same for `nearest`, where ties matter. Numerator and denominator are integers, exact in
/// float64; so is their quotient wherever it is an integer or a half.
double exact_source_coordinate(const ResizeOptions& s, const AxisResize& a, int64_t at);
/// floor(size * scale) in float32, as in PyTorch and ONNX Runtime.
int64_t scaled_size(int64_t size, double scale);

/// Weights of consecutive neighbors from offset `first` relative to the left one; `ratio` in (0,
/// 1].
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

Taps filter_taps(const ResizeOptions& s, double ratio, double scale);
/// The input index that `nearest` selects for a coordinate.
int64_t nearest_index(const ResizeOptions& s, double x, double scale);

}  // namespace paddle::onnx
