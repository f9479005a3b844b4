// Rules of boxes.yaml: YOLO heads.

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/detection.h"
#include "ops/generated/detection_rules.h"
#include "ops/generated/indexing.h"
#include "ops/generated/loss.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

void check_anchors(std::string_view op, const Axes& anchors, int64_t class_num, int64_t ratio) {
  if (anchors.empty() || anchors.size() % 2 != 0)
    reject(op, "anchors must be pairs of width and height");
  for (const int64_t a : anchors) {
    if (a <= 0) reject(op, "anchors must be positive, not ", a);
    check_32_bits(op, "anchors", a);
  }
  if (class_num < 1) reject(op, "class_num must be positive, not ", class_num);
  if (ratio < 1) reject(op, "downsample_ratio must be positive, not ", ratio);
  check_32_bits(op, "class_num", class_num);
  check_32_bits(op, "downsample_ratio", ratio);
}

/// Every second anchor size from `first` on, as [1, anchors, 1, 1].
Tensor anchor_sizes(const Axes& anchors, size_t first, DType dtype) {
  std::vector<double> out;
  for (size_t i = first; i < anchors.size(); i += 2) out.push_back(static_cast<double>(anchors[i]));
  return ops::cast(Tensor(Array::from(out, {1, static_cast<int64_t>(out.size()), 1, 1})), dtype);
}

Tensor entry(const Tensor& head, int64_t i) {
  return ops::squeeze(slice_axis(head, 2, i, i + 1), Axes{2});
}

}  // namespace

Tensors decompose_yolo_box(CallContext& c) {
  const auto a = c.attrs_as<YoloBoxAttrs>();
  constexpr const char* kName = "yolo_box";
  const Tensor &x = c.operand(0), &size = c.operand(1);
  check_anchors(kName, a.anchors, a.class_num, a.downsample_ratio);
  const auto anchors = static_cast<int64_t>(a.anchors.size() / 2);
  const int64_t each = 5 + a.class_num, channels = anchors * (each + (a.iou_aware ? 1 : 0));
  if (!is_float(x.dtype()) || x.ndim() != 4 || x.dim(1).equals(channels) == false)
    reject(kName, "x must be floating and [batch, ", channels, ", height, width], not ", x.type());
  if (!is_integer(size.dtype()) || size.ndim() != 2 || size.dim(1).equals(2) == false ||
      size.dim(0).equals(x.dim(0)) == false)
    reject(kName, "img_size must be integers [batch, 2], not ", size.type());
  if (a.iou_aware && !(a.iou_aware_factor >= 0 && a.iou_aware_factor <= 1))
    reject(kName, "iou_aware_factor must be from 0 to 1, not ", a.iou_aware_factor);
  const Dim batch = x.dim(0), rows = x.dim(2), columns = x.dim(3);
  const DType dtype = x.dtype();
  Tensor head = x, overlap;
  if (a.iou_aware) {
    overlap = ops::sigmoid(slice_axis(x, 1, 0, anchors));
    head = slice_axis(x, 1, anchors, channels);
  }
  head = ops::reshape(head, {batch, Dim(anchors), Dim(each), rows, columns});
  const auto image = [&](int64_t i) {
    return ops::reshape(ops::cast(slice_axis(size, 1, i, i + 1), dtype), {batch, 1, 1, 1});
  };
  const Tensor height = image(0), width = image(1);
  const double bias = -0.5 * (a.scale_x_y - 1);
  const auto center = [&](int64_t i, const Dim& count, const Tensor& extent) {
    const Tensor place = ops::reshape(range_of(count, dtype),
                                      i == 0 ? Shape{1, 1, 1, count} : Shape{1, 1, count, 1});
    return (place + ops::sigmoid(entry(head, i)) * a.scale_x_y + bias) * extent /
           dim_value(count, dtype);
  };
  const auto side = [&](int64_t i, const Dim& count, const Tensor& extent) {
    return ops::exp(entry(head, i)) * anchor_sizes(a.anchors, static_cast<size_t>(i - 2), dtype) *
           extent / (dim_value(count, dtype) * static_cast<double>(a.downsample_ratio));
  };
  Tensor confidence = ops::sigmoid(entry(head, 4));
  if (a.iou_aware)
    confidence = ops::pow(confidence, number(1 - a.iou_aware_factor)) *
                 ops::pow(overlap, number(a.iou_aware_factor));
  const Tensor kept = mask_of(ops::greater_equal(confidence, number(a.conf_thresh)), confidence);
  const Tensor cx = center(0, columns, width), cy = center(1, rows, height),
               w = side(2, columns, width), h = side(3, rows, height);
  Tensor edges[4] = {cx - w * 0.5, cy - h * 0.5, cx + w * 0.5, cy + h * 0.5};
  if (a.clip_bbox) {
    for (int i = 0; i < 2; ++i) edges[i] = ops::maximum(edges[i], number(0.0));
    edges[2] = ops::minimum(edges[2], width - 1.0);
    edges[3] = ops::minimum(edges[3], height - 1.0);
  }
  Tensors columns_of;
  for (const Tensor& e : edges)
    columns_of.push_back(ops::where(ops::greater_than(kept, number(0.0)), e, number(0.0)));
  const Dim boxes = rows * columns * anchors;
  const Tensor scores =
      ops::sigmoid(slice_axis(head, 2, 5, each)) * ops::unsqueeze(confidence * kept, {2});
  return {ops::reshape(ops::stack(columns_of, 4), {batch, boxes, Dim(4)}),
          ops::reshape(ops::transpose(scores, {0, 1, 3, 4, 2}), {batch, boxes, Dim(a.class_num)})};
}

