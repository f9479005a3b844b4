// Object detection: non-maximum suppression and RoI pooling.

#include <optional>

#include "onnx/ops/helpers.h"
#include "ops/generated/detection.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Rows [batch, class, box] of the selected boxes.
Values non_max_suppression(NodeCall& c) {
  const int64_t limit = c.has_input(2) ? c.constant_int(2) : 0;
  const double threshold = c.has_input(3) ? c.constant_float(3) : 0;
  const auto least = c.has_input(4) ? std::optional<double>(c.constant_float(4)) : std::nullopt;
  return {ops::box_selection(c.tensor(0), c.tensor(1), limit, threshold, least,
                             c.bool_attr("center_point_box", false))};
}

Values roi_align(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const bool half =
      c.string_attr("coordinate_transformation_mode",
                    c.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const bool average = c.string_attr("mode", "avg") == "avg";
  return {compute_in_float32(x, [&](const Tensor& values) {
    return ops::roi_align_of(values, ops::cast(c.tensor(1), values.dtype()),
                             ops::cast(c.tensor(2), DType::kI64),
                             {c.int_attr("output_height", 1), c.int_attr("output_width", 1)},
                             c.float_attr("spatial_scale", 1), c.int_attr("sampling_ratio", 0),
                             half, average ? "avg" : "max");
  })};
}

/// Maximum of each bin of each region [batch, left, top, right, bottom]; 0 for empty bins.
Values max_roi_pool(NodeCall& c) {
  const Tensor &x = c.tensor(0), &regions = c.tensor(1);
  const std::vector<int64_t> pooled = c.ints_attr("pooled_shape");
  c.check(regions.ndim() == 2 && regions.dim(1).equals(5) != false, "rois must be [regions, 5]");
  c.check(pooled.size() == 2, "pooled_shape must be two sizes");
  const Tensor images =
                   ops::cast(ops::reshape(slice_axis(regions, 1, 0, 1), Shape{-1}), DType::kI64),
               boxes = slice_axis(regions, 1, 1, 5);
  return {compute_in_float32(x, [&](const Tensor& values) {
    return ops::roi_pool_of(values, ops::cast(boxes, values.dtype()), images, pooled,
                            c.float_attr("spatial_scale", 1));
  })};
}

}  // namespace

OperatorTable detection_operators() {
  static constexpr Operator operators[] = {
      {"MaxRoiPool", 1, max_roi_pool},
      {"NonMaxSuppression", 1, non_max_suppression},
      {"RoiAlign", 1, roi_align},
  };
  return operators;
}

}  // namespace paddle::onnx
