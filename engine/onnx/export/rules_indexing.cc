// Gathering and scattering.

#include <algorithm>
#include <limits>

#include "onnx/export/graph_writer.h"
#include "onnx/export/tables.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

/// Indices as int64, which every runtime takes.
std::string index(Writer& w, const char* operand = "index") {
  const DType dtype = w.type(operand).dtype;
  return dtype == DType::kI32 ? w.in(operand) : w.cast(w.in(operand), dtype, DType::kI64);
}

int64_t axis_of(Writer& w, const char* operand = "x") {
  const int64_t axis = w.attr("axis").as_int();
  return axis < 0 ? axis + static_cast<int64_t>(w.type(operand).shape.size()) : axis;
}

void gather_along(Writer& w) {
  w.emit("GatherElements", {w.in("x"), index(w)}, {int_attribute("axis", axis_of(w))});
}

void index_select(Writer& w) {
  w.emit("Gather", {w.in("x"), index(w)}, {int_attribute("axis", axis_of(w))});
}

void gather_nd(Writer& w) {
  w.emit("GatherND", {w.in("x"), w.cast(w.in("index"), w.type("index").dtype, DType::kI64)});
}

void scatter_along(Writer& w) {
  const std::string& reduce = w.attr("reduce").as_string();
  if (reduce == "mean") w.reject("ScatterElements has no mean");
  ExportAttributes attributes = {int_attribute("axis", axis_of(w))};
  const bool extremum = reduce == "amin" || reduce == "amax";
  if (extremum) w.require_opset(18, "ScatterElements with reduction max or min");
  if (reduce != "assign")
    attributes.push_back(string_attribute("reduction", extremum ? reduce.substr(1) : reduce));
  // Our indices may cover more than the values do, or be broadcast along other axes.
  const std::string places = index(w);
  std::string values = w.in("values");
  if (!same_shape(w.type("values").shape, w.type("index").shape))
    values = w.add("Expand", {values, w.add("Shape", {places})});
  std::string x = w.in("x");
  if (reduce != "assign" && !w.attr("include_self").as_bool()) {
    // Replaces the elements that are there by the neutral element of the reduction.
    const bool low = reduce == "amax";
    const double neutral = reduce == "add" ? 0
                           : reduce == "mul"
                               ? 1
                               : std::numeric_limits<double>::infinity() * (low ? -1 : 1);
    if (extremum && !is_float(w.result_type().dtype)) w.reject("extrema of integers without self");
    const std::string filler =
        w.add("Expand", {w.scalar(neutral, w.result_type().dtype), w.add("Shape", {places})});
    x = w.add("ScatterElements", {x, places, filler}, {int_attribute("axis", axis_of(w))});
  }
  w.emit("ScatterElements", {x, places, values}, std::move(attributes));
}

void index_add(Writer& w) {
  const Shape& value_shape = w.type("value").shape;
  const int64_t axis = axis_of(w);
  const double alpha = w.attr("alpha").as_double();
  std::string value = w.in("value");
  if (alpha != 1) value = w.add("Mul", {value, w.scalar(alpha, w.type("value").dtype)});
  std::vector<int64_t> others;
  for (int64_t i = 0; i < static_cast<int64_t>(value_shape.size()); ++i)
    if (i != axis) others.push_back(i);
  std::string places = w.cast(w.in("index"), w.type("index").dtype, DType::kI64);
  if (!others.empty()) places = w.add("Unsqueeze", {places, w.ints(others)});
  places = w.add("Expand", {places, w.add("Shape", {value})});
  w.emit("ScatterElements", {w.in("x"), places, value},
         {int_attribute("axis", axis), string_attribute("reduction", "add")});
}

void scatter_nd(Writer& w, bool adds) {
  ExportAttributes attributes;
  if (adds) attributes.push_back(string_attribute("reduction", "add"));
  w.emit("ScatterND",
         {w.in("x"), w.cast(w.in("index"), w.type("index").dtype, DType::kI64), w.in("updates")},
         std::move(attributes));
}
void scatter_nd_add(Writer& w) { scatter_nd(w, true); }
void scatter_nd_put(Writer& w) { scatter_nd(w, false); }

void masked_select(Writer& w) {
  const std::string minus_one = w.ints({-1});
  std::string x = w.in("x"), mask = w.in("mask");
  if (!same_shape(w.type("x").shape, w.type("mask").shape)) {
    const std::string xs = w.add("Shape", {x}), ms = w.add("Shape", {mask});
    x = w.add("Expand", {x, ms});
    mask = w.add("Expand", {mask, xs});
  }
  w.emit("Compress", {w.add("Reshape", {x, minus_one}), w.add("Reshape", {mask, minus_one})},
         {int_attribute("axis", 0)});
}

