// Object detection: non-maximum suppression and RoI pooling. They read the values of boxes, so they
// run between the partitions of a model (graph/partitions.h).

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/indexing.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box box_at(const Array& boxes, int64_t i, bool centered) {
  const double a = boxes.number(4 * i), b = boxes.number(4 * i + 1), p = boxes.number(4 * i + 2),
               q = boxes.number(4 * i + 3);
  if (centered) return {b - q / 2, a - p / 2, b + q / 2, a + p / 2};  // x, y, width, height
  return {std::min(a, p), std::min(b, q), std::max(a, p), std::max(b, q)};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  const double common = height * width, all = a.area() + b.area() - common;
  return all > 0 ? common / all : 0;
}

/// Rows [batch, class, box] of the selected boxes: per class in order of score, skipping boxes that
/// overlap a better one by more than the threshold.
Values non_max_suppression(NodeCall& c) {
  const Array boxes = c.constant_array(0), scores = c.constant_array(1);
  c.check(boxes.ndim() == 3 && boxes.shape[2] == 4 && scores.ndim() == 3 &&
              scores.shape[0] == boxes.shape[0] && scores.shape[2] == boxes.shape[1],
          "boxes must be [batch, boxes, 4] and scores [batch, classes, boxes]");
  const int64_t limit = c.has_input(2) ? c.constant_int(2) : 0;
  const double threshold = c.has_input(3) ? c.constant_float(3) : 0;
  const bool has_least = c.has_input(4);
  const double min_score = has_least ? c.constant_float(4) : 0;
  const bool centered = c.bool_attr("center_point_box", false);
  const int64_t count = boxes.shape[1], classes = scores.shape[1];
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < boxes.shape[0]; ++b) {
    std::vector<Box> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(box_at(boxes, b * count + i, centered));
    for (int64_t k = 0; k < classes; ++k) {
      std::vector<std::pair<double, int64_t>> order;
      for (int64_t i = 0; i < count; ++i) {
        const double score = scores.number((b * classes + k) * count + i);
        if (!has_least || score > min_score) order.emplace_back(score, i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [](const auto& x, const auto& y) { return x.first > y.first; });
      std::vector<int64_t> kept;
      for (const auto& [score, i] : order) {
        if (static_cast<int64_t>(kept.size()) >= limit) break;
        const Box& box = all[static_cast<size_t>(i)];
        const bool free = std::none_of(kept.begin(), kept.end(), [&](int64_t other) {
          return overlap(box, all[static_cast<size_t>(other)]) > threshold;
        });
        if (free) kept.push_back(i);
      }
      for (const int64_t i : kept) rows.insert(rows.end(), {b, k, i});
    }
  }
  return {Tensor(Array::from(rows, {static_cast<int64_t>(rows.size()) / 3, 3}))};
}

/// Bilinear interpolation: the four neighbors of a point as indices into a plane, with weights.
struct Corners {
  int64_t index[4] = {0, 0, 0, 0};
  double weight[4] = {0, 0, 0, 0};
};

Corners corners_of(double y, double x, int64_t height, int64_t width) {
  Corners c;
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width))
    return c;
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
  const int64_t indices[4] = {top * width + left, top * width + right, bottom * width + left,
                              bottom * width + right};
  const double weights[4] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
  std::copy(indices, indices + 4, c.index);
  std::copy(weights, weights + 4, c.weight);
  return c;
}

