// Functions of the table: detection and graphs, where operands or results have another form.

#include <algorithm>
#include <cctype>

#include "ops/generated/creation.h"
#include "ops/generated/detection.h"
#include "ops/generated/graph.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {
namespace {

Values matrix_nms(ProgramCall& c) {
  const Tensors made = ops::matrix_nms(
      c.tensor("bboxes"), c.tensor("scores"), c.real("score_threshold"), c.real("post_threshold"),
      c.integer("nms_top_k"), c.integer("keep_top_k"), c.flag("use_gaussian"),
      c.real("gaussian_sigma"), c.integer("background_label"), c.flag("normalized"), true, true);
  return {made.at(0), made.at(2), made.at(1)};
}

Values box_coder(ProgramCall& c) {
  const Tensor &prior = c.tensor("prior_box"), &target = c.tensor("target_box");
  const std::string type = c.text("code_type");
  const bool normalized = c.flag("box_normalized");
  const int64_t axis = c.integer("axis");
  const std::vector<double> variance = c.reals("variance");
  if (!c.has("prior_box_var") && !variance.empty())
    return {ops::box_coder_by(prior, variance, target, type, normalized, axis)};
  return {
      ops::box_coder(prior, c.optional_tensor("prior_box_var"), target, type, normalized, axis)};
}

Values prior_box(ProgramCall& c) {
  const std::vector<double> largest = c.reals("max_sizes");
  const Tensors made = ops::prior_box(c.tensor("input"), c.tensor("image"), c.reals("min_sizes"),
                                      largest.empty() ? std::nullopt : std::optional(largest),
                                      c.reals("aspect_ratios"), c.reals("variance"), c.flag("flip"),
                                      c.flag("clip"), {c.real("step_w"), c.real("step_h")},
                                      c.real("offset"), c.flag("min_max_aspect_ratios_order"));
  return {made.at(0), made.at(1)};
}

/// Anchors [rows, columns, anchors, 4] around the cells of a map, and their variances.
Values anchor_generator(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  c.check(x.ndim() == 4, "expected images, not ", x.type());
  const auto sizes = c.reals("anchor_sizes"), ratios = c.reals("aspect_ratios"),
             variances = c.reals("variances"), stride = c.reals("stride");
  c.check(stride.size() == 2 && variances.size() == 4 && !sizes.empty() && !ratios.empty(),
          "expected 2 strides, 4 variances, sizes and aspect ratios");
  const double offset = c.real("offset");
  std::vector<float> corners;
  for (const double ratio : ratios)
    for (const double size : sizes) {
      const double area = stride[0] * stride[1] / ratio;
      const double width = std::round(std::sqrt(area)), height = std::round(width * ratio);
      const double half_x = (size / stride[0] * width - 1) / 2,
                   half_y = (size / stride[1] * height - 1) / 2;
      for (const double each : {-half_x, -half_y, half_x, half_y})
        corners.push_back(static_cast<float>(each));
    }
  const auto count = static_cast<int64_t>(corners.size() / 4);
  const DType dtype = x.dtype();
  const auto centers = [&](const Dim& cells, double step) {
    const Tensor at = ops::cast(onnx::iota(cells), dtype);
    return at * step + offset * (step - 1);
  };
  const Dim rows = x.dim(2), columns = x.dim(3);
  const Shape all = {rows, columns};
  const Tensor cx = ops::expand(centers(columns, stride[0]), all),
               cy = ops::expand(ops::unsqueeze(centers(rows, stride[1]), {1}), all);
  const Tensor center = ops::unsqueeze(ops::stack({cx, cy, cx, cy}, 2), {2});
  const Tensor box = ops::cast(Tensor(Array::from<float>(corners, {count, 4})), dtype);
  const Tensor variance = ops::cast(Tensor(Array::from<double>(variances, {4})), dtype);
  return {center + box, ops::expand(variance, {rows, columns, Dim(count), Dim(4)})};
}

Values distribute_fpn_proposals(ProgramCall& c) {
  const int64_t low = c.integer("min_level"), high = c.integer("max_level");
  c.check(low <= high && high - low < 64, "its levels are ", low, " to ", high);
  const Tensors made = ops::distribute_fpn_proposals(
      c.tensor("rois"), low, high, c.integer("refer_level"), c.integer("refer_scale"),
      c.flag("pixel_offset"), c.optional_tensor("rois_num"));
  const auto levels = static_cast<size_t>(high - low + 1);
  // [levels] boxes, the place of each box, and with rois_num [levels] numbers.
  Values out(made.begin(), made.begin() + static_cast<int64_t>(levels));
  for (size_t i = 0; i < levels; ++i)
    out.push_back(levels + 1 + i < made.size() ? Value(made[levels + 1 + i]) : Value());
  out.emplace_back(made.at(levels));
  return out;
}

Tensor boxes_number(const ProgramCall& c) {
  if (c.has("boxes_num")) return c.tensor("boxes_num");
  c.check(c.tensor("x").dim(0).equals(1).value_or(false),
          "without the number of boxes of each image there must be one image");
  return ops::cast(ops::full({Dim(1)}, AttrValue(c.tensor("boxes").dim(0)), DType::kI64),
                   DType::kI32);
}

AttrValue pooled_size(const ProgramCall& c) {
  return Axes{c.integer("pooled_height"), c.integer("pooled_width")};
}

Values roi_align(ProgramCall& c) {
  return {ops::roi_align(c.tensor("x"), c.tensor("boxes"), boxes_number(c), pooled_size(c),
                         c.real("spatial_scale"), c.integer("sampling_ratio"), c.flag("aligned"))};
}

Values roi_pool(ProgramCall& c) {
  return {ops::roi_pool(c.tensor("x"), c.tensor("boxes"), boxes_number(c), pooled_size(c),
                        c.real("spatial_scale"))};
}

Values psroi_pool(ProgramCall& c) {
  return {ops::psroi_pool(c.tensor("x"), c.tensor("boxes"), boxes_number(c), pooled_size(c),
                          c.real("spatial_scale"))};
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
  return text;
}

Values send_u_recv(ProgramCall& c) {
  std::optional<int64_t> size;
  if (const Axes given = c.ints("out_size"); !given.empty() && given[0] > 0) size = given[0];
  return {ops::send_u_recv(c.tensor("x"), c.tensor("src_index"), c.tensor("dst_index"),
                           in_lower_case(c.text("reduce_op")), size)};
}

Values segment_pool(ProgramCall& c) {
  return {ops::segment_pool(c.tensor("data"), c.tensor("segment_ids"),
                            in_lower_case(c.text("reduce")))};
}

}  // namespace

ProgramFunctions program_detection_functions() {
  return {
      {"matrix_nms", matrix_nms},
      {"box_coder", box_coder},
      {"prior_box", prior_box},
      {"anchor_generator", anchor_generator},
      {"distribute_fpn_proposals", distribute_fpn_proposals},
      {"roi_align", roi_align},
      {"roi_pool", roi_pool},
      {"psroi_pool", psroi_pool},
      {"send_u_recv", send_u_recv},
      {"segment_pool", segment_pool},
  };
}

}  // namespace paddle::paddle_program
