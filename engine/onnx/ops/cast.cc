// Casts between element types, including strings.

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/ops/helpers.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// The largest finite value of an 8-bit float type; 0 for other types.
double max_finite(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
      return 448;
    case DType::kF8E4M3FNUZ:
      return 240;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return 57344;
    default:
      return 0;
  }
}

/// To powers of two; "up" and "down" round away from and towards zero.
Tensor to_power(const Tensor& x, const std::string& mode, bool saturate) {
  const Tensor single = ops::cast(x, DType::kF32);
  if (mode == "nearest") return ops::cast(single, DType::kF8E8M0);
  const Tensor bits = ops::view_dtype(single, DType::kI32);
  const Tensor kept = ops::bitwise_and(bits, int_scalar(0x7f800000, DType::kI32));
  const Tensor rest = ops::bitwise_and(bits, int_scalar(0x007fffff, DType::kI32));
  const Tensor down = ops::view_dtype(kept, DType::kF32);
  Tensor out = down;
  if (mode == "up") {
    const Tensor least = ops::maximum(down * 2.0, scalar(0x1p-126, DType::kF32));
    out = ops::where(ops::greater_than(rest, int_scalar(0, DType::kI32)), least, down);
  }
  if (saturate) out = ops::minimum(out, scalar(0x1p127, DType::kF32));
  return ops::cast(ops::where(ops::isfinite(single), out,
                              scalar(std::numeric_limits<double>::quiet_NaN(), DType::kF32)),
                   DType::kF8E8M0);
}

}  // namespace

Tensor convert(const Tensor& x, DType to, bool saturate, const std::string& mode) {
  if (x.dtype() == to) return x;
  if (to == DType::kF8E8M0) return to_power(x, mode, saturate);
  if (to == DType::kF4E2M1 && is_float(x.dtype()))  // no NaN in this type: becomes -0
    return ops::cast(ops::where(ops::isnan(x), scalar(-0.0, x.dtype()), x), to);
  const double limit = max_finite(to);
  if (limit == 0) return ops::cast(x, to);
  Tensor wide = x.dtype() == DType::kF64 ? x : ops::cast(x, DType::kF32);
  if (saturate) return ops::cast(ops::clip(wide, -limit, limit), to);
  if (to == DType::kF8E4M3FN)  // values that would round beyond the largest finite one become NaN
    wide = ops::where(ops::greater_than(ops::abs(wide), scalar(464, wide.dtype())),
                      scalar(std::numeric_limits<double>::quiet_NaN(), wide.dtype()), wide);
  return ops::cast(wide, to);
}

namespace {

double parse_number(const std::string& text) {
  std::string lower;
  for (const char ch : text) lower += static_cast<char>(std::tolower(ch));
  try {
    size_t used = 0;
    const double value = std::stod(lower, &used);
    if (used == text.size()) return value;
  } catch (const std::exception&) {
  }
  fail(ErrorCode::kModel, "the string '", text, "' is not a number");
}

Value from_strings(const StringArray& s, DType to) {
  Array out = Array::empty(DType::kF64, s.shape);
  for (size_t i = 0; i < s.items.size(); ++i) out.data<double>()[i] = parse_number(s.items[i]);
  return Value(ops::cast(Tensor(out), to));
}

std::string number_text(const Array& a, int64_t i) {
  if (is_integer(a.dtype) || is_bool(a.dtype)) return std::to_string(a.integer(i));
  const double value = a.number(i);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  return a.dtype == DType::kF64 ? format_double(value) : format_float(static_cast<float>(value));
}

Value to_strings(const Array& a) {
  std::vector<std::string> items;
  for (int64_t i = 0; i < a.size(); ++i) items.push_back(number_text(a, i));
  return Value::of_strings(a.shape, items);
}

Value cast_to(const NodeCall& c, DType to) {
  const Value& v = c.value(0);
  if (v.kind() == Value::Kind::kStrings)
    return to == DType::kString ? v : from_strings(v.strings(), to);
  if (to == DType::kString) return to_strings(c.constant_array(0));
  return convert(v.tensor(), to, c.bool_attr("saturate", true), c.string_attr("round_mode", "up"));
}

/// The first opsets name the type by a string.
Values cast(NodeCall& c) {
  const auto* to = c.find("to");
  c.check(to != nullptr, "the attribute 'to' is missing");
  if (to->kind == formats::onnx::AttributeKind::kString) {
    std::string name;
    for (const char ch : to->s) name += static_cast<char>(std::tolower(ch));
    const auto dtype = parse_dtype(name);
    c.check(dtype.has_value(), "the element type '", to->s, "' is not supported");
    return {cast_to(c, *dtype)};
  }
  return {cast_to(c, c.dtype_attr("to", DType::kF32))};
}

Values cast_like(NodeCall& c) { return {cast_to(c, c.value(1).dtype())}; }

Values bit_cast(NodeCall& c) {
  const DType to = c.dtype_attr("to", DType::kF32);
  const Tensor& x = c.tensor(0);
  c.check(info(x.dtype()).bits == info(to).bits, "the bits of ", text(x.dtype()), " and ", text(to),
          " differ in count");
  return {x.dtype() == to ? x : ops::view_dtype(x, to)};
}

}  // namespace

OperatorTable cast_operators() {
  static constexpr Operator operators[] = {
      {"Cast", 1, cast}, {"CastLike", 1, cast_like}, {"BitCast", 1, bit_cast}};
  return operators;
}

}  // namespace paddle::onnx
