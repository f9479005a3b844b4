// Rules of boxes.yaml: shapes of selections, anchors and the encoding of boxes.

#include <cmath>

#include "ops/core/compose.h"
#include "ops/generated/creation.h"
#include "ops/generated/detection.h"
#include "ops/generated/detection_rules.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::rules {
namespace {

void check_boxes(InferContext& c, size_t operand, int64_t rank) {
  c.check(c.rank(operand) == rank && c.shape(operand).back().equals(4) != false,
          c.op().operands()[operand].name, " must have ", rank, " dimensions, the last of size 4, ",
          "not ", c.type(operand));
}

}  // namespace

void infer_nms(InferContext& c) {
  const auto a = c.attrs_as<NmsAttrs>();
  check_boxes(c, 0, 2);
  for (size_t i = 1; i < 3; ++i)
    if (c.has(i)) {
      c.check(c.rank(i) == 1, c.op().operands()[i].name, " must be 1-D, not ", c.type(i));
      c.require_equal(c.shape(i)[0], c.shape(0)[0],
                      str(c.op().operands()[i].name, " and boxes differ in length"));
    }
  if (c.has(2))
    c.check(c.has(1) && a.categories.has_value(),
            "category_idxs needs scores and the list of categories");
  c.check(!a.top_k || *a.top_k >= 0, "top_k must not be negative");
  c.result(DType::kI64, {c.run_time_dim()});
}

void infer_box_selection(InferContext& c) {
  check_boxes(c, 0, 3);
  c.check(c.rank(1) == 3 && c.dtype(1) == c.dtype(0), "scores must be ", text(c.dtype(0)),
          " [batch, classes, boxes], not ", c.type(1));
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "boxes and scores differ in their batch");
  c.require_equal(c.shape(0)[1], c.shape(1)[2], "boxes and scores differ in the number of boxes");
  c.result(DType::kI64, {c.run_time_dim(), Dim(3)});
}

void infer_multiclass_nms(InferContext& c) {
  check_boxes(c, 0, 3);
  c.check(c.rank(1) == 3, "scores must be [batch, classes, boxes], not ", c.type(1));
  c.require_equal(c.shape(0)[0], c.shape(1)[0], "bboxes and scores differ in their batch");
  c.require_equal(c.shape(0)[1], c.shape(1)[2], "bboxes and scores differ in the number of boxes");
  const Dim count = c.run_time_dim();
  c.result(c.dtype(0), {count, Dim(6)});
  if (c.op().name() == "matrix_nms") {
    const auto a = c.attrs_as<MatrixNmsAttrs>();
    if (a.return_rois_num) c.result(DType::kI32, {c.shape(0)[0]});
    if (a.return_index) c.result(DType::kI32, {count, Dim(1)});
    return;
  }
  c.check(!c.has(2), "boxes of all images in one list (rois_num) are not supported; use a batch");
  c.result(DType::kI32, {count, Dim(1)});
  c.result(DType::kI32, {c.shape(0)[0]});
}

void infer_generate_proposals(InferContext& c) {
  const auto a = c.attrs_as<GenerateProposalsAttrs>();
  for (size_t i = 0; i < 2; ++i)
    c.check(c.rank(i) == 4, c.op().operands()[i].name, " must have 4 dimensions, not ", c.type(i));
  c.check(c.rank(2) == 2 && c.shape(2)[1].equals(2) != false, "img_size must be [batch, 2], not ",
          c.type(2));
  const Shape& s = c.shape(0);
  c.require_equal(c.shape(1)[0], s[0], "scores and bbox_deltas differ in their batch");
  c.require_equal(c.shape(2)[0], s[0], "scores and img_size differ in their batch");
  c.require_equal(c.shape(1)[1], s[1] * 4, "bbox_deltas must have 4 channels per anchor");
  for (size_t i = 2; i < 4; ++i)
    c.require_equal(c.shape(1)[i], s[i], "scores and bbox_deltas differ in size");
  for (size_t i = 3; i < 5; ++i)
    c.require_equal(element_count(std::span<const Dim>(c.shape(i))), s[1] * s[2] * s[3] * 4,
                    str(c.op().operands()[i].name, " must have 4 numbers per score"));
  const Dim count = c.run_time_dim();
  c.result(c.dtype(0), {count, Dim(4)});
  c.result(c.dtype(0), {count, Dim(1)});
  if (a.return_rois_num) c.result(DType::kI32, {s[0]});
}