void infer_yolo_targets(InferContext& c) {
  const auto a = c.attrs_as<YoloTargetsAttrs>();
  check_anchors("yolo_loss", a.anchors, a.class_num, a.downsample_ratio);
  const auto masks = static_cast<int64_t>(a.anchor_mask.size());
  c.check(masks > 0, "anchor_mask must not be empty");
  for (const int64_t m : a.anchor_mask)
    c.check(m >= 0 && m < static_cast<int64_t>(a.anchors.size() / 2), "anchor_mask ", m,
            " is out of range");
  c.check(c.rank(0) == 4 && c.shape(0)[1].equals(masks * (5 + a.class_num)) != false,
          "x must be [batch, ", masks * (5 + a.class_num), ", height, width], not ", c.type(0));
  c.check(c.rank(1) == 3 && c.shape(1)[2].equals(4) != false,
          "gt_box must be [batch, boxes, 4], not ", c.type(1));
  c.require_equal(c.shape(1)[0], c.shape(0)[0], "x and gt_box differ in their batch");
  c.check(c.rank(2) == 2, "gt_score must be [batch, boxes], not ", c.type(2));
  for (size_t i = 0; i < 2; ++i)
    c.require_equal(c.shape(2)[i], c.shape(1)[i], "gt_box and gt_score differ in shape");
  c.result(c.dtype(0), {c.shape(0)[0], Dim(masks), c.shape(0)[2], c.shape(0)[3]});
  c.result(DType::kI64, {c.shape(1)[0], c.shape(1)[1]});
  c.result(DType::kI64, {c.shape(1)[0], c.shape(1)[1]});
}

