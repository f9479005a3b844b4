// Quantized values as QuantizeLinear and DequantizeLinear.

#include <algorithm>

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

/// Scales broadcast against x; ONNX has one number, or a vector along an axis.
struct Scales {
  std::string scale, zero_point;
  std::optional<int64_t> axis;
};

Scales scales_of(Writer& w) {
  const Shape& shape = w.type("scale").shape;
  const auto rank = w.type("x").shape.size();
  Scales out;
  std::optional<size_t> along;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].constant() != 1) {
      if (along) w.refuse("scales along several axes need block quantization");
      along = i;
    }
  const Shape to = along ? Shape{shape[*along]} : Shape{};
  if (along) out.axis = static_cast<int64_t>(rank - shape.size() + *along);
  const auto reshaped = [&](const char* operand) {
    if (!w.operand(operand)) return std::string();
    return same_shape(w.type(operand).shape, to) ? w.in(operand) : w.reshape(w.in(operand), to);
  };
  out.scale = reshaped("scale");
  out.zero_point = reshaped("zero_point");
  if (const ir::Value* zero = w.operand("zero_point");
      zero && zero->type.shape.size() == 0 && along)
    out.zero_point = w.add("Expand", {w.in("zero_point"), w.shape(to)});
  return out;
}

ExportAttributes axis_of(const Scales& scales) {
  return scales.axis ? ExportAttributes{int_attribute("axis", *scales.axis)} : ExportAttributes{};
}

void need_opset(Writer& w, DType dtype) {
  if (info(dtype).bits < 8) w.require_opset(21, "QuantizeLinear of 4-bit integers");
  if (info(dtype).bits == 16) w.require_opset(21, "QuantizeLinear of 16-bit integers");
}

void quantize(Writer& w) {
  need_opset(w, w.result_type().dtype);
  const Scales scales = scales_of(w);
  w.emit("QuantizeLinear", {w.in("x"), scales.scale, scales.zero_point}, axis_of(scales));
}

void dequantize(Writer& w) {
  need_opset(w, w.type("x").dtype);
  const Scales scales = scales_of(w);
  w.emit("DequantizeLinear", {w.in("x"), scales.scale, scales.zero_point}, axis_of(scales));
}

void quantize_dynamic(Writer& w) {
  const Names out = w.add_several("DynamicQuantizeLinear", {w.in("x")}, 3);
  for (size_t i = 0; i < out.size(); ++i) w.result(i, out[i]);
}

}  // namespace

std::vector<ExportRuleEntry> quantization_export_rules() {
  return {
      {"quantize", quantize}, {"dequantize", dequantize}, {"quantize_dynamic", quantize_dynamic}};
}

}  // namespace paddle::onnx
