// Arithmetic, comparisons, logic and elementary functions.

#include <cmath>
#include <limits>
#include <numbers>

#include "onnx/export/graph_writer.h"

namespace paddle::onnx {
namespace {

using Writer = GraphWriter;

#define PADDLE_SAME(name, type) \
  void name(Writer& w) { w.emit(type, {w.in("x")}); }
PADDLE_SAME(exp, "Exp")
PADDLE_SAME(log, "Log")
PADDLE_SAME(sqrt, "Sqrt")
PADDLE_SAME(reciprocal, "Reciprocal")
PADDLE_SAME(abs, "Abs")
PADDLE_SAME(sign, "Sign")
PADDLE_SAME(sin, "Sin")
PADDLE_SAME(cos, "Cos")
PADDLE_SAME(tan, "Tan")
PADDLE_SAME(asin, "Asin")
PADDLE_SAME(acos, "Acos")
PADDLE_SAME(atan, "Atan")
PADDLE_SAME(sinh, "Sinh")
PADDLE_SAME(cosh, "Cosh")
PADDLE_SAME(tanh, "Tanh")
PADDLE_SAME(asinh, "Asinh")
PADDLE_SAME(acosh, "Acosh")
PADDLE_SAME(atanh, "Atanh")
PADDLE_SAME(erf, "Erf")
PADDLE_SAME(identity, "Identity")
#undef PADDLE_SAME

std::string zero_of(Writer& w) { return w.scalar(0, w.type("x").dtype); }

void neg(Writer& w) {
  const DTypeKind kind = info(w.type("x").dtype).kind;
  if (kind == DTypeKind::kUnsigned) return w.emit("Sub", {zero_of(w), w.in("x")});
  w.emit("Neg", {w.in("x")});
}

/// Integers are their own floor, ceiling and so on.
bool passes_integers(Writer& w, const char* operand = "x") {
  if (is_float(w.type(operand).dtype)) return false;
  w.emit("Identity", {w.in(operand)});
  return true;
}

void floor(Writer& w) {
  if (!passes_integers(w)) w.emit("Floor", {w.in("x")});
}
void ceil(Writer& w) {
  if (!passes_integers(w)) w.emit("Ceil", {w.in("x")});
}
void round(Writer& w) {
  const int64_t decimals = w.attr("decimals").as_int();
  if (passes_integers(w)) return;
  if (decimals == 0) return w.emit("Round", {w.in("x")});
  const std::string factor =
      w.scalar(std::pow(10.0, static_cast<double>(decimals)), w.type("x").dtype);
  w.emit("Div", {w.add("Round", {w.add("Mul", {w.in("x"), factor})}), factor});
}

std::string truncated(Writer& w, const std::string& x) {
  return w.add("Mul", {w.add("Sign", {x}), w.add("Floor", {w.add("Abs", {x})})});
}
void trunc(Writer& w) {
  if (!passes_integers(w, "input")) w.result(0, truncated(w, w.in("input")));
}
void frac(Writer& w) {
  if (!is_float(w.type("x").dtype)) return w.emit("Sub", {w.in("x"), w.in("x")});
  w.emit("Sub", {w.in("x"), truncated(w, w.in("x"))});
}

void rsqrt(Writer& w) { w.emit("Reciprocal", {w.add("Sqrt", {w.in("x")})}); }
void square(Writer& w) { w.emit("Mul", {w.in("x"), w.in("x")}); }

void log_of_base(Writer& w, double base) {
  w.emit("Mul", {w.add("Log", {w.in("x")}), w.scalar(1 / std::log(base), w.type("x").dtype)});
}
void log2(Writer& w) { log_of_base(w, 2); }
void log10(Writer& w) { log_of_base(w, 10); }

/// expm1 = 2t / (1 - t) with t = tanh(x / 2) near 0, where exp(x) - 1 would cancel.
void expm1(Writer& w) {
  const DType dtype = w.type("x").dtype;
  const std::string x = w.in("x"), one = w.scalar(1, dtype);
  const std::string t = w.add("Tanh", {w.add("Mul", {x, w.scalar(0.5, dtype)})});
  const std::string near = w.add("Div", {w.add("Add", {t, t}), w.add("Sub", {one, t})});
  const std::string far = w.add("Sub", {w.add("Exp", {x}), one});
  w.emit("Where", {w.add("Less", {w.add("Abs", {x}), one}), near, far});
}

/// log1p = log(u) x / (u - 1) with u = 1 + x, which corrects the rounding of u.
std::string log1p_of(Writer& w, const std::string& x, DType dtype) {
  const std::string one = w.scalar(1, dtype);
  const std::string u = w.add("Add", {x, one}), shifted = w.add("Sub", {u, one});
  const std::string corrected = w.add("Div", {w.add("Mul", {w.add("Log", {u}), x}), shifted});
  const std::string infinite = w.add("IsInf", {x});
  const std::string plain = w.add("Or", {w.add("Equal", {shifted, w.scalar(0, dtype)}), infinite});
  return w.add("Where", {plain, x, corrected});
}
void log1p(Writer& w) { w.result(0, log1p_of(w, w.in("x"), w.type("x").dtype)); }

// --- two operands ---

void arithmetic(Writer& w, const char* type, const char* of_bools) {
  w.emit(is_bool(w.result_type().dtype) ? of_bools : type, {w.in("x"), w.in("y")});
}
/// A product of matrices plus a row is one Gemm, as it was in the file that it may come from.
bool write_gemm(Writer& w, const char* product_operand, const char* row_operand) {
  const ir::Value* const product = w.operand(product_operand);
  const ir::Value* const row = w.operand(row_operand);
  const Shape& shape = product->type.shape;
  if (!product->producer || product->producer->op->name() != "matmul" || shape.size() != 2 ||
      w.count_uses(*product) != 1 || !is_float(product->type.dtype) ||
      row->type.dtype != product->type.dtype || row->type.shape.size() != 1 ||
      !same_shape(row->type.shape, {shape[1]}))
    return false;
  const ir::Operation& made_by = *product->producer;
  if (made_by.operands[0]->type.shape.size() != 2 || made_by.operands[1]->type.shape.size() != 2)
    return false;
  ExportAttributes attributes;
  for (const auto& [flag, name] : {std::pair{"transpose_x", "transA"}, {"transpose_y", "transB"}})
    if (made_by.attrs[static_cast<size_t>(made_by.op->attr_index(flag))].as_bool())
      attributes.push_back(int_attribute(name, 1));
  w.emit("Gemm",
         {w.name_of(*made_by.operands[0]), w.name_of(*made_by.operands[1]), w.name_of(*row)},
         std::move(attributes));
  return true;
}

void add(Writer& w) {
  if (!write_gemm(w, "x", "y") && !write_gemm(w, "y", "x")) arithmetic(w, "Add", "Or");
}
void subtract(Writer& w) { arithmetic(w, "Sub", "Xor"); }
void multiply(Writer& w) { arithmetic(w, "Mul", "And"); }
void divide(Writer& w) { w.emit("Div", {w.in("x"), w.in("y")}); }
void maximum(Writer& w) { arithmetic(w, "Max", "Or"); }
void minimum(Writer& w) { arithmetic(w, "Min", "And"); }
void pow(Writer& w) { w.emit("Pow", {w.in("x"), w.in("y")}); }

/// Whether a remainder of truncating division has to move towards the sign of the divisor.
std::string needs_correction(Writer& w, const std::string& remainder, const std::string& y,
                             DType dtype) {
  const std::string zero = w.scalar(0, dtype);
  const std::string differs =
      w.add("Xor", {w.add("Less", {remainder, zero}), w.add("Less", {y, zero})});
  return w.add("And", {w.add("Not", {w.add("Equal", {remainder, zero})}), differs});
}

std::string floor_quotient(Writer& w, const std::string& x, const std::string& y, DType dtype) {
  const std::string quotient = w.add("Div", {x, y});
  if (info(dtype).kind == DTypeKind::kUnsigned) return quotient;
  // Div of integers truncates.
  const std::string remainder = w.add("Sub", {x, w.add("Mul", {quotient, y})});
  return w.add("Where", {needs_correction(w, remainder, y, dtype),
                         w.add("Sub", {quotient, w.scalar(1, dtype)}), quotient});
}

void floor_divide(Writer& w) {
  const DType dtype = w.result_type().dtype;
  if (is_float(dtype)) return w.emit("Floor", {w.add("Div", {w.in("x"), w.in("y")})});
  w.result(0, floor_quotient(w, w.in("x"), w.in("y"), dtype));
}

void remainder(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const std::string x = w.in("x"), y = w.in("y");
  if (!is_float(dtype)) return w.emit("Mod", {x, y});
  const std::string rest = w.add("Mod", {x, y}, {int_attribute("fmod", 1)});
  w.emit("Where", {needs_correction(w, rest, y, dtype), w.add("Add", {rest, y}), rest});
}

void ignoring_nan(Writer& w, const char* type) {
  const std::string x = w.in("x"), y = w.in("y"), both = w.add(type, {x, y});
  if (!is_float(w.result_type().dtype)) return w.result(0, both);
  const std::string rest = w.add("Where", {w.add("IsNaN", {y}), x, both});
  w.emit("Where", {w.add("IsNaN", {x}), y, rest});
}
void fmax(Writer& w) { ignoring_nan(w, "Max"); }
void fmin(Writer& w) { ignoring_nan(w, "Min"); }

std::string sign_bit(Writer& w, const std::string& x, DType dtype);

/// The operands are (y, x): the arc tangent of their quotient, moved to the half plane of x.
void atan2(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const std::string zero = w.scalar(0, dtype);
  std::string y = w.in("x"), x = w.in("y");
  // The quotient of two infinities is that of their signs.
  const std::string infinite = w.add("And", {w.add("IsInf", {x}), w.add("IsInf", {y})});
  y = w.add("Where", {infinite, w.add("Sign", {y}), y});
  x = w.add("Where", {infinite, w.add("Sign", {x}), x});
  const std::string origin = w.add("And", {w.add("Equal", {x, zero}), w.add("Equal", {y, zero})});
  const std::string angle = w.add("Where", {origin, y, w.add("Atan", {w.add("Div", {y, x})})});
  const std::string turn =
      w.add("Where", {sign_bit(w, y, dtype), w.scalar(-std::numbers::pi, dtype),
                      w.scalar(std::numbers::pi, dtype)});
  w.emit("Where", {sign_bit(w, x, dtype), w.add("Add", {angle, turn}), angle});
}

void hypot(Writer& w) {
  const std::string x = w.in("x"), y = w.in("y");
  w.emit("Sqrt", {w.add("Add", {w.add("Mul", {x, x}), w.add("Mul", {y, y})})});
}

void logaddexp(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const std::string x = w.in("x"), y = w.in("y");
  const std::string distance = w.add("Neg", {w.add("Abs", {w.add("Sub", {x, y})})});
  const std::string general =
      w.add("Add", {w.add("Max", {x, y}), log1p_of(w, w.add("Exp", {distance}), dtype)});
  // The difference of equal infinities is NaN.
  w.emit("Where",
         {w.add("Equal", {x, y}), w.add("Add", {x, w.scalar(std::numbers::ln2, dtype)}), general});
}

std::string sign_bit(Writer& w, const std::string& x, DType dtype) {
  const std::string zero = w.scalar(0, dtype), negative = w.add("Less", {x, zero});
  if (!is_float(dtype)) return negative;
  // 1 / -0 is negative, too.
  return w.add("Or", {negative, w.add("Less", {w.add("Reciprocal", {x}), zero})});
}
void signbit(Writer& w) {
  const DType dtype = w.type("x").dtype;
  if (is_bool(dtype) || info(dtype).kind == DTypeKind::kUnsigned)
    return w.emit("Less", {w.cast(w.in("x"), dtype, DType::kI64), w.scalar(0, DType::kI64)});
  w.result(0, sign_bit(w, w.in("x"), dtype));
}
void copysign(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const std::string size = w.add("Abs", {w.in("x")});
  w.emit("Where", {sign_bit(w, w.in("y"), dtype), w.add("Neg", {size}), size});
}

void heaviside(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const std::string x = w.in("x"), zero = w.scalar(0, dtype);
  const std::string rest = w.add("Where", {w.add("Greater", {x, zero}), w.scalar(1, dtype), x});
  const std::string at_zero = w.add("Where", {w.add("Equal", {x, zero}), w.in("y"), rest});
  w.emit("Where", {w.add("Less", {x, zero}), zero, at_zero});
}

// --- comparisons and logic ---

void compare(Writer& w, const char* type, bool negate = false) {
  const DType dtype = w.type("x").dtype;
  const bool orders = std::string_view(type) != "Equal";
  const auto number = [&](const char* operand) {
    return orders && is_bool(dtype) ? w.cast(w.in(operand), dtype, DType::kI32) : w.in(operand);
  };
  const std::string x = number("x"), y = number("y");
  if (negate) return w.emit("Not", {w.add(type, {x, y})});
  w.emit(type, {x, y});
}
void equal(Writer& w) { compare(w, "Equal"); }
void not_equal(Writer& w) { compare(w, "Equal", true); }
void less_than(Writer& w) { compare(w, "Less"); }
void less_equal(Writer& w) { compare(w, "LessOrEqual"); }
void greater_than(Writer& w) { compare(w, "Greater"); }
void greater_equal(Writer& w) { compare(w, "GreaterOrEqual"); }

std::string truth(Writer& w, const char* operand) {
  return w.cast(w.in(operand), w.type(operand).dtype, DType::kBool);
}
void logical_and(Writer& w) { w.emit("And", {truth(w, "x"), truth(w, "y")}); }
void logical_or(Writer& w) { w.emit("Or", {truth(w, "x"), truth(w, "y")}); }
void logical_xor(Writer& w) { w.emit("Xor", {truth(w, "x"), truth(w, "y")}); }
void logical_not(Writer& w) { w.emit("Not", {truth(w, "x")}); }

/// A predicate that only floats can meet.
void float_predicate(Writer& w, const char* type, ExportAttributes attributes = {}) {
  if (is_float(w.type("x").dtype)) return w.emit(type, {w.in("x")}, std::move(attributes));
  const std::string x =
      is_bool(w.type("x").dtype) ? w.cast(w.in("x"), DType::kBool, DType::kI32) : w.in("x");
  w.emit("Not", {w.add("Equal", {x, x})});
}
void isnan(Writer& w) { float_predicate(w, "IsNaN"); }
void isinf(Writer& w) { float_predicate(w, "IsInf"); }
void isposinf(Writer& w) { float_predicate(w, "IsInf", {int_attribute("detect_negative", 0)}); }
void isneginf(Writer& w) { float_predicate(w, "IsInf", {int_attribute("detect_positive", 0)}); }
void isfinite(Writer& w) {
  if (!is_float(w.type("x").dtype)) {
    const std::string x =
        is_bool(w.type("x").dtype) ? w.cast(w.in("x"), DType::kBool, DType::kI32) : w.in("x");
    return w.emit("Equal", {x, x});
  }
  w.emit("Not", {w.add("Or", {w.add("IsNaN", {w.in("x")}), w.add("IsInf", {w.in("x")})})});
}

void bitwise(Writer& w, const char* of_bools, const char* type) {
  Names inputs = {w.in("x")};
  if (w.op().operands().size() > 1) inputs.push_back(w.in("y"));
  if (is_bool(w.type("x").dtype)) return w.emit(of_bools, inputs);
  w.require_opset(18, type);
  w.emit(type, inputs);
}
void bitwise_and(Writer& w) { bitwise(w, "And", "BitwiseAnd"); }
void bitwise_or(Writer& w) { bitwise(w, "Or", "BitwiseOr"); }
void bitwise_xor(Writer& w) { bitwise(w, "Xor", "BitwiseXor"); }
void bitwise_not(Writer& w) { bitwise(w, "Not", "BitwiseNot"); }

/// BitShift takes unsigned integers; others are multiplied or divided by a power of two.
void shift(Writer& w, bool left) {
  const DType dtype = w.result_type().dtype;
  if (info(dtype).kind == DTypeKind::kUnsigned)
    return w.emit("BitShift", {w.in("x"), w.in("y")},
                  {string_attribute("direction", left ? "LEFT" : "RIGHT")});
  if (!w.attr("is_arithmetic").as_bool()) w.reject("logical shifts of signed integers");
  const std::string x = w.cast(w.in("x"), dtype, DType::kI64);
  const std::string power =
      w.add("Pow", {w.scalar(2, DType::kI64), w.cast(w.in("y"), dtype, DType::kI64)});
  const std::string out =
      left ? w.add("Mul", {x, power}) : floor_quotient(w, x, power, DType::kI64);
  w.result(0, w.cast(out, DType::kI64, dtype));
}
void left_shift(Writer& w) { shift(w, true); }
void right_shift(Writer& w) { shift(w, false); }

// --- selection and conversion ---

void where(Writer& w) {
  const std::string condition = w.cast(w.in("condition"), w.type("condition").dtype, DType::kBool);
  w.emit("Where", {condition, w.in("x"), w.in("y")});
}

void cast(Writer& w) {
  const DType to = w.attr("dtype").as_dtype();
  if (w.is_stored_as(*w.operand("x"), to)) return w.result(0, w.in("x"));
  w.emit("Cast", {w.in("x")}, {int_attribute("to", formats::onnx::number_of_dtype(to))});
}

void scale(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const std::string factor = w.scalar(w.attr("scale").as_double(), dtype);
  const double bias = w.attr("bias").as_double();
  const std::string x = w.cast(w.in("x"), w.type("x").dtype, dtype);
  if (bias == 0) return w.emit("Mul", {x, factor});
  if (w.attr("bias_after_scale").as_bool())
    return w.emit("Add", {w.add("Mul", {x, factor}), w.scalar(bias, dtype)});
  w.emit("Mul", {w.add("Add", {x, w.scalar(bias, dtype)}), factor});
}

void clip(Writer& w) {
  const DType dtype = w.result_type().dtype;
  const auto bound = [&](const char* name) {
    return w.has_attr(name) ? w.scalar(w.attr(name).as_double(), dtype) : std::string();
  };
  const std::string low = bound("min"), high = bound("max");
  const std::string x = w.cast(w.in("x"), w.type("x").dtype, dtype);
  if (low.empty() && high.empty()) return w.emit("Identity", {x});
  w.emit("Clip", {x, low, high});
}

}  // namespace

std::vector<ExportRuleEntry> elementwise_export_rules() {
  return {{"exp", exp},
          {"log", log},
          {"sqrt", sqrt},
          {"reciprocal", reciprocal},
          {"abs", abs},
          {"sign", sign},
          {"sin", sin},
          {"cos", cos},
          {"tan", tan},
          {"asin", asin},
          {"acos", acos},
          {"atan", atan},
          {"sinh", sinh},
          {"cosh", cosh},
          {"tanh", tanh},
          {"asinh", asinh},
          {"acosh", acosh},
          {"atanh", atanh},
          {"erf", erf},
          {"assign", identity},
          {"conj", identity},  // of real numbers; complex ones are rejected before
          {"detach", identity},
          {"neg", neg},
          {"floor", floor},
          {"ceil", ceil},
          {"round", round},
          {"trunc", trunc},
          {"frac", frac},
          {"rsqrt", rsqrt},
          {"square", square},
          {"log2", log2},
          {"log10", log10},
          {"expm1", expm1},
          {"log1p", log1p},
          {"add", add},
          {"subtract", subtract},
          {"multiply", multiply},
          {"divide", divide},
          {"maximum", maximum},
          {"minimum", minimum},
          {"pow", pow},
          {"floor_divide", floor_divide},
          {"remainder", remainder},
          {"fmax", fmax},
          {"fmin", fmin},
          {"atan2", atan2},
          {"hypot", hypot},
          {"logaddexp", logaddexp},
          {"signbit", signbit},
          {"copysign", copysign},
          {"heaviside", heaviside},
          {"equal", equal},
          {"not_equal", not_equal},
          {"less_than", less_than},
          {"less_equal", less_equal},
          {"greater_than", greater_than},
          {"greater_equal", greater_equal},
          {"logical_and", logical_and},
          {"logical_or", logical_or},
          {"logical_xor", logical_xor},
          {"logical_not", logical_not},
          {"isnan", isnan},
          {"isinf", isinf},
          {"isposinf", isposinf},
          {"isneginf", isneginf},
          {"isfinite", isfinite},
          {"bitwise_and", bitwise_and},
          {"bitwise_or", bitwise_or},
          {"bitwise_xor", bitwise_xor},
          {"bitwise_not", bitwise_not},
          {"bitwise_left_shift", left_shift},
          {"bitwise_right_shift", right_shift},
          {"where", where},
          {"cast", cast},
          {"scale", scale},
          {"clip", clip}};
}

}  // namespace paddle::onnx
