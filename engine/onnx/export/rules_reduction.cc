// Reductions, scans and sorting.

#include <algorithm>

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

/// Axes of a reduction, or none for all.
std::vector<int64_t> axes_of(Writer& w) {
  const bool some = w.has_attr("axis") && !w.type("x").shape.empty();
  return some ? w.attr("axis").as_ints() : std::vector<int64_t>();
}

void reduce(Writer& w, const char* type, DType computed) {
  const DType from = w.type("x").dtype, to = w.result_type().dtype;
  const std::string x = w.cast(w.in("x"), from, computed);
  w.result(0, w.cast(w.reduce(type, x, axes_of(w), w.attr("keepdim").as_bool()), computed, to));
}

void sum(Writer& w) { reduce(w, "ReduceSum", w.result_type().dtype); }
void mean(Writer& w) { reduce(w, "ReduceMean", w.result_type().dtype); }
void prod(Writer& w) { reduce(w, "ReduceProd", w.result_type().dtype); }
void logsumexp(Writer& w) { reduce(w, "ReduceLogSumExp", w.result_type().dtype); }
DType extremum_type(Writer& w) {
  const DType dtype = w.type("x").dtype;
  const bool known = is_float(dtype) || dtype == DType::kI32 || dtype == DType::kI64 ||
                     dtype == DType::kI8 || dtype == DType::kU8;
  return known ? dtype : is_bool(dtype) ? DType::kI32 : DType::kI64;
}
void max(Writer& w) { reduce(w, "ReduceMax", extremum_type(w)); }
void min(Writer& w) { reduce(w, "ReduceMin", extremum_type(w)); }

/// Whether any of the truth values holds: their sum, which is 0 for no elements.
std::string any_of(Writer& w, const std::string& truth) {
  const std::string count = w.reduce("ReduceSum", w.cast(truth, DType::kBool, DType::kI32),
                                     axes_of(w), w.attr("keepdim").as_bool());
  return w.cast(count, DType::kI32, DType::kBool);
}
std::string truth_of(Writer& w) { return w.cast(w.in("x"), w.type("x").dtype, DType::kBool); }
void any(Writer& w) { w.result(0, any_of(w, truth_of(w))); }
void all(Writer& w) { w.emit("Not", {any_of(w, w.add("Not", {truth_of(w)}))}); }

std::string flat(Writer& w, const std::string& x) { return w.add("Reshape", {x, w.ints({-1})}); }

void arg(Writer& w, const char* type) {
  const bool keep = w.attr("keepdim").as_bool();
  const DType dtype = w.type("x").dtype;
  std::string x = is_bool(dtype) ? w.cast(w.in("x"), dtype, DType::kI32) : w.in("x");
  const bool whole = !w.has_attr("axis") || w.type("x").shape.empty();
  if (whole) x = flat(w, x);
  std::string index = w.add(type, {x},
                            {int_attribute("axis", whole ? 0 : w.attr("axis").as_int()),
                             int_attribute("keepdims", !whole && keep ? 1 : 0)});
  if (whole && keep) index = w.reshape(index, w.result_type().shape);
  w.result(0, w.cast(index, DType::kI64, w.result_type().dtype));
}
void argmax(Writer& w) { arg(w, "ArgMax"); }
void argmin(Writer& w) { arg(w, "ArgMin"); }

void cumsum(Writer& w) {
  const DType to = w.result_type().dtype;
  // Runtimes sum floats and 32- and 64-bit integers.
  const DType computed = is_float(to) || to == DType::kI32 ? to : DType::kI64;
  std::string x = w.cast(w.in("x"), w.type("x").dtype, computed);
  const bool whole = !w.has_attr("axis");
  if (whole) x = flat(w, x);
  const int64_t axis = whole ? 0 : w.attr("axis").as_int();
  if (!whole && w.type("x").shape.empty()) return w.result(0, w.cast(x, computed, to));
  const std::string sums = w.add("CumSum", {x, w.constant(Array::scalar(axis))});
  w.result(0, w.cast(sums, computed, to));
}

void sort_pairs(Writer& w) {
  const Shape& shape = w.type("x").shape;
  const DType dtype = w.type("x").dtype;
  if (shape.empty()) {
    w.result(0, w.in("x"));
    return w.result(1, w.constant(Array::scalar(int64_t{0})));
  }
  const DType computed = is_bool(dtype) ? DType::kI32 : dtype;
  int64_t axis = w.attr("axis").as_int();
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  const std::string count = w.dim(w.result_type().shape.at(static_cast<size_t>(axis)));
  const Names sorted =
      w.add_several("TopK", {w.cast(w.in("x"), dtype, computed), count}, 2,
                    {int_attribute("axis", axis),
                     int_attribute("largest", w.attr("descending").as_bool() ? 1 : 0),
                     int_attribute("sorted", 1)});
  w.result(0, w.cast(sorted[0], computed, dtype));
  w.result(1, sorted[1]);
}

/// How many elements of the sorted last axis come before each value.
void searchsorted(Writer& w) {
  const size_t rank = w.type("sorted_sequence").shape.size();
  std::string sequence = w.in("sorted_sequence"), values = w.in("values");
  const auto last = static_cast<int64_t>(w.type("values").shape.size());
  values = w.add("Unsqueeze", {values, w.ints({last})});
  // [..., 1, elements] against [..., values, 1]
  if (rank > 1) sequence = w.add("Unsqueeze", {sequence, w.ints({static_cast<int64_t>(rank) - 1})});
  const bool right = w.attr("right").as_bool();
  const std::string before = w.add(right ? "LessOrEqual" : "Less", {sequence, values});
  const std::string count =
      w.add("ReduceSum", {w.cast(before, DType::kBool, DType::kI64), w.ints({-1})},
            {int_attribute("keepdims", 0)});
  w.result(0, w.cast(count, DType::kI64, w.result_type().dtype));
}

}  // namespace

std::vector<ExportRuleEntry> reduction_export_rules() {
  return {{"sum", sum},
          {"mean", mean},
          {"prod", prod},
          {"logsumexp", logsumexp},
          {"max", max},
          {"min", min},
          {"all", all},
          {"any", any},
          {"argmax", argmax},
          {"argmin", argmin},
          {"cumsum", cumsum},
          {"sort_pairs", sort_pairs},
          {"searchsorted", searchsorted}};
}

}  // namespace paddle::onnx
