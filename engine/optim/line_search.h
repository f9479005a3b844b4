#pragma once
// A step length along a line that satisfies the strong Wolfe conditions: the value falls enough,
// and the slope is flat enough.

#include <functional>
#include <memory>

#include "tensor/tensor.h"

namespace paddle::optim {

/// A point of the line: step length, value and slope there.
struct LinePoint {
  double at = 0, value = 0, slope = 0;
  std::shared_ptr<const std::vector<Array>> gradient = {};  ///< for the caller
};

struct LineSearch {
  double decrease = 1e-4, curvature = 0.9;  ///< c1 and c2 of the conditions
  double tolerance = 1e-9;                  ///< smallest bracket, in units of `extent`
  double extent = 1;                        ///< the largest component of the direction
  int evaluations = 25;                     ///< at most
};

/// Searches from `start` (at 0, with a negative slope) with `first` as the first length; `evaluate`
/// gives value and slope at a length. The result is a point that `evaluate` has seen, or `start`.
LinePoint search_line(const LineSearch& options, const LinePoint& start, double first,
                      const std::function<LinePoint(double at)>& evaluate);

}  // namespace paddle::optim
