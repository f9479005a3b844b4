#pragma once
// Boxes of an image that is moved: where they go, and which of them are still worth keeping.

#include <vector>

#include "data/transforms.h"

namespace paddle::data {

/// The part of an image that remains visible, in pixels.
struct Visible {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// Moves boxes [n, 4] and clips them to `visible`. Boxes of which little remains are left out; the
/// result has the numbers of the others, in order, and `boxes` holds them.
std::vector<int64_t> move_boxes(const Placement& placement, const Visible& visible, Value& boxes);
/// Leaves these rows of a value, in this order.
void keep_rows(const std::vector<int64_t>& rows, Value& value);

}  // namespace paddle::data
