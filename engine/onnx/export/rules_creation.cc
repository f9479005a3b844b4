// Tensors from nothing: constants, ranges, random numbers.

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

/// A number of an attribute, which may be a dim, as a 0-D value.
std::string number(Writer& w, const char* name, DType dtype) {
  const AttrValue& value = w.attr(name);
  if (value.is_int() && !value.as_dim().is_constant())
    return w.cast(w.add("Squeeze", {w.dim(value.as_dim())}), DType::kI64, dtype);
  return w.scalar(value.as_double(), dtype);
}

std::string exact_integer(Writer& w, const char* name) {
  const AttrValue& value = w.attr(name);
  if (!value.as_dim().is_constant()) return w.add("Squeeze", {w.dim(value.as_dim())});
  return w.constant(Array::scalar(value.as_int()));
}

void full(Writer& w) {
  const TensorType& type = w.result_type();
  const std::string value = number(w, "fill_value", type.dtype);
  if (type.shape.empty()) return w.result(0, value);
  w.emit("Expand", {value, w.shape(type.shape)});
}

void arange(Writer& w) {
  const DType dtype = w.result_type().dtype;
  // Range takes these types; others are cast.
  const bool known = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI16 ||
                     dtype == DType::kI32 || dtype == DType::kI64;
  // Whole numbers are counted as integers, so that a limit that is a size is seen as one.
  const auto is_whole = [&](const char* name) {
    return !w.has_attr(name) || w.attr(name).is_int();
  };
  const bool whole = is_whole("start") && is_whole("end") && is_whole("step");
  const DType computed = whole && is_float(dtype) ? DType::kI64
                         : known                  ? dtype
                         : is_float(dtype)        ? DType::kF32
                                                  : DType::kI64;
  const auto value = [&](const char* name) {
    return computed == DType::kI64 && w.attr(name).is_int() ? exact_integer(w, name)
                                                            : number(w, name, computed);
  };
  const bool has_end = w.has_attr("end");
  const std::string start = has_end ? value("start") : w.scalar(0, computed);
  const std::string end = value(has_end ? "end" : "start"), step = value("step");
  w.result(0, w.cast(w.add("Range", {start, end, step}), computed, dtype));
}

void dim_value(Writer& w) {
  const std::string value = w.add("Squeeze", {w.dim(w.attr("dim").as_dim())});
  w.result(0, w.cast(value, DType::kI64, w.result_type().dtype));
}

void linspace(Writer& w) {
  const TensorType& type = w.result_type();
  const AttrValue &start = w.attr("start"), &stop = w.attr("stop");
  const Dim count = type.shape.at(0);
  if (!count.is_constant()) w.reject("the number of elements is symbolic");
  const int64_t n = count.value();
  std::vector<double> values;
  const double a = start.as_double(), b = stop.as_double();
  const double step = n > 1 ? (b - a) / static_cast<double>(n - 1) : 0;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(i + 1 == n && n > 1 ? b : a + step * static_cast<double>(i));
  w.result(0, w.constant(Array::from<double>(values, {n}).cast(type.dtype)));
}

// --- random numbers: of the same distribution, not the same numbers ---

std::string random(Writer& w, const char* type, ExportAttributes attributes) {
  const TensorType& result = w.result_type();
  attributes.push_back(int_attribute("dtype", formats::onnx::number_of_dtype(result.dtype)));
  const std::string like = w.add("Expand", {w.scalar(0, result.dtype), w.shape(result.shape)});
  return w.add(type, {like}, std::move(attributes));
}
void uniform(Writer& w) {
  w.result(0, random(w, "RandomUniformLike",
                     {float_attribute("low", w.attr("min").as_double()),
                      float_attribute("high", w.attr("max").as_double())}));
}
void gaussian(Writer& w) {
  w.result(0, random(w, "RandomNormalLike",
                     {float_attribute("mean", w.attr("mean").as_double()),
                      float_attribute("scale", w.attr("std").as_double())}));
}
/// 1 where a uniform number is at least p.
void dropout_mask(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const std::string like =
      w.add("Expand", {w.scalar(0, DType::kF32), w.shape(w.result_type().shape)});
  const std::string numbers = w.add("RandomUniformLike", {like});
  const std::string kept =
      w.add("GreaterOrEqual", {numbers, w.scalar(w.attr("p").as_double(), DType::kF32)});
  w.result(0, w.cast(kept, DType::kBool, dtype));
}
void bernoulli(Writer& w) {
  if (w.opset() >= 15) return w.emit("Bernoulli", {w.in("x")});
  const std::string drawn = w.add("Less", {w.add("RandomUniformLike", {w.in("x")}), w.in("x")});
  w.result(0, w.cast(drawn, DType::kBool, w.result_type().dtype));
}

}  // namespace

std::vector<ExportRuleEntry> creation_export_rules() {
  return {{"full", full},           {"arange", arange},
          {"dim_value", dim_value}, {"linspace", linspace},
          {"uniform", uniform},     {"gaussian", gaussian},
          {"bernoulli", bernoulli}, {"dropout_mask", dropout_mask}};
}

}  // namespace paddle::onnx
