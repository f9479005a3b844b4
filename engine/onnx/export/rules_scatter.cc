// Rows and elements that are combined by index: segments, counts, overlapping frames.

#include <limits>

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

/// Operands as a vector.
std::string as_vector(Writer& w, const std::string& x) {
  return w.add("Reshape", {x, w.ints({-1})});
}

/// The largest of int64 values and of `least`, plus one, int64[1].
std::string size_for(Writer& w, const std::string& values, int64_t least) {
  const std::string all =
      w.add("Concat", {values, w.ints({least - 1})}, {int_attribute("axis", 0)});
  return w.add("Add", {w.reduce("ReduceMax", all, {0}, true), w.ints({1})});
}

/// The value that an extremum begins with: no element is below it.
std::string lowest_of(Writer& w, DType dtype, bool maximum) {
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return w.scalar(maximum ? -infinity : infinity, dtype);
  }
  const int bits = info(dtype).bits;
  const bool has_sign = info(dtype).kind == DTypeKind::kSigned;
  if (!has_sign && maximum) return w.scalar(0, dtype);
  const uint64_t ones = ~uint64_t{0} >> (64 - bits);
  const uint64_t value = has_sign ? (maximum ? ~(ones >> 1) : ones >> 1) : ones;
  return w.constant(Array::scalar(static_cast<int64_t>(value)).cast(dtype));
}

