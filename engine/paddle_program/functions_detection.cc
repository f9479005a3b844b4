// Functions of the table: detection and graphs, where operands or results have another form.

#include <algorithm>
#include <cctype>
#include <cmath>

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

/// Boxes [rows, columns, boxes, 4] of given sizes around points that divide each cell.
Values density_prior_box(ProgramCall& c) {
  const Tensor &x = c.tensor("input"), &image = c.tensor("image");
  c.check(x.ndim() == 4 && image.ndim() == 4, "expected maps and images, not ", x.type());
  const int64_t rows = onnx::constant_dim(x, 2), columns = onnx::constant_dim(x, 3);
  const auto height = static_cast<double>(onnx::constant_dim(image, 2)),
             width = static_cast<double>(onnx::constant_dim(image, 3));
  const std::vector<double> sizes = c.reals("fixed_sizes"), ratios = c.reals("fixed_ratios"),
                            variances = c.reals("variances");
  const Axes densities = c.ints("densities");
  c.check(sizes.size() == densities.size() && variances.size() == 4 && rows > 0 && columns > 0,
          "expected a density for each size, and 4 variances");
  double step_x = c.real("step_w"), step_y = c.real("step_h");
  if (step_x == 0 || step_y == 0) {
    step_x = width / static_cast<double>(columns);
    step_y = height / static_cast<double>(rows);
  }
  const auto step = static_cast<int64_t>((step_x + step_y) / 2);
  std::vector<float> boxes;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const double at_x = (static_cast<double>(column) + c.real("offset")) * step_x,
                   at_y = (static_cast<double>(row) + c.real("offset")) * step_y;
      for (size_t k = 0; k < sizes.size(); ++k) {
        const int64_t density = densities[k];
        c.check(density > 0 && density <= 64, "a density is ", density);
        const int64_t shift = step / density;
        for (const double ratio : ratios) {
          const double half_x = sizes[k] * std::sqrt(ratio) / 2,
                       half_y = sizes[k] / std::sqrt(ratio) / 2;
          const double first_x =
                           at_x - static_cast<double>(step) / 2 + static_cast<double>(shift) / 2,
                       first_y =
                           at_y - static_cast<double>(step) / 2 + static_cast<double>(shift) / 2;
          for (int64_t i = 0; i < density * density; ++i) {
            const double y = first_y + static_cast<double>(i / density * shift),
                         z = first_x + static_cast<double>(i % density * shift);
            for (const double each :
                 {std::max((z - half_x) / width, 0.0), std::max((y - half_y) / height, 0.0),
                  std::min((z + half_x) / width, 1.0), std::min((y + half_y) / height, 1.0)})
              boxes.push_back(static_cast<float>(each));
          }
        }
      }
    }
  const auto count = static_cast<int64_t>(boxes.size()) / (4 * rows * columns);
  const Dims shape =
      c.flag("flatten_to_2d") ? Dims{rows * columns * count, 4} : Dims{rows, columns, count, 4};
  Tensor made(Array::from<float>(boxes, shape));
  if (c.flag("clip"))
    made = ops::minimum(ops::maximum(made, onnx::scalar(0, DType::kF32)),
                        onnx::scalar(1, DType::kF32));
  const Tensor variance = ops::cast(Tensor(Array::from<double>(variances, {4})), DType::kF32);
  return {made, ops::expand(variance, to_shape(shape))};
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

Values send_ue_recv(ProgramCall& c) {
  std::optional<int64_t> size;
  if (const Axes given = c.ints("out_size"); !given.empty() && given[0] > 0) size = given[0];
  return {ops::send_ue_recv(c.tensor("x"), c.tensor("y"), c.tensor("src_index"),
                            c.tensor("dst_index"), in_lower_case(c.text("message_op")),
                            in_lower_case(c.text("reduce_op")), size)};
}

Values send_uv(ProgramCall& c) {
  return {ops::send_uv(c.tensor("x"), c.tensor("y"), c.tensor("src_index"), c.tensor("dst_index"),
                       in_lower_case(c.text("message_op")))};
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
      {"density_prior_box", density_prior_box},
      {"roi_align", roi_align},
      {"roi_pool", roi_pool},
      {"psroi_pool", psroi_pool},
      {"send_u_recv", send_u_recv},
      {"send_ue_recv", send_ue_recv},
      {"send_uv", send_uv},
      {"segment_pool", segment_pool},
  };
}

}  // namespace paddle::paddle_program
