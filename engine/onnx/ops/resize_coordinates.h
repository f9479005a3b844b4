#pragma once
// Where the elements of a resized axis come from: coordinates, neighbours and their weights, as
// ONNX defines them for Resize.

#include <cstdint>
#include <string>
#include <vector>

namespace paddle::onnx {

/// How coordinates, weights and borders are chosen.
struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

/// A scale as the quotient of two whole numbers.
struct Fraction {
  double numerator = 1, denominator = 1;
};

/// The scale that a file holds in float32: the first continued fraction that rounds to it. So 0.3
/// is 3/10 and a third is 1/3.
Fraction simplest_fraction(double scale);

/// One axis: where it goes and what it takes from.
struct AxisResize {
  int64_t axis = 0, from = 0, to = 0;
  double scale = 1, start = 0, end = 1;  ///< the part of the input, for tf_crop_and_resize
  Fraction exact = {};                   ///< the scale
};

/// The input coordinate of an output element. `linear` and `cubic` use it; in float32, as PyTorch
/// and ONNX Runtime compute it.
float source_coordinate(const ResizeOptions& s, const AxisResize& a, int64_t at);
/// The same for `nearest`, where it matters on which side of a whole number, or of the middle
/// between two, a coordinate lies. Numerator and denominator are whole numbers, exact in float64;
/// so is their quotient wherever it is whole or a half.
double exact_source_coordinate(const ResizeOptions& s, const AxisResize& a, int64_t at);
/// size * scale, rounded down, in float32 as PyTorch and ONNX Runtime compute it.
int64_t scaled_size(int64_t size, double scale);

/// Offsets from the neighbour on the left, and their weights; `ratio` is in (0, 1].
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

Taps filter_taps(const ResizeOptions& s, double ratio, double scale);
/// The input element that `nearest` takes for a coordinate.
int64_t nearest_index(const ResizeOptions& s, double x, double scale);

}  // namespace paddle::onnx
