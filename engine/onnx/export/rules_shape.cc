// Reshaping, slicing, joining and padding.

#include <algorithm>
#include <numeric>

#include "onnx/export/graph_writer.h"
#include "ops/nn/window.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

void to_result_shape(Writer& w) { w.result(0, w.reshape(w.in("x"), w.result_type().shape)); }

/// The axes of size 1 that `to` lacks; nullopt if it differs in more.
std::optional<std::vector<int64_t>> dropped_axes(const Shape& from, const Shape& to) {
  std::vector<int64_t> out;
  size_t at = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (at < to.size() && from[i].same(to[at]))
      ++at;
    else if (from[i].constant() == 1)
      out.push_back(static_cast<int64_t>(i));
    else
      return std::nullopt;
  }
  return at == to.size() ? std::optional(out) : std::nullopt;
}

/// Axes of size 1 that come or go need no sizes of the others.
void reshape(Writer& w) {
  const Shape &from = w.type("x").shape, &to = w.result_type().shape;
  if (std::count_if(to.begin(), to.end(), [](const Dim& d) { return !d.is_constant(); }) < 2)
    return to_result_shape(w);
  if (const auto axes = dropped_axes(from, to); axes && !axes->empty())
    return w.emit("Squeeze", {w.in("x"), w.ints(*axes)});
  if (const auto axes = dropped_axes(to, from); axes && !axes->empty())
    return w.emit("Unsqueeze", {w.in("x"), w.ints(*axes)});
  to_result_shape(w);
}

void transpose(Writer& w) {
  std::vector<int64_t> permutation = w.attr("perm").as_ints();
  for (int64_t& axis : permutation)
    if (axis < 0) axis += static_cast<int64_t>(permutation.size());
  w.emit("Transpose", {w.in("x")}, {ints_attribute("perm", std::move(permutation))});
}

/// Axes that are put in one after the other, as positions in the result.
std::vector<int64_t> inserted_axes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<bool> is_new(static_cast<size_t>(rank), false);
  for (int64_t axis : axes) {
    const auto size = static_cast<int64_t>(is_new.size());
    if (axis < 0) axis += size + 1;
    is_new.insert(is_new.begin() + static_cast<ptrdiff_t>(axis), true);
  }
  std::vector<int64_t> out;
  for (size_t i = 0; i < is_new.size(); ++i)
    if (is_new[i]) out.push_back(static_cast<int64_t>(i));
  return out;
}

void unsqueeze(Writer& w) {
  const auto axes =
      inserted_axes(w.attr("axis").as_ints(), static_cast<int64_t>(w.type("x").shape.size()));
  w.emit("Unsqueeze", {w.in("x"), w.ints(axes)});
}

void squeeze(Writer& w) {
  const Shape& shape = w.type("x").shape;
  std::vector<int64_t> axes;
  const auto removable = [&](int64_t axis) {
    return shape.at(static_cast<size_t>(axis)).constant() == 1;
  };
  if (w.has_attr("axis")) {
    for (int64_t axis : w.attr("axis").as_ints()) {
      if (axis < 0) axis += static_cast<int64_t>(shape.size());
      if (removable(axis)) axes.push_back(axis);
    }
  } else {
    for (size_t i = 0; i < shape.size(); ++i)
      if (removable(static_cast<int64_t>(i))) axes.push_back(static_cast<int64_t>(i));
  }
  if (shape.size() - axes.size() != w.result_type().shape.size()) return to_result_shape(w);
  if (axes.empty()) return w.emit("Identity", {w.in("x")});
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  w.emit("Squeeze", {w.in("x"), w.ints(axes)});
}

void expand(Writer& w) { w.emit("Expand", {w.in("x"), w.shape(w.result_type().shape)}); }

void strided_slice(Writer& w) {
  const auto axes = w.attr("axes").as_ints();
  if (axes.empty()) return w.emit("Identity", {w.in("x")});
  w.emit("Slice",
         {w.in("x"), w.shape(w.attr("starts").as_dims()), w.shape(w.attr("ends").as_dims()),
          w.ints(axes), w.ints(w.attr("strides").as_ints())});
}

/// Flat positions of the slice, then one scatter over the flattened tensor.
void strided_slice_scatter(Writer& w) {
  const Shape& shape = w.type("x").shape;
  const std::string x = w.in("x");
  const auto axes = w.attr("axes").as_ints();
  const Dim count = element_count(std::span<const Dim>(shape));
  const std::string size = w.dim(count);
  const std::string zero = w.constant(Array::scalar(int64_t{0})),
                    one = w.constant(Array::scalar(int64_t{1}));
  const std::string flat = w.add("Range", {zero, w.add("Squeeze", {size}), one});
  std::string places = w.reshape(flat, shape);
  if (!axes.empty())
    places = w.add("Slice",
                   {places, w.shape(w.attr("starts").as_dims()), w.shape(w.attr("ends").as_dims()),
                    w.ints(axes), w.ints(w.attr("strides").as_ints())});
  const std::string value = w.add("Expand", {w.in("value"), w.add("Shape", {places})});
  const std::string minus_one = w.ints({-1});
  const std::string scattered =
      w.add("ScatterElements",
            {w.add("Reshape", {x, minus_one}), w.add("Reshape", {places, minus_one}),
             w.add("Reshape", {value, minus_one})},
            {int_attribute("axis", 0)});
  w.result(0, w.reshape(scattered, shape));
}