/// The rows of data with equal ids combined; `count`: rows of the result, int64[1].
std::string combined_rows(Writer& w, const std::string& count) {
  const std::string& reduce = w.attr("reduce").as_string();
  const TensorType& type = w.type("data");
  const DType dtype = type.dtype;
  const std::string data = w.in("data"), ids = w.in("segment_ids");
  const std::string places = w.add("Unsqueeze", {ids, w.ints({1})});
  Names sizes = {count};
  if (type.shape.size() > 1)
    sizes.push_back(w.shape(Shape(type.shape.begin() + 1, type.shape.end())));
  const std::string shape =
      sizes.size() == 1 ? count : w.add("Concat", sizes, {int_attribute("axis", 0)});
  const auto scattered = [&](const std::string& begin, const std::string& updates,
                             const char* how) {
    return w.add("ScatterND", {begin, places, updates}, {string_attribute("reduction", how)});
  };
  const std::string zeros = w.add("Expand", {w.scalar(0, dtype), shape});
  if (reduce == "sum") return scattered(zeros, data, "add");
  // How many rows each has, in the shape that aligns with the result.
  const std::string ones = w.add("Expand", {w.scalar(1, DType::kI64), w.add("Shape", {ids})});
  std::string rows = scattered(w.add("Expand", {w.scalar(0, DType::kI64), count}), ones, "add");
  std::vector<int64_t> axes;
  for (size_t i = 1; i < type.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (!axes.empty()) rows = w.add("Unsqueeze", {rows, w.ints(axes)});
  if (reduce == "mean") {
    const std::string divisor =
        w.cast(w.add("Max", {rows, w.scalar(1, DType::kI64)}), DType::kI64, dtype);
    return w.add("Div", {scattered(zeros, data, "add"), divisor});
  }
  const bool maximum = reduce == "max";
  w.require_opset(18, "ScatterND with reduction max or min");
  const std::string begin = w.add("Expand", {lowest_of(w, dtype, maximum), shape});
  const std::string is_there = w.add("Greater", {rows, w.scalar(0, DType::kI64)});
  return w.add("Where",
               {is_there, scattered(begin, data, maximum ? "max" : "min"), w.scalar(0, dtype)});
}

void segment_reduce(Writer& w) {
  w.result(0, combined_rows(w, w.dim(w.result_type().shape.at(0))));
}

void segment_pool(Writer& w) { w.result(0, combined_rows(w, size_for(w, w.in("segment_ids"), 0))); }

void bincount(Writer& w) {
  const std::string x = w.cast(w.in("x"), w.type("x").dtype, DType::kI64);
  const DType dtype = w.result_type().dtype;
  const std::string zeros =
      w.add("Expand", {w.scalar(0, dtype), size_for(w, x, w.attr("minlength").as_int())});
  const std::string each =
      w.operand("weights") ? as_vector(w, w.cast(w.in("weights"), w.type("weights").dtype, dtype))
                           : w.add("Expand", {w.scalar(1, dtype), w.add("Shape", {x})});
  w.emit("ScatterElements", {zeros, x, each},
         {int_attribute("axis", 0), string_attribute("reduction", "add")});
}

/// Values outside of the range go to a bin after the last, which is cut off.
void histogram(Writer& w) {
  const int64_t bins = w.attr("bins").as_int();
  const double min = w.attr("min").as_double(), max = w.attr("max").as_double();
  const DType wide = DType::kF64;
  const std::string x = as_vector(w, w.cast(w.in("input"), w.type("input").dtype, wide));
  const auto number = [&](double value) { return w.scalar(value, wide); };
  std::string low = number(min), high = number(max);
  if (min == 0 && max == 0) {
    // Of no elements both are 0.
    const std::string none = w.add("Equal", {w.add("Size", {x}), w.scalar(0, DType::kI64)});
    const std::string zero = w.constant(Array::from<double>({0}, {1}));
    const std::string some = w.add("Concat", {x, zero}, {int_attribute("axis", 0)});
    const std::string counted =
        w.add("Slice", {some, w.ints({0}), w.add("Max", {w.add("Shape", {x}), w.ints({1})})});
    low = w.add("Where", {none, number(0), w.reduce("ReduceMin", counted, {0}, false)});
    high = w.add("Where", {none, number(0), w.reduce("ReduceMax", counted, {0}, false)});
  }
  const std::string flat = w.cast(w.add("Equal", {low, high}), DType::kBool, wide);
  low = w.add("Sub", {low, flat});
  high = w.add("Add", {high, flat});
  const std::string inside =
      w.add("And", {w.add("GreaterOrEqual", {x, low}), w.add("LessOrEqual", {x, high})});
  const std::string range = w.add("Sub", {high, low});
  const std::string position = w.add(
      "Div", {w.add("Mul", {w.add("Sub", {x, low}), number(static_cast<double>(bins))}), range});
  const std::string last = w.scalar(static_cast<double>(bins), DType::kI64);
  const std::string bin =
      w.add("Min", {w.cast(w.add("Where", {inside, position, number(0)}), wide, DType::kI64),
                    w.scalar(static_cast<double>(bins - 1), DType::kI64)});
  const std::string places = w.add("Where", {inside, bin, last});
  const bool weighted = w.operand("weight") != nullptr;
  const std::string each = weighted
                               ? as_vector(w, w.cast(w.in("weight"), w.type("weight").dtype, wide))
                               : w.add("Expand", {number(1), w.add("Shape", {x})});
  const std::string zeros = w.add("Expand", {number(0), w.ints({bins + 1})});
  const std::string all = w.add("ScatterElements", {zeros, places, each},
                                {int_attribute("axis", 0), string_attribute("reduction", "add")});
  std::string counts = w.add("Slice", {all, w.ints({0}), w.ints({bins})});
  if (w.attr("density").as_bool()) {
    const std::string width = w.add("Div", {range, number(static_cast<double>(bins))});
    counts =
        w.add("Div", {counts, w.add("Mul", {w.reduce("ReduceSum", counts, {0}, true), width})});
  }
  w.result(0, w.cast(counts, wide, w.result_type().dtype));
}

/// [..., number, length] into [..., size], each frame hop_length after the one before it.
void overlap_frames(Writer& w) {
  const Shape& shape = w.type("x").shape;
  const size_t rank = shape.size();
  const Dim &number = shape[rank - 2], &length = shape[rank - 1];
  const auto range = [&](const Dim& count) {
    return w.add("Range", {w.scalar(0, DType::kI64), w.add("Squeeze", {w.dim(count)}),
                           w.scalar(1, DType::kI64)});
  };
  const std::string begins = w.add(
      "Unsqueeze",
      {w.add("Mul", {range(number),
                     w.scalar(static_cast<double>(w.attr("hop_length").as_int()), DType::kI64)}),
       w.ints({1})});
  const std::string places =
      as_vector(w, w.add("Add", {begins, w.add("Unsqueeze", {range(length), w.ints({0})})}));
  Shape flat(shape.begin(), shape.end() - 2);
  flat.push_back(number * length);
  const std::string values = w.reshape(w.in("x"), flat);
  const std::string zeros =
      w.add("Expand", {w.scalar(0, w.result_type().dtype), w.shape(w.result_type().shape)});
  w.emit("ScatterElements", {zeros, w.add("Expand", {places, w.add("Shape", {values})}), values},
         {int_attribute("axis", static_cast<int64_t>(rank) - 2),
          string_attribute("reduction", "add")});
}

}  // namespace

std::vector<ExportRuleEntry> scatter_export_rules() {
  return {{"segment_reduce", segment_reduce},
          {"segment_pool", segment_pool},
          {"bincount", bincount},
          {"histogram", histogram},
          {"overlap_frames", overlap_frames}};
}

}  // namespace paddle::onnx