/// Pools one region: average or maximum of its weighted samples.
Tensor pool_region(const NodeCall& c, const Tensor& rows, const Array& boxes, int64_t n,
                   int64_t start, int64_t height, int64_t width) {
  const double scale = c.float_attr("spatial_scale", 1);
  const bool half =
      c.string_attr("coordinate_transformation_mode",
                    c.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const int64_t out_h = c.int_attr("output_height", 1), out_w = c.int_attr("output_width", 1),
                ratio = c.int_attr("sampling_ratio", 0);
  c.check(out_h > 0 && out_w > 0 && out_h < 1 << 16 && out_w < 1 << 16 && ratio < 1 << 16,
          "output sizes are out of range");
  const double shift = half ? 0.5 : 0;
  const auto edge = [&](int64_t i) { return boxes.number(4 * n + i) * scale - shift; };
  double region_w = edge(2) - edge(0), region_h = edge(3) - edge(1);
  if (!half) {
    region_w = std::max(region_w, 1.0);
    region_h = std::max(region_h, 1.0);
  }
  c.check(
      std::isfinite(region_w) && std::isfinite(region_h) && region_w < 0x1p30 && region_h < 0x1p30,
      "a region's size is out of range");
  const double bin_h = region_h / static_cast<double>(out_h),
               bin_w = region_w / static_cast<double>(out_w);
  const auto grid = [&](double bin) {
    return ratio > 0 ? ratio : static_cast<int64_t>(std::max(0.0, std::ceil(bin)));
  };
  const int64_t grid_h = grid(bin_h), grid_w = grid(bin_w), samples = grid_h * grid_w;
  c.check(samples <= 1 << 16 && samples <= max_listed_indices() / (out_h * out_w),
          "a region has too many samples");
  if (samples == 0) return ops::full({rows.dim(1), Dim(out_h), Dim(out_w)}, 0.0, rows.dtype());
  const bool average = c.string_attr("mode", "avg") == "avg";
  std::vector<int64_t> indices;
  std::vector<double> weights;
  for (int64_t p = 0; p < out_h * out_w; ++p)
    for (int64_t s = 0; s < samples; ++s) {
      const auto at = [&](int64_t bin, int64_t sample, int64_t count, double size, double from) {
        return from + static_cast<double>(bin) * size +
               (static_cast<double>(sample) + 0.5) * size / static_cast<double>(count);
      };
      const Corners k =
          corners_of(at(p / out_w, s / grid_w, grid_h, bin_h, edge(1)),
                     at(p % out_w, s % grid_w, grid_w, bin_w, edge(0)), height, width);
      for (int i = 0; i < 4; ++i) {
        indices.push_back(start + k.index[i]);
        weights.push_back(average ? k.weight[i] / static_cast<double>(samples) : k.weight[i]);
      }
    }
  const auto total = static_cast<int64_t>(indices.size());
  const Tensor w = ops::cast(Tensor(Array::from(weights, {total, 1})), rows.dtype());
  const Tensor values = ops::reshape(ops::index_select(rows, int_vector(indices), 0) * w,
                                     {Dim(out_h * out_w), Dim(samples * 4), rows.dim(1)});
  const std::vector<int64_t> axis = {1};
  const Tensor out = average ? ops::sum(values, axis, rows.dtype()) : ops::max(values, axis);
  return ops::reshape(ops::transpose(out, {1, 0}), {rows.dim(1), Dim(out_h), Dim(out_w)});
}

Values roi_align(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Array boxes = c.constant_array(1);
  const auto batches = c.constant_ints(2);
  c.check(boxes.ndim() == 2 && boxes.shape[1] == 4 &&
              boxes.shape[0] == static_cast<int64_t>(batches.size()),
          "rois must be [regions, 4] with one batch index each");
  const int64_t batch = constant_dim(x, 0), height = constant_dim(x, 2), width = constant_dim(x, 3);
  const Tensor rows =
      ops::reshape(ops::transpose(x, {0, 2, 3, 1}), {Dim(batch * height * width), x.dim(1)});
  Tensors out;
  for (size_t n = 0; n < batches.size(); ++n) {
    c.check(batches[n] >= 0 && batches[n] < batch, "the batch index ", batches[n],
            " is out of range");
    out.push_back(pool_region(c, rows, boxes, static_cast<int64_t>(n), batches[n] * height * width,
                              height, width));
  }
  if (out.empty())
    return {ops::full(
        {Dim(0), x.dim(1), Dim(c.int_attr("output_height", 1)), Dim(c.int_attr("output_width", 1))},
        0.0, x.dtype())};
  return {ops::stack(out, 0)};
}

/// Ranges of the bins of a region along one axis: the region is rounded to whole pixels (at least
/// one), bins may overlap and are clipped to the image. Computed in float32 with rounding of
/// halves, as in other implementations.
std::vector<std::pair<int64_t, int64_t>> bin_ranges(float from, float to, int64_t count,
                                                    int64_t size) {
  const float first = std::round(from), length = std::max(std::round(to) - first + 1, 1.0F);
  const float bin = length / static_cast<float>(count);
  const auto within = [&](float at) {
    return static_cast<int64_t>(std::clamp(first + at, 0.0F, static_cast<float>(size)));
  };
  std::vector<std::pair<int64_t, int64_t>> out;
  for (int64_t i = 0; i < count; ++i)
    out.emplace_back(within(std::floor(static_cast<float>(i) * bin)),
                     within(std::ceil(static_cast<float>(i + 1) * bin)));
  return out;
}

/// Maximum of each bin of each region [batch, left, top, right, bottom]; 0 for empty bins.
Values max_roi_pool(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  const Array regions = c.constant_array(1);
  const std::vector<int64_t> pooled = c.ints_attr("pooled_shape");
  const auto scale = static_cast<float>(c.float_attr("spatial_scale", 1));
  c.check(x.ndim() == 4, "the input must be [batch, channels, height, width]");
  c.check(regions.ndim() == 2 && regions.shape[1] == 5, "rois must be [regions, 5]");
  c.check(pooled.size() == 2 && pooled[0] > 0 && pooled[1] > 0, "pooled_shape must be two sizes");
  const int64_t batch = constant_dim(x, 0), height = constant_dim(x, 2), width = constant_dim(x, 3);
  c.check(pooled[0] < 1 << 10 && pooled[1] < 1 << 10 &&
              regions.shape[0] <= (int64_t{1} << 20) / (pooled[0] * pooled[1]),
          "there are too many bins");
  const Shape result = {Dim(regions.shape[0]), x.dim(1), Dim(pooled[0]), Dim(pooled[1])};
  const Tensor none = ops::full({x.dim(1)}, 0.0, x.dtype());
  Tensors out;
  for (int64_t n = 0; n < regions.shape[0]; ++n) {
    const auto number = [&](int64_t i) { return regions.number(5 * n + i); };
    for (int64_t i = 0; i < 5; ++i)
      c.check(std::abs(number(i)) < 0x1p30, "a region is out of range");
    const auto image = static_cast<int64_t>(number(0));
    c.check(image >= 0 && image < batch, "the batch index ", image, " is out of range");
    const auto scaled = [&](int64_t i) {
      const float at = static_cast<float>(number(i)) * scale;
      c.check(std::abs(at) < 0x1p30F, "a region times the spatial_scale ", scale,
              " is out of range");
      return at;
    };
    const auto columns = bin_ranges(scaled(1), scaled(3), pooled[1], width);
    for (const auto& [top, bottom] : bin_ranges(scaled(2), scaled(4), pooled[0], height))
      for (const auto& [left, right] : columns)
        out.push_back(top >= bottom || left >= right
                          ? none
                          : ops::max(ops::slice(x, {0, 2, 3}, Shape{image, top, left},
                                                Shape{image + 1, bottom, right}),
                                     std::vector<int64_t>{0, 2, 3}));
  }
  if (out.empty()) return {ops::full(result, 0.0, x.dtype())};
  const Tensor bins = ops::reshape(
      ops::stack(out, 0), {Dim(regions.shape[0]), Dim(pooled[0]), Dim(pooled[1]), x.dim(1)});
  return {ops::transpose(bins, {0, 3, 1, 2})};
}

constexpr Operator kOperators[] = {
    {"MaxRoiPool", 1, max_roi_pool},
    {"NonMaxSuppression", 1, non_max_suppression},
    {"RoiAlign", 1, roi_align},
};

}  // namespace

OperatorTable detection_operators() { return kOperators; }

}  // namespace paddle::onnx