void concat(Writer& w) {
  Names inputs;
  for (const ir::Value* value : w.operand_list("x")) {
    // Empty vectors join anything in other systems; here shapes agree, so each is an input.
    inputs.push_back(w.cast(w.name_of(*value), value->type.dtype, w.result_type().dtype));
  }
  if (inputs.size() == 1) return w.result(0, inputs[0]);
  int64_t axis = w.attr("axis").as_int();
  if (axis < 0) axis += static_cast<int64_t>(w.result_type().shape.size());
  w.emit("Concat", inputs, {int_attribute("axis", axis)});
}

/// Borders of all axes: [before…, after…].
void pad(Writer& w) {
  const Shape& shape = w.type("x").shape;
  const auto rank = shape.size();
  const std::vector<int64_t> given = w.attr("pad").as_ints();
  std::vector<int64_t> pads(2 * rank, 0);
  const auto set = [&](size_t axis, size_t pair) {
    pads[axis] = given[2 * pair];
    pads[rank + axis] = given[2 * pair + 1];
  };
  const std::string& mode = w.attr("mode").as_string();
  if (given.size() == 2 * rank && mode == "constant") {
    const bool from_left = w.attr("pad_from_left_axis").as_bool();
    for (size_t i = 0; i < rank; ++i) set(from_left ? i : rank - 1 - i, i);
  } else {
    // Pairs of the spatial axes, the last one first.
    const std::string layout = w.has_attr("data_format") ? w.attr("data_format").as_string() : "";
    const size_t end = rank - (layout.ends_with('C') && rank > 2 ? 1 : 0);
    for (size_t i = 0; i < given.size() / 2; ++i) set(end - 1 - i, i);
  }
  if (mode == "circular") w.require_opset(19, "Pad with mode wrap");
  const std::string onnx_mode = mode == "replicate" ? "edge" : mode == "circular" ? "wrap" : mode;
  const DType dtype = w.type("x").dtype;
  const bool widened = is_bool(dtype);
  const std::string x = widened ? w.cast(w.in("x"), dtype, DType::kI32) : w.in("x");
  const DType computed = widened ? DType::kI32 : dtype;
  Names inputs = {x, w.ints(pads)};
  if (mode == "constant") inputs.push_back(w.scalar(w.attr("value").as_double(), computed));
  w.result(0, w.cast(w.add("Pad", inputs, {string_attribute("mode", onnx_mode)}), computed, dtype));
}

/// Moves two axes to the end, in this order.
std::vector<int64_t> with_last(size_t rank, int64_t a, int64_t b) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i)
    if (i != a && i != b) out.push_back(i);
  out.push_back(a);
  out.push_back(b);
  return out;
}

void diagonal(Writer& w) {
  const Shape& shape = w.type("x").shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t a = w.attr("axis1").as_int(), b = w.attr("axis2").as_int();
  a += a < 0 ? rank : 0;
  b += b < 0 ? rank : 0;
  const Dim &rows = shape[static_cast<size_t>(a)], &columns = shape[static_cast<size_t>(b)];
  if (!columns.is_constant()) w.reject("the diagonal of a matrix whose width is symbolic");
  const int64_t width = columns.value(), offset = w.attr("offset").as_int();
  const int64_t first = offset >= 0 ? offset : -offset * width;
  std::string x = w.in("x");
  const auto permutation = with_last(shape.size(), a, b);
  if (!std::is_sorted(permutation.begin(), permutation.end())) x = w.transpose(x, permutation);
  Shape merged;
  for (size_t i = 0; i + 2 < permutation.size(); ++i)
    merged.push_back(shape[static_cast<size_t>(permutation[i])]);
  merged.push_back(rows * columns);
  const Dim count = w.result_type().shape.back();
  const std::string flat = w.reshape(x, merged);
  // Elements first, first + width + 1, …
  const auto last_axis = static_cast<int64_t>(merged.size()) - 1;
  const std::string begin = w.ints({first});
  const std::string end = w.dim(count * (width + 1) + first);
  w.emit("Slice", {flat, begin, end, w.ints({last_axis}), w.ints({width + 1})});
}

void unfold_axis(Writer& w) {
  const Shape& shape = w.type("x").shape;
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = w.attr("axis").as_int();
  axis += axis < 0 ? rank : 0;
  const int64_t size = w.attr("size").as_int(), step = w.attr("step").as_int();
  const std::string zero = w.constant(Array::scalar(int64_t{0})),
                    one = w.constant(Array::scalar(int64_t{1}));
  const std::string windows =
      w.add("Squeeze", {w.dim(w.result_type().shape[static_cast<size_t>(axis)])});
  const std::string starts =
      w.add("Mul", {w.add("Range", {zero, windows, one}), w.constant(Array::scalar(step))});
  std::vector<int64_t> inside(static_cast<size_t>(size));
  std::iota(inside.begin(), inside.end(), int64_t{0});
  const std::string places =
      w.add("Add", {w.add("Unsqueeze", {starts, w.ints({1})}), w.ints(inside)});
  const std::string gathered = w.add("Gather", {w.in("x"), places}, {int_attribute("axis", axis)});
  // The elements of a window go to the end.
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != axis + 1) permutation.push_back(i);
  permutation.push_back(axis + 1);
  w.result(0, w.transpose(gathered, permutation));
}

}  // namespace

std::vector<ExportRuleEntry> shape_export_rules() {
  return {{"reshape", reshape},
          {"flatten", to_result_shape},
          {"transpose", transpose},
          {"squeeze", squeeze},
          {"unsqueeze", unsqueeze},
          {"expand", expand},
          {"strided_slice", strided_slice},
          {"strided_slice_scatter", strided_slice_scatter},
          {"concat", concat},
          {"pad", pad},
          {"diagonal", diagonal},
          {"unfold_axis", unfold_axis}};
}

}  // namespace paddle::onnx
