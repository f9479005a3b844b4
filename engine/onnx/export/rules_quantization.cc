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
  int64_t block = 0;  ///< elements along the axis that share a scale
};

/// Whether a value is a constant of zeros.
bool is_zero(const ir::Value& value) {
  if (!value.constant) return false;
  const Array packed = value.constant->contiguous();
  const auto* const bytes = static_cast<const std::byte*>(packed.raw());
  const auto size = static_cast<size_t>(storage_bytes(packed.dtype, packed.size()));
  return std::all_of(bytes, bytes + size, [](std::byte b) { return b == std::byte{0}; });
}

/// Scales of x's rank that are 1 along one axis, and all of x along the others: one block is that
/// whole axis.
std::optional<size_t> block_axis(const Shape& x, const Shape& scale) {
  if (x.size() != scale.size()) return std::nullopt;
  std::optional<size_t> axis;
  for (size_t i = 0; i < x.size(); ++i) {
    if (same_shape({x[i]}, {scale[i]})) continue;
    if (axis || scale[i].constant() != 1 || !x[i].constant()) return std::nullopt;
    axis = i;
  }
  return axis;
}

/// An operand in a type and shape, with a lone number for all of them. Runtimes that fuse these
/// operators expect initializers, so constants are converted here.
std::string operand_as(Writer& w, const char* operand, DType dtype, const Shape& to,
                       bool own = false) {
  const ir::Value* const value = w.operand(operand);
  if (!value) return {};
  const Shape& shape = value->type.shape;
  const bool expands = shape.empty() && !to.empty();
  if (value->constant && is_constant(to) &&
      (own || value->type.dtype != dtype || !same_shape(shape, to))) {
    Array array = value->constant->cast(dtype).contiguous();
    array.shape = concrete(to);
    array.strides = Dims(array.shape.size(), expands ? 0 : 1);
    return own ? w.own_constant(array.contiguous(), operand)
               : w.constant(array.contiguous(), operand);
  }
  const std::string name = w.cast(w.in(operand), value->type.dtype, dtype);
  if (same_shape(shape, to)) return name;
  return expands ? w.add("Expand", {name, w.shape(to)}) : w.reshape(name, to);
}

/// `integers`: the type of the quantized values, which ONNX wants for their zero points too.
Scales scales_of(Writer& w, DType integers) {
  const Shape& shape = w.type("scale").shape;
  const auto rank = w.type("x").shape.size();
  Scales out;
  std::optional<size_t> along;
  const Shape& x = w.type("x").shape;
  if (const auto axis = block_axis(x, shape);
      axis && std::count_if(shape.begin(), shape.end(),
                            [](const Dim& d) { return d.constant() != 1; }) > 1) {
    if (w.options().format != QuantizedFormat::kNBits) w.require_opset(21, "scales by blocks");
    out.axis = static_cast<int64_t>(*axis);
    out.block = *x[*axis].constant();
    out.scale = w.in("scale");
    // Without a zero point it is 0.
    if (const ir::Value* zero = w.operand("zero_point"); zero && !is_zero(*zero)) {
      if (!same_shape(zero->type.shape, shape)) w.reject("a zero point needs the scale's shape");
      out.zero_point = operand_as(w, "zero_point", integers, shape);
    }
    return out;
  }
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].constant() != 1) {
      if (along) w.reject("its scales vary along several axes, but not in blocks");
      along = i;
    }
  const Shape to = along ? Shape{shape[*along]} : Shape{};
  if (along) out.axis = static_cast<int64_t>(rank - shape.size() + *along);
  out.scale = operand_as(w, "scale", DType::kF32, to);
  const ir::Value* const zero = w.operand("zero_point");
  // Without a zero point it is 0. Expand has no integers of 4 bits, and ONNX Runtime cannot convert
  // a zero point that several weights share. It makes QGemm only of weights that have one.
  const ir::Value* const x_value = w.operand("x");
  const bool is_weight = x_value->constant || !x_value->producer;
  const bool is_matrix = is_weight && rank == 2 && integers == DType::kI8 && zero && zero->constant;
  if (is_matrix)
    out.zero_point = operand_as(w, "zero_point", integers, to, /*own=*/true);
  else if (!zero || !is_zero(*zero) || !(is_weight || info(integers).bits < 8))
    out.zero_point = operand_as(w, "zero_point", integers, to);
  return out;
}

ExportAttributes axis_of(const Scales& scales) {
  ExportAttributes out;
  if (scales.axis) out.push_back(int_attribute("axis", *scales.axis));
  if (scales.block > 0) out.push_back(int_attribute("block_size", scales.block));
  return out;
}

void need_opset(Writer& w, DType dtype) {
  // Those of MatMulNBits are not in the file.
  const bool replaced = w.options().format == QuantizedFormat::kNBits && info(dtype).bits == 4;
  if (info(dtype).bits < 8 && !replaced) w.require_opset(21, "QuantizeLinear of 4-bit integers");
  if (info(dtype).bits == 16) w.require_opset(21, "QuantizeLinear of 16-bit integers");
}

void quantize(Writer& w) {
  need_opset(w, w.result_type().dtype);
  const Scales scales = scales_of(w, w.result_type().dtype);
  w.emit("QuantizeLinear", {w.in("x"), scales.scale, scales.zero_point}, axis_of(scales));
}

void dequantize(Writer& w) {
  need_opset(w, w.type("x").dtype);
  const Scales scales = scales_of(w, w.type("x").dtype);
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
