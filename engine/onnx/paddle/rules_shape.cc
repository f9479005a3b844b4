// Operations that create, move, choose and join elements.

#include <algorithm>
#include <charconv>

#include "onnx/paddle/program_importer.h"

namespace paddle::onnx {
namespace {

using Importer = ProgramImporter;

/// 0 copies a size, except where the operand has no elements: then it is the size 0.
void reshape(Importer& p) {
  ImportAttributes attributes;
  if (!p.for_file()) attributes.push_back(int_attribute("zeros_of_empty", 1));
  p.result("Out", 0,
           p.add("Reshape", {p.in("X", 0), p.int_values("Shape", "ShapeTensor", 1, {"shape"})},
                 attributes));
}

void transpose(Importer& p) {
  std::vector<int64_t> order = p.ints({"axis", "perm"});
  const int64_t rank = p.rank("X", 0);
  for (int64_t& axis : order) axis += axis < 0 ? rank : 0;
  p.result("Out", 0, p.add("Transpose", {p.in("X", 0)}, {ints_attribute("perm", order)}));
}

void flatten(Importer& p) {
  const int64_t rank = p.rank("X", 0);
  // That of PaddlePaddle 1 makes a matrix.
  if (!p.is_pir() && p.operation().attributes.contains("axis"))
    return p.result(
        "Out", 0,
        p.add("Flatten", {p.in("X", 0)}, {int_attribute("axis", p.integer({"axis"}, 1))}));
  const auto axis = [&](const char* key, int64_t fallback) {
    const int64_t given = p.integer({key}, fallback);
    return given < 0 ? given + rank : given;
  };
  const int64_t start = axis("start_axis", 1), stop = axis("stop_axis", -1);
  if (rank == 0) return p.result("Out", 0, p.add("Reshape", {p.in("X", 0), p.constant_ints({-1})}));
  if (start < 0 || start > stop || stop >= rank) p.reject("its axes are out of range");
  // 0 keeps the size at its place, so only sizes before the flattened axes can be kept so.
  std::vector<int64_t> sizes(static_cast<size_t>(start), 0);
  sizes.push_back(-1);
  for (int64_t i = stop + 1; i < rank; ++i) {
    const int64_t size = p.type("X", 0).shape[static_cast<size_t>(i)];
    if (size < 0) p.reject("a size after the flattened axes is not static");
    sizes.push_back(size);
  }
  p.result("Out", 0, p.add("Reshape", {p.in("X", 0), p.constant_ints(sizes)}));
}

void squeeze(Importer& p) {
  const auto axes = p.known_ints("AxesTensor", 1, {"axes"});
  if (!axes) p.reject("its axes are only known when the program runs");
  // Axes of other sizes than 1 are passed over.
  std::vector<int64_t> ones;
  const Dims& shape = p.type("X", 0).shape;
  for (int64_t axis : *axes) {
    const int64_t at = axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis;
    if (at < 0 || at >= static_cast<int64_t>(shape.size())) p.reject("an axis is out of range");
    if (shape[static_cast<size_t>(at)] == 1 || shape[static_cast<size_t>(at)] < 0)
      ones.push_back(at);
  }
  ImportNames inputs = {p.in("X", 0)};
  if (axes->empty())
    p.result("Out", 0, p.add("Squeeze", inputs));
  else
    p.result("Out", 0, p.add("Squeeze", {inputs[0], p.constant_ints(ones)}));
}

/// Axes are inserted one after the other, each as a place in the result so far.
void unsqueeze(Importer& p) {
  const bool list = !p.is_pir() && !p.in_list("AxesTensorList", 1).empty();
  const auto known = p.known_ints(list ? "AxesTensorList" : "AxesTensor", 1, {"axes"});
  std::string x = p.in("X", 0);
  if (!known) {
    const std::string axes = p.int_values("AxesTensor", "AxesTensorList", 1, {"axes"});
    const Dims& shape = p.type("AxesTensor", 1).shape;
    const auto count = list ? static_cast<int64_t>(p.in_list("AxesTensorList", 1).size())
                            : element_count(std::span<const int64_t>(shape));
    if (count < 0 || count > 16) p.reject("the number of its axes is not known");
    for (int64_t i = 0; i < count; ++i)
      x = p.add(
          "Unsqueeze",
          {x, count == 1 ? axes
                         : p.add("Slice", {axes, p.constant_ints({i}), p.constant_ints({i + 1})})});
    return p.result("Out", 0, x);
  }
  std::vector<int64_t> places;
  int64_t rank = p.rank("X", 0);
  for (const int64_t axis : *known) {
    const int64_t at = axis < 0 ? axis + rank + 1 : axis;
    if (at < 0 || at > rank) p.reject("an axis is out of range");
    for (int64_t& place : places) place += place >= at ? 1 : 0;
    places.push_back(at);
    ++rank;
  }
  std::sort(places.begin(), places.end());
  p.result(
      "Out", 0,
      places.empty() ? p.add("Identity", {x}) : p.add("Unsqueeze", {x, p.constant_ints(places)}));
}

int64_t known_axis(Importer& p, const char* slot, size_t position) {
  return static_cast<int64_t>(p.known_number(slot, position, {"axis"}, 0));
}

void concat(Importer& p) {
  p.result(
      "Out", 0,
      p.add("Concat", p.in_list("X", 0), {int_attribute("axis", known_axis(p, "AxisTensor", 1))}));
}

void stack(Importer& p) {
  const ImportNames values = p.in_list("X", 0);
  const int64_t rank = static_cast<int64_t>(p.result_type("Y", 0).shape.size());
  int64_t axis = p.integer({"axis"}, 0);
  if (axis < 0) axis += rank;
  ImportNames parts;
  for (const std::string& value : values)
    parts.push_back(p.add("Unsqueeze", {value, p.constant_ints({axis})}));
  p.result("Y", 0, p.add("Concat", parts, {int_attribute("axis", axis)}));
}

/// Equal pieces along an axis.
ImportNames equal_pieces(Importer& p, int64_t count, int64_t axis) {
  if (count < 1 || count > 4096) p.reject("expected 1 to 4096 parts");
  ImportAttributes attributes = {int_attribute("axis", axis)};
  if (p.opset() >= 18) attributes.push_back(int_attribute("num_outputs", count));
  return p.add_several("Split", {p.in("X", 0)}, static_cast<size_t>(count), attributes);
}

void unstack(Importer& p) {
  const int64_t axis = p.integer({"axis"}, 0), count = p.integer({"num"}, 0);
  ImportNames parts = equal_pieces(p, count, axis);
  for (std::string& part : parts) part = p.add("Squeeze", {part, p.constant_ints({axis})});
  p.result_list("Y", 0, parts);
}

void split_equally(Importer& p, int64_t count, int64_t axis) {
  p.result_list("Out", 0, equal_pieces(p, count, axis));
}

/// Parts of the sizes `sections`, of which one may be -1.
void split(Importer& p) {
  const int64_t axis = known_axis(p, "AxisTensor", 2);
  const auto sections = p.known_ints("SectionsTensorList", 1, {"sections"});
  if (!sections) p.reject("its sections are only known when the program runs");
  if (sections->empty()) return split_equally(p, p.integer({"num"}, 0), axis);
  std::vector<int64_t> sizes = *sections;
  const auto rest = std::find(sizes.begin(), sizes.end(), -1);
  if (rest != sizes.end()) {
    const Dims& shape = p.type("X", 0).shape;
    const int64_t at = axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis;
    if (at < 0 || at >= static_cast<int64_t>(shape.size()) || shape[static_cast<size_t>(at)] < 0)
      p.reject("the size of the axis is not known");
    int64_t left = shape[static_cast<size_t>(at)];
    for (const int64_t size : sizes) left -= size == -1 ? 0 : size;
    *rest = left;
  }
  p.result_list("Out", 0,
                p.add_several("Split", {p.in("X", 0), p.constant_ints(sizes)}, sizes.size(),
                              {int_attribute("axis", axis)}));
}

void split_with_num(Importer& p) {
  split_equally(p, p.integer({"num"}, 0), known_axis(p, "AxisTensor", 1));
}

void slice_with(Importer& p, const std::string& steps) {
  const std::string axes = p.constant_ints(p.ints({"axes"}));
  const std::string starts = p.int_values("StartsTensor", "StartsTensorList", 1, {"starts"}),
                    ends = p.int_values("EndsTensor", "EndsTensorList", 2, {"ends"});
  std::string out = p.add("Slice", {p.in("Input", 0), starts, ends, axes, steps});
  if (const auto dropped = p.ints({"decrease_axis"}); !dropped.empty())
    out = p.add("Squeeze", {out, p.constant_ints(dropped)});
  p.result("Out", 0, out);
}

void slice(Importer& p) { slice_with(p, ""); }

void strided_slice(Importer& p) {
  slice_with(p, p.int_values("StridesTensor", "StridesTensorList", 3, {"strides"}));
}

/// PaddlePaddle 1's, which repeats each axis.
void expand_times(Importer& p) {
  const auto known = p.known_ints("ExpandTimes", 1, {"expand_times"});
  const std::string repeats =
      p.int_values("ExpandTimes", "expand_times_tensor", 1, {"expand_times"});
  if (known && p.in_list("expand_times_tensor", 1).empty() &&
      static_cast<int64_t>(known->size()) != p.rank("X", 0))
    p.reject("expected a number for each axis");
  p.result("Out", 0, p.add("Tile", {p.in("X", 0), repeats}));
}

/// The same, until the shape is that of another value.
void expand_to(Importer& p) {
  const std::string x = p.in("X", 0);
  const std::string repeats =
      p.add("Div", {p.add("Shape", {p.in("target_tensor", 1)}), p.add("Shape", {x})});
  p.result("Out", 0, p.add("Tile", {x, repeats}));
}

void expand(Importer& p) {
  if (!p.is_pir() && p.operation().type == "expand") return expand_times(p);
  const auto known = p.known_ints("Shape", 1, {"shape"});
  std::string shape;
  if (known && (p.is_pir() || p.in_list("expand_shapes_tensor", 1).empty())) {
    // -1 keeps a size, as 1 does for Expand.
    std::vector<int64_t> sizes = *known;
    std::replace(sizes.begin(), sizes.end(), int64_t{-1}, int64_t{1});
    shape = p.constant_ints(sizes);
  } else {
    // The same where it is only known when the program runs.
    shape = p.add("Abs", {p.int_values("Shape", "expand_shapes_tensor", 1, {"shape"})});
  }
  p.result("Out", 0, p.add("Expand", {p.in("X", 0), shape}));
}

void expand_as(Importer& p) {
  if (!p.is_pir() && p.operation().type == "expand_as") return expand_to(p);
  const auto sizes = p.ints({"target_shape"});
  const std::string like = p.in("Y", 1);
  p.result("Out", 0,
           p.add("Expand",
                 {p.in("X", 0), like.empty() ? p.constant_ints(sizes) : p.add("Shape", {like})}));
}

void tile(Importer& p) {
  const std::string repeats =
      p.int_values("RepeatTimes", "repeat_times_tensor", 1, {"repeat_times"});
  const auto known = p.known_ints("RepeatTimes", 1, {"repeat_times"});
  if (!known || static_cast<int64_t>(known->size()) != p.rank("X", 0))
    p.reject("expected a number for each axis");
  p.result("Out", 0, p.add("Tile", {p.in("X", 0), repeats}));
}

/// Indices of shape [n] or [n, 1], which mean the same, as [n].
std::string flat_indices(Importer& p) {
  const std::string index = p.in("Index", 1);
  return p.rank("Index", 1) == 2 ? p.add("Reshape", {index, p.constant_ints({-1})}) : index;
}

void gather(Importer& p) {
  const int64_t axis =
      p.is_pir() || p.has("Axis", 2) ? known_axis(p, "Axis", 2) : p.integer({"axis"}, 0);
  p.result("Out", 0,
           p.add("Gather", {p.in("X", 0), flat_indices(p)}, {int_attribute("axis", axis)}));
}

void gather_nd(Importer& p) {
  p.result("Out", 0, p.add("GatherND", {p.in("X", 0), p.cast(p.in("Index", 1), DType::kI64)}));
}

void index_select(Importer& p) {
  p.result("Out", 0,
           p.add("Gather", {p.in("X", 0), flat_indices(p)},
                 {int_attribute("axis", p.integer({"dim", "axis"}, 0))}));
}

/// Rows of a table; those of `padding_idx` are 0.
void embedding(Importer& p) {
  const std::string ids = p.is_pir() ? p.in("", 0) : p.in("Ids", 0);
  const std::string table = p.is_pir() ? p.in("", 1) : p.in("W", 0);
  const DType id_type = p.is_pir() ? p.dtype("", 0) : p.dtype("Ids", 0);
  const DType type = p.is_pir() ? p.dtype("", 1) : p.dtype("W", 0);
  std::string rows = p.add("Gather", {table, ids}, {int_attribute("axis", 0)});
  if (const int64_t padding = p.integer({"padding_idx"}, -1); padding >= 0) {
    const std::string is_padding =
        p.add("Equal", {ids, p.scalar(static_cast<double>(padding), id_type)});
    rows = p.add("Where", {p.add("Unsqueeze", {is_padding, p.constant_ints({-1})}),
                           p.scalar(0, type), rows});
  }
  p.result("Out", 0, rows);
}

void where(Importer& p) {
  p.result("Out", 0, p.add("Where", {p.in("Condition", 0), p.in("X", 1), p.in("Y", 2)}));
}

void one_hot(Importer& p) {
  const auto depth = static_cast<int64_t>(p.known_number("depth_tensor", 1, {"depth"}, 0));
  std::string x = p.in("X", 0);
  // That of PaddlePaddle 1 replaces a last axis of size 1.
  if (!p.is_pir() && p.operation().type == "one_hot") {
    const Dims& shape = p.type("X", 0).shape;
    if (shape.empty() || shape.back() != 1) p.reject("the last axis does not have the size 1");
    x = p.add("Squeeze", {x, p.constant_ints({p.rank("X", 0) - 1})});
  }
  p.result(
      "Out", 0,
      p.add("OneHot", {x, p.constant_ints({depth}), p.constant(Array::from<float>({0, 1}, {2}))},
            {int_attribute("axis", -1)}));
}

void shape(Importer& p) {
  const std::string out = p.add("Shape", {p.in("Input", 0)});
  const DType wanted = p.result_type("Out", 0).dtype.value_or(DType::kI64);
  p.result("Out", 0, wanted == DType::kI64 ? out : p.cast(out, wanted));
}

/// The number of an attribute, with all its bits.
Array full_value(Importer& p, DType dtype) {
  const std::string exact = p.is_pir() ? "" : p.text({"str_value"}, "");
  if (!exact.empty() && is_integer(dtype)) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(exact.data(), exact.data() + exact.size(), value);
    if (error == std::errc() && end == exact.data() + exact.size())
      return Array::scalar(value).cast(dtype);
  }
  if (!exact.empty()) return Array::scalar(std::strtod(exact.c_str(), nullptr)).cast(dtype);
  const auto values = p.numbers({"value"}, dtype);
  if (!values || values->size() == 0) return Array::scalar(0.0).cast(dtype);
  Array first = *values;
  first.shape.clear();
  first.strides.clear();
  return first;
}

/// A constant; where it is small it is one of the file, since sizes and axes are made so.
void full(Importer& p) {
  const auto dtype = p.dtype_attr({"dtype"});
  if (!dtype) p.reject("the type is not known");
  const bool computed = !p.is_pir() && p.has("ValueTensor", 0) && !p.known_value("ValueTensor", 0);
  Array number = Array::scalar(0.0).cast(*dtype);
  if (!computed) {
    const auto given = p.is_pir() ? std::nullopt : p.known_value("ValueTensor", 0);
    number = given ? given->contiguous().cast(*dtype) : full_value(p, *dtype);
    if (number.size() != 1) p.reject("its value is not one number");
    number.shape.clear();
    number.strides.clear();
  }
  const auto value = [&] {
    return computed ? p.without_axes(p.cast(p.in("ValueTensor", 0), *dtype)) : p.constant(number);
  };
  const auto sizes = p.is_pir() ? p.ints({"shape"}) : p.known_ints("ShapeTensor", 0, {"shape"});
  int64_t count = 1;
  constexpr int64_t kMaxStored = 64;
  if (!p.is_pir() && (p.has("ShapeTensor", 0) || !p.in_list("ShapeTensorList", 0).empty())) {
    const std::string shape = p.int_values("ShapeTensor", "ShapeTensorList", 0, {"shape"});
    return p.result("Out", 0, p.add("Expand", {value(), shape}));
  }
  for (const int64_t size : *sizes)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      p.reject("its shape is impossible");
  if (computed || count > kMaxStored)
    return p.result("Out", 0, p.add("Expand", {value(), p.constant_ints(*sizes)}));
  number.shape = *sizes;
  number.strides.assign(sizes->size(), 0);
  p.result("Out", 0, p.constant(number.contiguous()));
}

void full_int_array(Importer& p) {
  const auto values = p.ints({"value"});
  const DType dtype = p.dtype_attr({"dtype"}).value_or(DType::kI64);
  p.result(
      "Out", 0,
      p.constant(Array::from<int64_t>(values, {static_cast<int64_t>(values.size())}).cast(dtype)));
}

void full_like(Importer& p) {
  const DType dtype = p.dtype_attr({"dtype"}).value_or(p.dtype("X", 0));
  const std::string given = p.is_pir() ? p.in("", 1) : "";
  const std::string value =
      given.empty() ? p.scalar({"value"}, 0, dtype) : p.without_axes(p.cast(given, dtype));
  p.result("Out", 0, p.add("Expand", {value, p.add("Shape", {p.in("X", 0)})}));
}

void full_with_tensor(Importer& p) {
  p.result("Out", 0, p.add("Expand", {p.in("", 0), p.int_values("", "", 1, {"shape"})}));
}

/// A constant of which one size is that of an input.
void full_batch_size_like(Importer& p) {
  const auto dtype = p.dtype_attr({"dtype"});
  if (!dtype) p.reject("the type is not known");
  std::vector<int64_t> sizes = p.ints({"shape"});
  const int64_t from = p.integer({"input_dim_idx"}, 0), to = p.integer({"output_dim_idx"}, 0);
  if (to < 0 || to >= static_cast<int64_t>(sizes.size())) p.reject("an axis is out of range");
  const std::string size = p.add("Shape", {p.in("Input", 0)},
                                 {int_attribute("start", from), int_attribute("end", from + 1)});
  ImportNames parts;
  for (size_t i = 0; i < sizes.size(); ++i)
    parts.push_back(static_cast<int64_t>(i) == to ? size : p.constant_ints({sizes[i]}));
  const std::string shape = p.add("Concat", parts, {int_attribute("axis", 0)});
  p.result("Out", 0, p.add("Expand", {p.constant(full_value(p, *dtype)), shape}));
}

void range(Importer& p) {
  const auto dtype = p.result_type("Out", 0).dtype;
  if (!dtype) p.reject("the type is not known");
  ImportNames operands;
  const char* const slots[] = {"Start", "End", "Step"};
  for (size_t i = 0; i < 3; ++i)
    operands.push_back(p.add("Reshape", {p.cast(p.in(slots[i], i), *dtype), p.constant_ints({})}));
  p.result("Out", 0, p.add("Range", operands));
}

void assign_value(Importer& p) {
  const auto dtype = p.dtype_attr({"dtype"});
  if (!dtype) p.reject("the type is not known");
  const Dims sizes = p.ints({"shape"});
  std::optional<Array> values;
  for (const char* key :
       {"values", "fp32_values", "fp64_values", "int32_values", "int64_values", "bool_values"})
    if (!values || values->size() == 0) values = p.numbers({key}, *dtype);
  int64_t count = 1;
  for (const int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      p.reject("its shape is impossible");
  if (count != (values ? values->size() : 0)) p.reject("values and shape differ");
  Array array = values ? *values : Array::empty(*dtype, {0});
  array.shape = sizes;
  array.strides = contiguous_strides(sizes);
  p.result("Out", 0, p.constant(array));
}

/// PIR's lists of values.
void combine(Importer& p) {
  ImportNames all;
  for (size_t i = 0; i < p.operation().inputs.size(); ++i) all.push_back(p.in("", i));
  p.result_list("", 0, all);
}

void uncombine(Importer& p) {
  const ImportNames all = p.in_list("", 0);
  if (all.size() != p.operation().outputs.size()) p.reject("a list has another length");
  for (size_t i = 0; i < all.size(); ++i) p.result("", i, all[i]);
}

void element(Importer& p) {
  const ImportNames all = p.in_list("", 0);
  const int64_t index = p.integer({"index"}, -1);
  if (index < 0 || index >= static_cast<int64_t>(all.size())) p.reject("an index is out of range");
  p.result("", 0, all[static_cast<size_t>(index)]);
}

}  // namespace

std::vector<ImportRuleEntry> paddle_shape_rules() {
  return {
      {{"reshape2", "reshape"}, reshape},
      {{"transpose2", "transpose"}, transpose},
      {{"flatten_contiguous_range", "flatten", "flatten2"}, flatten},
      {{"squeeze2", "squeeze"}, squeeze},
      {{"unsqueeze2", "unsqueeze"}, unsqueeze},
      {{"concat"}, concat},
      {{"stack"}, stack},
      {{"unstack"}, unstack},
      {{"split"}, split},
      {{"split_with_num"}, split_with_num},
      {{"slice"}, slice},
      {{"strided_slice"}, strided_slice},
      {{"expand_v2", "expand"}, expand},
      {{"expand_as_v2", "expand_as"}, expand_as},
      {{"tile"}, tile},
      {{"gather"}, gather},
      {{"gather_nd"}, gather_nd},
      {{"index_select"}, index_select},
      {{"lookup_table_v2", "embedding"}, embedding},
      {{"where"}, where},
      {{"one_hot_v2", "one_hot"}, one_hot},
      {{"shape", "shape64"}, shape},
      {{"fill_constant", "full"}, full},
      {{"full_int_array"}, full_int_array},
      {{"fill_any_like", "full_like"}, full_like},
      {{"full_with_tensor"}, full_with_tensor},
      {{"fill_constant_batch_size_like", "full_batch_size_like"}, full_batch_size_like},
      {{"range", "arange"}, range},
      {{"assign_value", "assign_value_"}, assign_value},
      {{"builtin.combine"}, combine},
      {{"builtin.split"}, uncombine},
      {{"builtin.slice"}, element},
  };
}

}  // namespace paddle::onnx
