// Arithmetic, comparisons and logic on elements.

#include "onnx/ops/helpers.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

/// Before opset 7, the second operand may be aligned to an axis of the first one.
Tensor second(const NodeCall& c) {
  const Tensor y = c.tensor(1);
  if (c.opset() >= 7 || !c.bool_attr("broadcast", false) || !c.has_attribute("axis")) return y;
  const int64_t rank = c.tensor(0).ndim(), axis = c.axis(c.int_attr("axis", 0), rank);
  Shape shape = y.shape();
  while (static_cast<int64_t>(shape.size()) < rank - axis) shape.push_back(1);
  return ops::reshape(y, shape);
}

template <Tensor (*F)(const Tensor&, const Tensor&)>
Values aligned(NodeCall& c) {
  c.check_same_dtype({0, 1});
  return {F(c.tensor(0), second(c))};
}

Values divide(NodeCall& c) {
  c.check_same_dtype({0, 1});
  const Tensor &x = c.tensor(0), y = second(c);
  if (is_integer(x.dtype())) return {ops::divide_rounded(x, y, "trunc")};
  return {x / y};
}

/// The result has the sign of the divisor, or (fmod) of the dividend.
Values mod(NodeCall& c) {
  c.check_same_dtype({0, 1});
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  const bool fmod = c.bool_attr("fmod", false);
  const Tensor zero = scalar(0, x.dtype());
  if (fmod && is_float(x.dtype())) {
    // For positive operands both definitions agree and are exact; otherwise `remainder` rounds
    // where the signs differ and is infinite for an infinite divisor.
    const Tensor rest = ops::remainder(ops::abs(x), ops::abs(y));
    return {ops::where(ops::less_than(x, zero), ops::neg(rest), rest)};
  }
  const Tensor rest = ops::remainder(x, y);
  if (!fmod) return {rest};
  const Tensor signs = ops::not_equal(ops::less_than(rest, zero), ops::less_than(x, zero));
  const Tensor moved = ops::logical_and(ops::not_equal(rest, zero), signs);
  return {ops::where(moved, rest - y, rest)};
}

/// The result has the dtype of the base.
Values power(NodeCall& c) {
  const Tensor &x = c.tensor(0), y = second(c);
  if (x.dtype() == y.dtype()) return {ops::pow(x, y)};
  if (is_float(x.dtype())) return {ops::pow(x, ops::cast(y, x.dtype()))};
  const Tensor wide = ops::pow(ops::cast(x, DType::kF64), ops::cast(y, DType::kF64));
  return {ops::cast(wide, x.dtype())};
}

template <Tensor (*F)(const Tensor&, const Tensor&)>
Values over_all(NodeCall& c) {
  Tensor out = c.tensor(0);
  for (size_t i = 1; i < c.input_count(); ++i) {
    c.check_same_dtype({0, i});
    out = F(out, c.tensor(i));
  }
  return {out};
}

Values mean(NodeCall& c) {
  const Values sum = over_all<ops::add>(c);
  return {sum[0].tensor() / static_cast<double>(c.input_count())};
}

Values bit_shift(NodeCall& c) {
  const std::string direction = c.string_attr("direction", "");
  c.check(direction == "LEFT" || direction == "RIGHT", "direction must be LEFT or RIGHT, not '",
          direction, "'");
  const bool arithmetic = info(c.tensor(0).dtype()).kind == DTypeKind::kSigned;
  return {direction == "LEFT" ? ops::bitwise_left_shift(c.tensor(0), c.tensor(1), arithmetic)
                              : ops::bitwise_right_shift(c.tensor(0), c.tensor(1), arithmetic)};
}

/// Bounds are attributes up to opset 10, inputs since; if they cross, the upper one wins.
Values clip(NodeCall& c) {
  Tensor x = c.tensor(0);
  const auto bound = [&](size_t i, const char* name) {
    if (c.opset() >= 11) return c.optional_tensor(i);
    return c.has_attribute(name) ? scalar(c.float_attr(name, 0), x.dtype()) : Tensor();
  };
  const Tensor low = bound(1, "min"), high = bound(2, "max");
  for (const Tensor& t : {low, high})
    c.check(!t || element_count(std::span<const Dim>(t.shape())).equals(1).value_or(true),
            "bounds must be scalars");
  const bool fixed = (!low || low.is_concrete()) && (!high || high.is_concrete());
  if (fixed && is_float(x.dtype())) {
    AttrValue least, most;
    if (low) least = low.array().number(0);
    if (high) most = high.array().number(0);
    if (!(low && high && low.array().number(0) > high.array().number(0)))
      return {ops::clip(x, least, most)};
  }
  if (low) x = ops::maximum(x, low);
  if (high) x = ops::minimum(x, high);
  return {x};
}