void infer_distribute_fpn_proposals(InferContext& c) {
  const auto a = c.attrs_as<DistributeFpnProposalsAttrs>();
  check_boxes(c, 0, 2);
  check_32_bits(c.op().name(), "min_level", a.min_level);
  check_32_bits(c.op().name(), "max_level", a.max_level);
  c.check(a.min_level <= a.max_level && a.max_level - a.min_level < 64,
          "the levels from min_level ", a.min_level, " to max_level ", a.max_level,
          " must be 1 to 64");
  c.check(a.refer_scale.as_double() > 0, "refer_scale must be positive");
  if (c.has(1)) c.check(c.rank(1) == 1, "rois_num must be 1-D, not ", c.type(1));
  for (int64_t i = a.min_level; i <= a.max_level; ++i)
    c.result(c.dtype(0), {c.run_time_dim(), Dim(4)});
  c.result(DType::kI32, {c.shape(0)[0], Dim(1)});
  if (c.has(1))
    for (int64_t i = a.min_level; i <= a.max_level; ++i) c.result(DType::kI32, {c.shape(1)[0]});
}

Tensors decompose_prior_box(CallContext& c) {
  const auto a = c.attrs_as<PriorBoxAttrs>();
  constexpr const char* kName = "prior_box";
  const Tensor &input = c.operand(0), &image = c.operand(1);
  if (input.ndim() != 4 || image.ndim() != 4)
    reject(kName, "input and image must have 4 dimensions, not ", input.type(), " and ",
           image.type());
  for (const Tensor* t : {&input, &image})
    for (int64_t i = 2; i < 4; ++i)
      if (!t->dim(i).is_constant() || t->dim(i).value() < 1)
        reject(kName, "the sizes of input ", input.type(), " and image ", image.type(),
               " must be constant and positive");
  const auto max_sizes = a.max_sizes.value_or(std::vector<double>());
  if (a.min_sizes.empty()) reject(kName, "min_sizes must not be empty");
  if (!max_sizes.empty() && max_sizes.size() != a.min_sizes.size())
    reject(kName, "max_sizes must be as many as min_sizes");
  for (size_t i = 0; i < a.min_sizes.size(); ++i)
    if (!(a.min_sizes[i] > 0) || (!max_sizes.empty() && !(max_sizes[i] > a.min_sizes[i])))
      reject(kName, "min_sizes must be positive and below max_sizes");
  if (a.variance.size() != 4) reject(kName, "variance must have 4 numbers");
  auto steps = a.steps;
  if (steps.size() == 1) steps.push_back(steps[0]);
  if (steps.size() != 2) reject(kName, "steps must be two numbers");
  std::vector<double> ratios = {1.0};
  for (const double r : a.aspect_ratios) {
    if (!(r > 0)) reject(kName, "aspect_ratios must be positive, not ", r);
    bool known = false;
    for (const double other : ratios) known = known || std::abs(r - other) < 1e-6;
    if (known) continue;
    ratios.push_back(r);
    if (a.flip) ratios.push_back(1 / r);
  }
  // Half widths and heights.
  std::vector<std::pair<double, double>> sizes;
  for (size_t i = 0; i < a.min_sizes.size(); ++i) {
    const double low = a.min_sizes[i];
    const auto add_largest = [&] {
      if (max_sizes.empty()) return;
      const double side = std::sqrt(low * max_sizes[i]) / 2;
      sizes.emplace_back(side, side);
    };
    if (a.min_max_aspect_ratios_order) {
      sizes.emplace_back(low / 2, low / 2);
      add_largest();
    }
    for (const double r : ratios) {
      if (a.min_max_aspect_ratios_order && std::abs(r - 1) < 1e-6) continue;
      sizes.emplace_back(low * std::sqrt(r) / 2, low / std::sqrt(r) / 2);
    }
    if (!a.min_max_aspect_ratios_order) add_largest();
  }
  const int64_t rows = input.dim(2).value(), columns = input.dim(3).value();
  const auto image_h = static_cast<double>(image.dim(2).value()),
             image_w = static_cast<double>(image.dim(3).value());
  const double step_w = steps[0] == 0 || steps[1] == 0 ? image_w / static_cast<double>(columns)
                                                       : steps[0],
               step_h =
                   steps[0] == 0 || steps[1] == 0 ? image_h / static_cast<double>(rows) : steps[1];
  const auto count = static_cast<int64_t>(sizes.size());
  if (rows > (int64_t{1} << 28) / columns / count) reject(kName, "there are more than 2^28 boxes");
  const DType dtype = is_float(input.dtype()) ? input.dtype() : DType::kF32;
  std::vector<double> half_w, half_h;
  for (const auto& [w, h] : sizes) {
    half_w.push_back(w);
    half_h.push_back(h);
  }
  const auto line = [&](const std::vector<double>& v) {
    return ops::cast(Tensor(Array::from(v, {1, 1, count})), dtype);
  };
  const Tensor x = ops::reshape((range_of(Dim(columns), dtype) + a.offset) * step_w,
                                Shape{1, columns, 1}),
               y = ops::reshape((range_of(Dim(rows), dtype) + a.offset) * step_h,
                                Shape{rows, 1, 1});
  const Shape shape = {Dim(rows), Dim(columns), Dim(count)};
  const auto edge = [&](const Tensor& center, const Tensor& half, double sign, double size) {
    return ops::expand((center + half * sign) / size, shape);
  };
  const Tensor w = line(half_w), h = line(half_h);
  Tensor boxes = ops::stack({edge(x, w, -1, image_w), edge(y, h, -1, image_h),
                             edge(x, w, 1, image_w), edge(y, h, 1, image_h)},
                            3);
  if (a.clip) boxes = ops::minimum(ops::maximum(boxes, number(0.0)), number(1.0));
  const Tensor variance = ops::cast(Tensor(Array::from(a.variance, {1, 1, 1, 4})), dtype);
  return {boxes, ops::expand(variance, {Dim(rows), Dim(columns), Dim(count), Dim(4)})};
}
namespace {

Tensor column(const Tensor& boxes, int64_t i) {
  return ops::squeeze(slice_axis(boxes, -1, i, i + 1), Axes{boxes.ndim() - 1});
}

/// `variance` is undefined, [4] or [priors, 4].
Tensor coded(std::string_view op, const Tensor& prior, const Tensor& variance, const Tensor& target,
             const std::string& code, bool normalized, int64_t axis) {
  if (prior.ndim() != 2 || prior.dim(1).equals(4) == false)
    reject(op, "prior_box must be [boxes, 4], not ", prior.type());
  const bool encode = code == "encode_center_size";
  const int64_t rank = encode ? 2 : 3;
  if (target.ndim() != rank || target.dim(-1).equals(4) == false)
    reject(op, "target_box must have ", rank, " dimensions, the last of size 4, not ",
           target.type());
  if (axis != 0 && axis != 1) reject(op, "axis must be 0 or 1, not ", axis);
  const int64_t matched = encode || axis == 1 ? 0 : 1;
  if (!encode && target.dim(matched).equals(prior.dim(0)) == false)
    reject(op, "target_box ", target.type(), " does not match prior_box ", prior.type(),
           " along axis ", matched);
  const double extra = normalized ? 0 : 1;
  // Priors along the second axis, or along the first one of boxes to decode with axis 1.
  const Axes added = {!encode && axis == 1 ? 1 : 0};
  const auto of_prior = [&](const Tensor& t) { return ops::unsqueeze(t, added); };
  const Tensor width = of_prior(column(prior, 2) - column(prior, 0) + extra),
               height = of_prior(column(prior, 3) - column(prior, 1) + extra),
               x = of_prior(column(prior, 0)) + width * 0.5,
               y = of_prior(column(prior, 1)) + height * 0.5;
  Tensor scale = variance;
  if (variance.defined() && variance.ndim() == 2) scale = of_prior(variance);
  if (encode) {
    const auto of_target = [&](const Tensor& t) { return ops::unsqueeze(t, {1}); };
    const Tensor tw = of_target(column(target, 2) - column(target, 0) + extra),
                 th = of_target(column(target, 3) - column(target, 1) + extra),
                 tx = of_target(column(target, 0) + column(target, 2)) * 0.5,
                 ty = of_target(column(target, 1) + column(target, 3)) * 0.5;
    const Tensor out = ops::stack({(tx - x) / width, (ty - y) / height,
                                   ops::log(ops::abs(tw / width)), ops::log(ops::abs(th / height))},
                                  2);
    return scale.defined() ? out / scale : out;
  }
  const Tensor moved = scale.defined() ? target * scale : target;
  const Tensor cx = column(moved, 0) * width + x, cy = column(moved, 1) * height + y,
               w = ops::exp(column(moved, 2)) * width, h = ops::exp(column(moved, 3)) * height;
  return ops::stack({cx - w * 0.5, cy - h * 0.5, cx + w * 0.5 - extra, cy + h * 0.5 - extra}, 2);
}

}  // namespace

Tensors decompose_box_coder(CallContext& c) {
  const auto a = c.attrs_as<BoxCoderAttrs>();
  const Tensor variance = c.has(1) ? c.operand(1) : Tensor();
  if (variance.defined() &&
      !(variance.dim(-1).equals(4) != false && (variance.ndim() == 1 || variance.ndim() == 2)))
    reject("box_coder", "prior_box_var must be [4] or [boxes, 4], not ", variance.type());
  return {coded("box_coder", c.operand(0), variance, c.operand(2), a.code_type, a.box_normalized,
                a.axis)};
}

Tensors decompose_box_coder_by(CallContext& c) {
  const auto a = c.attrs_as<BoxCoderByAttrs>();
  if (a.prior_box_var.size() != 4) reject("box_coder", "prior_box_var must have 4 numbers");
  const Tensor variance =
      ops::cast(Tensor(Array::from(a.prior_box_var, {4})), c.operand(0).dtype());
  return {coded("box_coder", c.operand(0), variance, c.operand(1), a.code_type, a.box_normalized,
                a.axis)};
}

}  // namespace paddle::rules
