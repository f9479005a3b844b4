// Object detection: NonMaxSuppression and RoiAlign.

#include <limits>

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

/// The operator takes float32 only.
std::string in_float32(Writer& w, const char* operand) {
  return w.cast(w.in(operand), w.type(operand).dtype, DType::kF32);
}

void box_selection(Writer& w) {
  Names inputs = {in_float32(w, "boxes"), in_float32(w, "scores"),
                  w.ints({w.attr("max_boxes").as_int()}),
                  w.constant(Array::from<float>(
                      {static_cast<float>(w.attr("iou_threshold").as_double())}, {1}))};
  if (w.has_attr("score_threshold"))
    inputs.push_back(w.constant(
        Array::from<float>({static_cast<float>(w.attr("score_threshold").as_double())}, {1})));
  w.emit("NonMaxSuppression", inputs,
         {int_attribute("center_point_box", w.attr("centered").as_bool() ? 1 : 0)});
}

/// The scores of each category, [1, categories, boxes]; others do not take part.
std::string scores_by_category(Writer& w, const std::string& scores) {
  std::vector<int64_t> categories = w.attr("categories").as_ints();
  const auto count = static_cast<int64_t>(categories.size());
  const std::string wanted = w.constant(Array::from<int64_t>(categories, {count, 1}));
  const std::string given =
      w.cast(w.in("category_idxs"), w.type("category_idxs").dtype, DType::kI64);
  const std::string excluded = w.scalar(-std::numeric_limits<double>::infinity(), DType::kF32);
  const std::string each = w.add("Where", {w.add("Equal", {wanted, given}), scores, excluded});
  return w.add("Unsqueeze", {each, w.ints({0})});
}

void nms(Writer& w) {
  const std::string count = w.dim(w.type("boxes").shape.at(0));
  // ONNX takes corners in any order; here a box whose right end is left of its left end is empty.
  const std::string given = in_float32(w, "boxes"), axis = w.ints({1});
  const std::string first = w.add("Slice", {given, w.ints({0}), w.ints({2}), axis}),
                    second = w.add("Slice", {given, w.ints({2}), w.ints({4}), axis});
  const std::string ordered =
      w.add("Concat", {first, w.add("Max", {first, second})}, {int_attribute("axis", 1)});
  const std::string boxes = w.add("Unsqueeze", {ordered, w.ints({0})});
  const bool scored = w.operand("scores") != nullptr;
  const bool divided = scored && w.operand("category_idxs") != nullptr;
  std::string scores;
  if (scored) {
    scores = in_float32(w, "scores");
  } else {
    // Without scores the first boxes are the best.
    const std::string places = w.add(
        "Range", {w.scalar(0, DType::kI64), w.add("Squeeze", {count}), w.scalar(1, DType::kI64)});
    scores = w.cast(w.add("Neg", {places}), DType::kI64, DType::kF32);
  }
  const std::string by_class =
      divided ? scores_by_category(w, scores) : w.add("Unsqueeze", {scores, w.ints({0, 1})});
  Names inputs = {boxes, by_class, count,
                  w.constant(Array::from<float>(
                      {static_cast<float>(w.attr("iou_threshold").as_double())}, {1}))};
  if (divided)  // the least finite number: those of other categories are below it
    inputs.push_back(w.constant(Array::from<float>({std::numeric_limits<float>::lowest()}, {1})));
  const std::string rows = w.add("NonMaxSuppression", inputs);
  const std::string kept =
      w.add("Gather", {rows, w.constant(Array::scalar(int64_t{2}))}, {int_attribute("axis", 1)});
  if (!divided) return w.result(0, kept);
  std::string most = w.add("Shape", {kept});
  if (w.has_attr("top_k")) most = w.add("Min", {most, w.ints({w.attr("top_k").as_int()})});
  // Equal scores keep the order of the boxes.
  const std::string all = w.add("Shape", {kept});
  const std::string in_order =
      w.add_several("TopK", {kept, all}, 2, {int_attribute("largest", 0)})[0];
  const Names best = w.add_several("TopK", {w.add("Gather", {scores, in_order}), most}, 2);
  w.emit("Gather", {in_order, best[1]});
}

void roi_align(Writer& w) {
  const std::vector<int64_t> size = w.attr("output_size").as_ints();
  const DType dtype = w.type("x").dtype;
  const std::string boxes = w.cast(w.in("boxes"), w.type("boxes").dtype, dtype);
  const int64_t ratio = w.attr("sampling_ratio").as_int();
  w.emit("RoiAlign",
         {w.in("x"), boxes, w.cast(w.in("images"), w.type("images").dtype, DType::kI64)},
         {int_attribute("output_height", size.at(0)), int_attribute("output_width", size.at(1)),
          float_attribute("spatial_scale", w.attr("spatial_scale").as_double()),
          int_attribute("sampling_ratio", ratio > 0 ? ratio : 0),
          string_attribute("mode", w.attr("mode").as_string()),
          string_attribute("coordinate_transformation_mode",
                           w.attr("aligned").as_bool() ? "half_pixel" : "output_half_pixel")});
}

/// Regions of the operator begin with the number of their image.
void roi_pool(Writer& w) {
  if (w.is_used(1)) w.reject("the places of its maxima are read");
  const std::vector<int64_t> size = w.attr("output_size").as_ints();
  const DType dtype = w.type("x").dtype;
  const std::string images =
      w.add("Unsqueeze", {w.cast(w.in("images"), w.type("images").dtype, dtype), w.ints({1})});
  const std::string regions =
      w.add("Concat", {images, w.cast(w.in("boxes"), w.type("boxes").dtype, dtype)},
            {int_attribute("axis", 1)});
  w.result(0, w.add("MaxRoiPool", {w.in("x"), regions},
                    {ints_attribute("pooled_shape", size),
                     float_attribute("spatial_scale", w.attr("spatial_scale").as_double())}));
}

}  // namespace

std::vector<ExportRuleEntry> detection_export_rules() {
  return {{"box_selection", box_selection},
          {"nms", nms},
          {"roi_align_of", roi_align},
          {"roi_pool_of", roi_pool}};
}

}  // namespace paddle::onnx