Values is_infinite(NodeCall& c) {
  const bool positive = c.bool_attr("detect_positive", true),
             negative = c.bool_attr("detect_negative", true);
  const Tensor& x = c.tensor(0);
  if (positive && negative) return {ops::isinf(x)};
  if (positive) return {ops::isposinf(x)};
  if (negative) return {ops::isneginf(x)};
  return {ops::full(x.shape(), false, DType::kBool)};
}

Tensor round_even(const Tensor& x) { return ops::round(x); }

Values same(NodeCall& c) { return {c.value(0)}; }

Values where(NodeCall& c) {
  c.check_same_dtype({1, 2});
  return {ops::where(c.tensor(0), c.tensor(1), c.tensor(2))};
}

}  // namespace

OperatorTable elementwise_operators() {
  static constexpr Operator operators[] = {
      {"Abs", 1, unary<ops::abs>},
      {"Neg", 1, unary<ops::neg>},
      {"Sign", 1, unary<ops::sign>},
      {"Ceil", 1, unary<ops::ceil>},
      {"Floor", 1, unary<ops::floor>},
      {"Round", 1, unary<round_even>},
      {"Sqrt", 1, unary<ops::sqrt>},
      {"Reciprocal", 1, unary<ops::reciprocal>},
      {"Exp", 1, unary<ops::exp>},
      {"Log", 1, unary<ops::log>},
      {"Erf", 1, unary<ops::erf>},
      {"Sin", 1, unary<ops::sin>},
      {"Cos", 1, unary<ops::cos>},
      {"Tan", 1, unary<ops::tan>},
      {"Asin", 1, unary<ops::asin>},
      {"Acos", 1, unary<ops::acos>},
      {"Atan", 1, unary<ops::atan>},
      {"Sinh", 1, unary<ops::sinh>},
      {"Cosh", 1, unary<ops::cosh>},
      {"Asinh", 1, unary<ops::asinh>},
      {"Acosh", 1, unary<ops::acosh>},
      {"Atanh", 1, unary<ops::atanh>},
      {"IsNaN", 1, unary<ops::isnan>},
      {"IsInf", 1, is_infinite},
      {"Not", 1, unary<ops::logical_not>},
      {"BitwiseNot", 1, unary<ops::bitwise_not>},
      {"Identity", 1, same},
      {"Add", 1, aligned<ops::add>},
      {"Sub", 1, aligned<ops::subtract>},
      {"Mul", 1, aligned<ops::multiply>},
      {"Div", 1, divide},
      {"Mod", 1, mod},
      {"Pow", 1, power},
      {"And", 1, aligned<ops::logical_and>},
      {"Or", 1, aligned<ops::logical_or>},
      {"Xor", 1, aligned<ops::logical_xor>},
      {"BitwiseAnd", 1, binary<ops::bitwise_and>},
      {"BitwiseOr", 1, binary<ops::bitwise_or>},
      {"BitwiseXor", 1, binary<ops::bitwise_xor>},
      {"BitShift", 1, bit_shift},
      {"Equal", 1, aligned<ops::equal>},
      {"Less", 1, aligned<ops::less_than>},
      {"Greater", 1, aligned<ops::greater_than>},
      {"LessOrEqual", 1, aligned<ops::less_equal>},
      {"GreaterOrEqual", 1, aligned<ops::greater_equal>},
      {"Where", 1, where},
      {"Sum", 1, over_all<ops::add>},
      {"Max", 1, over_all<ops::maximum>},
      {"Min", 1, over_all<ops::minimum>},
      {"Mean", 1, mean},
      {"Clip", 1, clip},
  };
  return operators;
}

}  // namespace paddle::onnx
