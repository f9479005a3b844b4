#include "data/transforms/box_geometry.h"

#include <algorithm>
#include <cmath>

namespace paddle::data {

std::vector<int64_t> move_boxes(const Placement& p, const Visible& visible, Value& boxes) {
  constexpr double kMinShare = 0.1, kMinSide = 1;  // of what stays of a box
  const int64_t count = boxes.shape()[0];
  std::vector<int64_t> kept;
  auto* values = boxes.data<float>();
  for (int64_t i = 0; i < count; ++i) {
    const float* box = values + i * 4;
    double left = HUGE_VAL, top = HUGE_VAL, right = -HUGE_VAL, bottom = -HUGE_VAL;
    for (const int corner : {0, 1, 2, 3}) {
      const double x = box[corner & 1 ? 2 : 0], y = box[corner & 2 ? 3 : 1];
      const double u = p.xx * x + p.xy * y + p.x0, v = p.yx * x + p.yy * y + p.y0;
      left = std::min(left, u), right = std::max(right, u);
      top = std::min(top, v), bottom = std::max(bottom, v);
    }
    const double area = (right - left) * (bottom - top);
    left = std::clamp(left, visible.left, visible.right);
    right = std::clamp(right, visible.left, visible.right);
    top = std::clamp(top, visible.top, visible.bottom);
    bottom = std::clamp(bottom, visible.top, visible.bottom);
    if (right - left < kMinSide || bottom - top < kMinSide ||
        (right - left) * (bottom - top) < kMinShare * area)
      continue;
    float* to = values + static_cast<int64_t>(kept.size()) * 4;
    to[0] = static_cast<float>(left), to[1] = static_cast<float>(top);
    to[2] = static_cast<float>(right), to[3] = static_cast<float>(bottom);
    kept.push_back(i);
  }
  if (static_cast<int64_t>(kept.size()) < count) {
    std::vector<int64_t> first(kept.size());
    for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<int64_t>(i);
    keep_rows(first, boxes);
  }
  return kept;
}

void keep_rows(const std::vector<int64_t>& rows, Value& value) {
  Value shorter;
  Dims shape = value.shape();
  const size_t row = shape[0] == 0 ? 0 : value.bytes() / static_cast<size_t>(shape[0]);
  shape[0] = static_cast<int64_t>(rows.size());
  shorter.reset(value.dtype(), shape);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(value.raw() + static_cast<size_t>(rows[i]) * row, row, shorter.raw() + i * row);
  std::swap(value, shorter);
}

}  // namespace paddle::data
