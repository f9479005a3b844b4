#include "onnx/ops/resize_coordinates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace paddle::onnx {

Fraction simplest_fraction(double scale) {
  const auto wanted = static_cast<float>(scale);
  Fraction last{1, 0}, f{std::floor(scale), 1};
  for (double rest = scale - f.numerator;
       static_cast<float>(f.numerator / f.denominator) != wanted && rest > 0;) {
    const double whole = std::floor(1 / rest);
    if (!(whole * f.denominator + last.denominator < 0x1p40)) return {scale, 1};
    rest = 1 / rest - whole;
    const Fraction next{whole * f.numerator + last.numerator,
                        whole * f.denominator + last.denominator};
    last = std::exchange(f, next);
  }
  return f;
}

float source_coordinate(const ResizeOptions& s, const AxisResize& a, int64_t at) {
  const auto x = static_cast<float>(at), in = static_cast<float>(a.input_size),
             to = static_cast<float>(a.output_size), scale = static_cast<float>(a.scale);
  if (s.coordinates == "align_corners") {
    // A growing axis has an integer length, as in PyTorch and ONNX Runtime; ONNX's own test cases
    // do not round the length of a shrinking one.
    const auto out = a.output_size > a.input_size
                         ? to
                         : static_cast<float>(a.scale * static_cast<double>(a.input_size));
    return out == 1 ? 0 : x * (in - 1) / (out - 1);
  }
  if (s.coordinates == "asymmetric") return x / scale;
  if (s.coordinates == "tf_half_pixel_for_nn") return (x + 0.5F) / scale;
  if (s.coordinates == "tf_crop_and_resize") {
    const auto start = static_cast<float>(a.start), end = static_cast<float>(a.end);
    if (a.output_size == 1) return 0.5F * (start + end) * (in - 1);
    return start * (in - 1) + x * (end - start) * (in - 1) / (to - 1);
  }
  if (s.coordinates == "pytorch_half_pixel" && a.output_size == 1) return 0;
  if (s.coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - to / (scale * in)) + (x + 0.5F) / scale - 0.5F;
  if (s.coordinates == "half_pixel" || s.coordinates == "pytorch_half_pixel")
    return (x + 0.5F) / scale - 0.5F;
  fail(ErrorCode::kModel, "unknown coordinate_transformation_mode '", s.coordinates, "'");
}

double exact_source_coordinate(const ResizeOptions& s, const AxisResize& a, int64_t at) {
  const auto x = static_cast<double>(at), in = static_cast<double>(a.input_size),
             to = static_cast<double>(a.output_size);
  const double p = a.exact.numerator, q = a.exact.denominator;
  if (s.coordinates == "align_corners") {
    if (a.output_size > a.input_size) return x * (in - 1) / (to - 1);
    return p * in == q ? 0 : x * (in - 1) * q / (p * in - q);
  }
  if (s.coordinates == "asymmetric") return x * q / p;
  if (s.coordinates == "tf_half_pixel_for_nn") return (2 * x + 1) * q / (2 * p);
  if (s.coordinates == "tf_crop_and_resize") {
    if (a.output_size == 1) return 0.5 * (a.start + a.end) * (in - 1);
    return a.start * (in - 1) + x * (a.end - a.start) * (in - 1) / (to - 1);
  }
  if (s.coordinates == "pytorch_half_pixel" && a.output_size == 1) return 0;
  if (s.coordinates == "half_pixel_symmetric")
    return (in * p - to * q + (2 * x + 1) * q - p) / (2 * p);
  if (s.coordinates == "half_pixel" || s.coordinates == "pytorch_half_pixel")
    return ((2 * x + 1) * q - p) / (2 * p);
  fail(ErrorCode::kModel, "unknown coordinate_transformation_mode '", s.coordinates, "'");
}

int64_t scaled_size(int64_t size, double scale) {
  const float to = std::floor(static_cast<float>(size) * static_cast<float>(scale));
  if (!(to >= 0 && to < 0x1p40F))
    fail(ErrorCode::kModel, "the size ", size, " cannot be scaled by ", scale);
  return static_cast<int64_t>(to);
}

namespace {

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance), x2 = x * x, x3 = x * x2;
  if (x <= 1) return (a + 2) * x3 - (a + 3) * x2 + 1;
  return x < 2 ? a * x3 - 5 * a * x2 + 8 * a * x - 4 * a : 0;
}

}  // namespace

Taps filter_taps(const ResizeOptions& s, double ratio, double scale) {
  Taps t;
  const bool linear = s.mode == "linear";
  const double shrink = s.antialias ? std::min(scale, 1.0) : 1.0;
  const double reach = (linear ? 1 : 2) / shrink;
  t.first = static_cast<int64_t>(std::floor(-reach)) + 1;
  double total = 0;
  for (int64_t i = t.first; i <= 1 - t.first; ++i) {
    const double distance = (static_cast<double>(i) - ratio) * shrink;
    const double w =
        linear ? std::max(0.0, 1 - std::abs(distance)) : cubic_weight(distance, s.cubic);
    t.weights.push_back(w);
    total += w;
  }
  if (s.antialias)
    for (double& w : t.weights) w /= total;
  return t;
}

int64_t nearest_index(const ResizeOptions& s, double x, double scale) {
  if (s.nearest == "outward") return static_cast<int64_t>(scale < 1 ? std::ceil(x) : std::floor(x));
  if (s.nearest == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (s.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  if (s.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (s.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  fail(ErrorCode::kModel, "unknown nearest_mode '", s.nearest, "'");
}

}  // namespace paddle::onnx