Tensors decompose_yolo_loss(CallContext& c) {
  const auto a = c.attrs_as<YoloLossAttrs>();
  constexpr const char* kName = "yolo_loss";
  const Tensor &x = c.operand(0), &boxes = c.operand(1), &label = c.operand(2);
  if (boxes.ndim() != 3) reject(kName, "gt_box must be [batch, boxes, 4], not ", boxes.type());
  if (!is_integer(label.dtype()) || label.ndim() != 2 ||
      label.dim(0).equals(boxes.dim(0)) == false || label.dim(1).equals(boxes.dim(1)) == false)
    reject(kName, "gt_label must be integers [batch, boxes], not ", label.type());
  const DType dtype = x.dtype();
  const Dim batch = boxes.dim(0), count = boxes.dim(1);
  const Tensor score = ops::detach(c.has(3) ? c.operand(3) : full_of({batch, count}, 1, dtype));
  const Tensors targets = ops::yolo_targets(x, boxes, score, a.anchors, a.anchor_mask, a.class_num,
                                            a.ignore_thresh, a.downsample_ratio, a.scale_x_y);
  const Tensor &objects = targets[0], &cells = targets[1], &best = targets[2];
  const auto masks = static_cast<int64_t>(a.anchor_mask.size());
  const int64_t each = 5 + a.class_num;
  const Dim rows = x.dim(2), columns = x.dim(3), places = rows * columns * masks;
  const Tensor head = ops::reshape(x, {batch, Dim(masks), Dim(each), rows, columns});
  const auto cross_entropy = [](const Tensor& logit, const Tensor& wanted) {
    return ops::binary_cross_entropy_with_logits(logit, wanted, Tensor(), "none");
  };
  // Whether there is an object: cells without are compared with 0, ignored ones are left out.
  const Tensor confidence = entry(head, 4);
  const Tensor has = mask_of(ops::greater_than(objects, number(1e-5)), objects),
               none = mask_of(ops::greater_than(objects, number(-0.5)), objects) * (1.0 - has);
  Tensor loss = ops::sum(cross_entropy(confidence, has) * (has * objects + none), Axes{1, 2, 3});
  // The cell of each box: place, size and class.
  const Tensor found = mask_of(ops::greater_equal(cells, integer(0)), objects),
               at = ops::maximum(cells, integer(0));
  const Tensor flat_head =
      ops::reshape(ops::transpose(head, {0, 1, 3, 4, 2}), {batch, places, Dim(each)});
  const Tensor index = ops::expand(ops::unsqueeze(at, {2}), {batch, count, Dim(each)});
  const Tensor own = ops::gather_along(flat_head, index, 1);
  const auto of = [](const Tensor& t, int64_t i) {
    return ops::squeeze(slice_axis(t, 2, i, i + 1), Axes{2});
  };
  const Tensor height = dim_value(rows, dtype), width = dim_value(columns, dtype);
  const Tensor gx = of(boxes, 0) * height, gy = of(boxes, 1) * height;
  const Tensor column = ops::floor(of(boxes, 0) * width), row = ops::floor(of(boxes, 1) * height);
  const Tensor input = height * static_cast<double>(a.downsample_ratio);
  const auto anchor_of = [&](size_t first) {
    std::vector<double> sizes;
    for (size_t i = first; i < a.anchors.size(); i += 2)
      sizes.push_back(static_cast<double>(a.anchors[i]));
    const Tensor table =
        ops::cast(Tensor(Array::from(sizes, {static_cast<int64_t>(sizes.size())})), dtype);
    return ops::reshape(ops::index_select(table, flat(best), 0), {batch, count});
  };
  const auto log_ratio = [&](const Tensor& size, size_t first) {
    const Tensor ratio = size * input / anchor_of(first);
    return ops::log(ops::where(ops::greater_than(found, number(0.0)), ratio, number(1.0)));
  };
  const Tensor weight = found * score, scale = (2.0 - of(boxes, 2) * of(boxes, 3)) * weight;
  const auto place = [&](int64_t i, const Tensor& wanted) {
    return cross_entropy(of(own, i),
                         ops::where(ops::greater_than(found, number(0.0)), wanted, number(0.0)));
  };
  const Tensor location = (place(0, gx - column) + place(1, gy - row) +
                           ops::abs(of(own, 2) - log_ratio(of(boxes, 2), 0)) +
                           ops::abs(of(own, 3) - log_ratio(of(boxes, 3), 1))) *
                          scale;
  loss = loss + ops::sum(location, Axes{1});
  const double smooth =
      a.use_label_smooth ? std::min(1.0 / static_cast<double>(a.class_num), 1.0 / 40) : 0;
  const Tensor classes =
      ops::cast(ops::one_hot(ops::cast(label, DType::kI64), a.class_num), dtype) *
          (1 - 2 * smooth) +
      smooth;
  loss = loss + ops::sum(cross_entropy(slice_axis(own, 2, 5, each), ops::detach(classes)) *
                             ops::unsqueeze(weight, {2}),
                         Axes{1, 2});
  return {loss};
}

}  // namespace paddle::rules
