// Rules of boxes.yaml.

#include <numbers>

#include "ops/core/compose.h"
#include "ops/generated/loss.h"
#include "ops/generated/loss_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

/// Left, top, right and bottom of boxes [..., 4].
struct Sides {
  Tensor left, top, right, bottom;
  Tensor width() const { return right - left; }
  Tensor height() const { return bottom - top; }
  Tensor area() const { return width() * height(); }
};

Sides sides_of(std::string_view op, std::string_view name, const Tensor& boxes) {
  if (boxes.ndim() < 1 || boxes.dim(-1).equals(Dim(4)) == false)
    reject(op, name, " must be boxes [..., 4], not ", boxes.type());
  const auto side = [&](int64_t i) {
    return ops::squeeze(slice_axis(boxes, boxes.ndim() - 1, i, i + 1), Axes{-1});
  };
  return {side(0), side(1), side(2), side(3)};
}

/// Two boxes, what both cover, and the smallest box around them.
struct Pair {
  Pair(std::string_view op, const CallContext& c, double epsilon)
      : a(sides_of(op, "input", c.operand(0))), b(sides_of(op, "label", c.operand(1))) {
    require_same_shape(op, "input", c.operand(0), "label", c.operand(1));
    const Sides inner = {ops::maximum(a.left, b.left), ops::maximum(a.top, b.top),
                         ops::minimum(a.right, b.right), ops::minimum(a.bottom, b.bottom)};
    outer = {ops::minimum(a.left, b.left), ops::minimum(a.top, b.top),
             ops::maximum(a.right, b.right), ops::maximum(a.bottom, b.bottom)};
    const Tensor overlap = ops::logical_and(ops::greater_than(inner.right, inner.left),
                                            ops::greater_than(inner.bottom, inner.top));
    const Tensor shared = ops::where(overlap, inner.area(), zeros_like(a.left));
    covered = a.area() + b.area() - shared;
    iou = shared / (covered + epsilon);
  }
  Sides a, b, outer;
  Tensor covered, iou;
};

Tensor distance_loss(const Pair& p, double epsilon) {
  const Tensor corners = ops::square(p.outer.width()) + ops::square(p.outer.height()) + epsilon;
  const Tensor x = (p.a.left + p.a.right - p.b.left - p.b.right) * 0.5,
               y = (p.a.top + p.a.bottom - p.b.top - p.b.bottom) * 0.5;
  return 1.0 - p.iou + (ops::square(x) + ops::square(y)) / corners;
}

}  // namespace

Tensors decompose_iou_loss(CallContext& c) {
  const auto a = c.attrs_as<IouLossAttrs>();
  return {reduce_loss(1.0 - Pair("iou_loss", c, a.epsilon).iou, a.reduction)};
}

Tensors decompose_giou_loss(CallContext& c) {
  const auto a = c.attrs_as<GiouLossAttrs>();
  const Pair p("giou_loss", c, a.epsilon);
  const Tensor whole = p.outer.area();
  return {reduce_loss(1.0 - p.iou + (whole - p.covered) / (whole + a.epsilon), a.reduction)};
}

Tensors decompose_diou_loss(CallContext& c) {
  const auto a = c.attrs_as<DiouLossAttrs>();
  return {reduce_loss(distance_loss(Pair("diou_loss", c, a.epsilon), a.epsilon), a.reduction)};
}

Tensors decompose_ciou_loss(CallContext& c) {
  const auto a = c.attrs_as<CiouLossAttrs>();
  const Pair p("ciou_loss", c, a.epsilon);
  const auto angle = [](const Sides& box) { return ops::atan(box.width() / box.height()); };
  const Tensor difference =
      ops::square(angle(p.b) - angle(p.a)) * (4 / (std::numbers::pi * std::numbers::pi));
  const Tensor weight = ops::detach(difference / (1.0 - p.iou + difference + a.epsilon));
  return {reduce_loss(distance_loss(p, a.epsilon) + weight * difference, a.reduction)};
}

}  // namespace paddle::rules
