#include "lang/layers/patterns.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/text.h"

namespace paddle::lang {
namespace {

using Kind = Initializer::Kind;

/// 1 in the middle of the window from input i to output i of each group, 0 elsewhere.
std::vector<double> dirac_values(int64_t groups, const Dims& shape) {
  std::vector<double> out(static_cast<size_t>(element_count(std::span<const int64_t>(shape))), 0.0);
  int64_t window = 1, middle = 0;
  for (size_t i = 2; i < shape.size(); ++i) {
    window *= shape[i];
    middle = middle * shape[i] + shape[i] / 2;
  }
  if (out.empty()) return out;
  const int64_t each = shape[0] / groups;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < std::min(each, shape[1]); ++i)
      out[static_cast<size_t>(((g * each + i) * shape[1] + i) * window + middle)] = 1;
  return out;
}

/// Weights of linear interpolation in both axes of each window.
std::vector<double> bilinear_values(const Dims& shape) {
  std::vector<double> out(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  const int64_t side = shape[3], half = (side + 1) / 2;
  const double width = static_cast<double>(half);
  const double center = static_cast<double>(2 * half - 1 - half % 2) / (2 * width);
  const auto weight = [&](int64_t place) {
    return 1 - std::abs(static_cast<double>(place) / width - center);
  };
  for (size_t i = 0; i < out.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    out[i] = weight(place % side) * weight(place / side % side);
  }
  return out;
}

}  // namespace

void check_pattern(const Initializer& init, const std::string& path, const Dims& shape) {
  if (init.kind == Kind::kOrthogonal && shape.size() < 2)
    fail(ErrorCode::kConfig, "orthogonal: '", path, "' needs at least 2 axes");
  if (init.kind == Kind::kBilinear && (shape.size() != 4 || shape[2] != shape[3]))
    fail(ErrorCode::kConfig, "bilinear: '", path, "' must be a weight [out, in, n, n], not ",
         str(shape));
  if (init.kind != Kind::kDirac) return;
  const auto groups = static_cast<int64_t>(init.a);
  if (shape.size() < 3 || shape.size() > 5)
    fail(ErrorCode::kConfig, "dirac: '", path,
         "' must be a weight [out, in, window...] of 3 to 5 axes, not ", str(shape));
  if (shape[0] % groups != 0)
    fail(ErrorCode::kConfig, "dirac: the first axis of '", path, "', ", shape[0],
         ", is not a multiple of the ", groups, " groups");
}

std::vector<double> pattern_values(const Initializer& init, const Dims& shape) {
  return init.kind == Kind::kDirac ? dirac_values(static_cast<int64_t>(init.a), shape)
                                   : bilinear_values(shape);
}

}  // namespace paddle::lang