void nonzero_rows(Writer& w) {
  if (w.type("x").shape.empty()) w.reject("NonZero of a 0-D tensor");
  // ONNX Runtime has kernels for these types; of others the truth values say the same.
  const DType dtype = w.type("x").dtype;
  const bool known = is_bool(dtype) || dtype == DType::kF32 || dtype == DType::kI32 ||
                     dtype == DType::kI64 || dtype == DType::kU8;
  const std::string places =
      w.add("NonZero", {known ? w.in("x") : w.cast(w.in("x"), dtype, DType::kBool)});
  w.emit("Transpose", {places}, {ints_attribute("perm", {1, 0})});
}

void run_time_sizes(Writer& w) {
  const std::string shape =
      w.add("Concat", {w.in("values"), w.ints({0})}, {int_attribute("axis", 0)});
  w.result(0, w.cast(w.add("ConstantOfShape", {shape}), DType::kF32, DType::kBool));
}

void embedding(Writer& w) {
  // Gather counts from the end too.
  const ir::Value* const given = unwrapped_indices(*w.operand("x"));
  const std::string rows =
      w.add("Gather", {w.in("weight"), given ? w.name_of(*given) : index(w, "x")},
            {int_attribute("axis", 0)});
  if (!w.has_attr("padding_idx")) return w.result(0, rows);
  const DType type = w.type("x").dtype;
  int64_t padding = w.attr("padding_idx").as_int();
  if (padding < 0) {
    const Dim& rows_of_table = w.type("weight").shape[0];
    if (!rows_of_table.is_constant()) w.reject("padding_idx counts from a symbolic end");
    padding += rows_of_table.value();
  }
  const std::string is_padding =
      w.add("Equal", {w.cast(w.in("x"), type, DType::kI64), w.constant(Array::scalar(padding))});
  const std::string row = w.add("Unsqueeze", {is_padding, w.ints({-1})});
  w.emit("Where", {row, w.scalar(0, w.result_type().dtype), rows});
}

void one_hot(Writer& w) {
  const int64_t classes = w.attr("num_classes").as_int();
  if (classes < 0) w.reject("the number of classes depends on the values");
  const DType dtype = w.result_type().dtype;
  const std::string values = w.constant(Array::from<double>({0, 1}, {2}).cast(dtype), "off_and_on");
  w.emit("OneHot",
         {w.cast(w.in("x"), w.type("x").dtype, DType::kI64), w.constant(Array::scalar(classes)),
          values},
         {int_attribute("axis", -1)});
}

void unique(Writer& w) {
  if (!w.attr("sorted").as_bool()) w.reject("unsorted unique");
  ExportAttributes attributes = {int_attribute("sorted", 1)};
  if (w.has_attr("axis")) attributes.push_back(int_attribute("axis", w.attr("axis").as_int()));
  // The same.
  const DType given = w.type("x").dtype;
  const bool known = given == DType::kF32 || given == DType::kF64 || given == DType::kI64 ||
                     given == DType::kI8 || given == DType::kString;
  const DType computed = known ? given : is_float(given) ? DType::kF32 : DType::kI64;
  const Names out =
      w.add_several("Unique", {w.cast(w.in("x"), given, computed)}, 4, std::move(attributes));
  w.result(0, w.cast(out[0], computed, given));
  const DType dtype = w.attr("dtype").as_dtype();
  size_t next = 1, source = 1;
  for (const char* flag : {"return_index", "return_inverse", "return_counts"}) {
    if (w.attr(flag).as_bool()) w.result(next++, w.cast(out[source], DType::kI64, dtype));
    ++source;
  }
}

}  // namespace

std::vector<ExportRuleEntry> indexing_export_rules() {
  return {{"gather_along", gather_along},
          {"index_select", index_select},
          {"gather_nd", gather_nd},
          {"scatter_along", scatter_along},
          {"index_add", index_add},
          {"scatter_nd_add", scatter_nd_add},
          {"scatter_nd_put", scatter_nd_put},
          {"masked_select", masked_select},
          {"nonzero_rows", nonzero_rows},
          {"run_time_sizes", run_time_sizes},
          {"embedding", embedding},
          {"one_hot", one_hot},
          {"unique", unique}};
}

}  // namespace paddle::onnx
