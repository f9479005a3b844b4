// Elementwise operations, comparisons, reductions and products.

#include <cmath>
#include <numbers>

#include "onnx/paddle/program_importer.h"

namespace paddle::onnx {
namespace {

using Importer = ProgramImporter;

/// An operator of the same meaning. Of integers some functions are floats, as the declared type
/// says.
ImportRule unary(const char* type) {
  return [type](Importer& p) {
    std::string x = p.in("X", 0);
    const auto given = p.type("X", 0).dtype, made = p.result_type("Out", 0).dtype;
    if (given && made && *given != *made && !is_float(*given)) x = p.cast(x, *made);
    p.result("Out", 0, p.add(type, {x}));
  };
}

/// Integers are their own floor and ceiling.
ImportRule rounding(const char* type) {
  return [type](Importer& p) {
    p.result("Out", 0, p.add(is_float(p.dtype("X", 0)) ? type : "Identity", {p.in("X", 0)}));
  };
}

/// The sum of a list. The operator Sum takes floats only.
void sum_of_list(Importer& p) {
  const ImportNames all = p.in_list("X", 0);
  const auto dtype = p.result_type("Out", 0).dtype;
  if (all.empty()) p.reject("expected at least one operand");
  if (!dtype || is_float(*dtype)) return p.result("Out", 0, p.add("Sum", all));
  std::string out = all[0];
  for (size_t i = 1; i < all.size(); ++i) out = p.add("Add", {out, all[i]});
  p.result("Out", 0, all.size() == 1 ? p.add("Identity", {out}) : out);
}

/// The operands of an elementwise operation; y may begin at an axis of x.
ImportNames pair(Importer& p) {
  const std::string x = p.in("X", 0);
  std::string y = p.in("Y", 1);
  const int64_t axis = p.integer({"axis"}, -1), rank_x = p.rank("X", 0), rank_y = p.rank("Y", 1);
  if (axis >= 0 && !p.is_pir() && axis + rank_y < rank_x) {
    std::vector<int64_t> axes;
    for (int64_t i = rank_y; i < rank_x - axis; ++i) axes.push_back(i);
    y = p.add("Unsqueeze", {y, p.constant_ints(axes)});
  }
  return {x, y};
}

ImportRule binary(const char* type) {
  return [type](Importer& p) { p.result("Out", 0, p.add(type, pair(p))); };
}

/// Operands of other types are true where they are not 0.
ImportRule logical(const char* type) {
  return [type](Importer& p) {
    ImportNames operands = pair(p);
    if (p.dtype("X", 0) != DType::kBool) operands[0] = p.cast(operands[0], DType::kBool);
    if (p.dtype("Y", 1) != DType::kBool) operands[1] = p.cast(operands[1], DType::kBool);
    p.result("Out", 0, p.add(type, operands));
  };
}

void logical_not(Importer& p) {
  const std::string x = p.in("X", 0);
  p.result("Out", 0, p.add("Not", {p.dtype("X", 0) == DType::kBool ? x : p.cast(x, DType::kBool)}));
}

void not_equal(Importer& p) { p.result("Out", 0, p.add("Not", {p.add("Equal", pair(p))})); }

/// Of integers a quotient is a float.
void divide(Importer& p) {
  ImportNames operands = pair(p);
  if (is_integer(p.dtype("X", 0)) && p.is_pir())
    for (std::string& name : operands) name = p.cast(name, DType::kF32);
  p.result("Out", 0, p.add("Div", operands));
}

/// Rounds down, also below 0.
void floor_divide(Importer& p) {
  const ImportNames operands = pair(p);
  const DType dtype = p.dtype("X", 0);
  if (!is_integer(dtype)) return p.result("Out", 0, p.add("Floor", {p.add("Div", operands)}));
  // The remainder has the sign of the divisor, so that the division leaves nothing.
  const std::string multiple = p.add("Sub", {operands[0], p.add("Mod", operands)});
  p.result("Out", 0, p.add("Div", {multiple, operands[1]}));
}

/// The remainder has the sign of the divisor.
void remainder(Importer& p) {
  const ImportNames operands = pair(p);
  if (is_integer(p.dtype("X", 0))) return p.result("Out", 0, p.add("Mod", operands));
  const std::string quotient = p.add("Floor", {p.add("Div", operands)});
  p.result("Out", 0, p.add("Sub", {operands[0], p.add("Mul", {quotient, operands[1]})}));
}

void scale(Importer& p) {
  const DType dtype = p.dtype("X", 0);
  const std::string given = p.in("ScaleTensor", 1);
  const std::string factor =
      given.empty() ? p.scalar(p.real({"scale"}, 1), dtype) : p.cast(given, dtype);
  const std::string bias = p.scalar(p.real({"bias"}, 0), dtype);
  const bool last = p.flag({"bias_after_scale"}, true);
  // A factor of [1] must not add an axis to a 0-D value.
  const std::string factor_0d =
      given.empty() ? factor : p.add("Reshape", {factor, p.constant_ints({})});
  const std::string x = p.in("X", 0);
  p.result("Out", 0,
           last ? p.add("Add", {p.add("Mul", {x, factor_0d}), bias})
                : p.add("Mul", {p.add("Add", {x, bias}), factor_0d}));
}

void power(Importer& p) {
  const double exponent = p.known_number("FactorTensor", 1, {"factor", "y"}, 1);
  p.result("Out", 0, p.add("Pow", {p.in("X", 0), p.scalar(exponent, p.dtype("X", 0))}));
}

void square(Importer& p) { p.result("Out", 0, p.add("Mul", {p.in("X", 0), p.in("X", 0)})); }

void rsqrt(Importer& p) {
  p.result("Out", 0, p.add("Reciprocal", {p.add("Sqrt", {p.in("X", 0)})}));
}

void clip_between(Importer& p, double low, double high) {
  const DType dtype = p.dtype("X", 0);
  p.result("Out", 0, p.add("Clip", {p.in("X", 0), p.scalar(low, dtype), p.scalar(high, dtype)}));
}

void relu6(Importer& p) { clip_between(p, 0, p.real({"threshold"}, 6)); }

void clip(Importer& p) {
  const DType dtype = p.dtype("X", 0);
  const auto bound = [&](const char* slot, size_t position, const char* key) {
    const std::string given = p.in(slot, position);
    if (given.empty()) return p.scalar(p.real({key}, 0), dtype);
    return p.add("Reshape", {p.cast(given, dtype), p.constant_ints({})});
  };
  p.result("Out", 0, p.add("Clip", {p.in("X", 0), bound("Min", 1, "min"), bound("Max", 2, "max")}));
}

void leaky_relu(Importer& p) {
  p.result("Out", 0,
           p.add("LeakyRelu", {p.in("X", 0)},
                 {float_attribute("alpha", p.real({"alpha", "negative_slope"}, 0.02))}));
}

void elu(Importer& p) {
  p.result("Out", 0,
           p.add("Elu", {p.in("X", 0)}, {float_attribute("alpha", p.real({"alpha"}, 1))}));
}

void hard_sigmoid_of(Importer& p, double slope, double offset) {
  p.result("Out", 0,
           p.add("HardSigmoid", {p.in("X", 0)},
                 {float_attribute("alpha", slope), float_attribute("beta", offset)}));
}

void hard_sigmoid(Importer& p) {
  hard_sigmoid_of(p, p.real({"slope"}, 0.2), p.real({"offset"}, 0.5));
}

void hard_swish(Importer& p) {
  const double scale = p.real({"scale"}, 6), offset = p.real({"offset"}, 3);
  if (p.real({"threshold"}, 6) != scale) p.reject("threshold and scale differ");
  const std::string x = p.in("X", 0);
  p.result("Out", 0,
           p.add("Mul", {x, p.add("HardSigmoid", {x},
                                  {float_attribute("alpha", 1 / scale),
                                   float_attribute("beta", offset / scale)})}));
}

void swish(Importer& p) {
  const std::string x = p.in("X", 0);
  const double beta = p.real({"beta"}, 1);
  const std::string inner = beta == 1 ? x : p.add("Mul", {x, p.scalar(beta, p.dtype("X", 0))});
  p.result("Out", 0, p.add("Mul", {x, p.add("Sigmoid", {inner})}));
}

void mish(Importer& p) {
  const std::string x = p.in("X", 0);
  p.result("Out", 0, p.add("Mul", {x, p.add("Tanh", {p.add("Softplus", {x})})}));
}

/// log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold.
void softplus(Importer& p) {
  const double beta = p.real({"beta"}, 1), threshold = p.real({"threshold"}, 20);
  const DType dtype = p.dtype("X", 0);
  const std::string x = p.in("X", 0);
  const std::string inner = beta == 1 ? x : p.add("Mul", {x, p.scalar(beta, dtype)});
  std::string out = p.add("Softplus", {inner});
  if (beta != 1) out = p.add("Div", {out, p.scalar(beta, dtype)});
  // Above 20 both are the same number in float32.
  if (threshold < 20 || dtype == DType::kF64)
    out = p.add("Where", {p.add("Greater", {inner, p.scalar(threshold, dtype)}), x, out});
  p.result("Out", 0, out);
}

void gelu(Importer& p) {
  const std::string x = p.in("X", 0);
  const DType dtype = p.dtype("X", 0);
  const auto number = [&](double value) { return p.scalar(value, dtype); };
  std::string inner;
  if (p.flag({"approximate"}, false)) {
    const std::string cube = p.add("Mul", {p.add("Mul", {x, x}), x});
    const std::string sum = p.add("Add", {x, p.add("Mul", {cube, number(0.044715)})});
    inner = p.add("Tanh", {p.add("Mul", {sum, number(std::sqrt(2 / std::numbers::pi))})});
  } else {
    inner = p.add("Erf", {p.add("Mul", {x, number(1 / std::numbers::sqrt2)})});
  }
  const std::string share = p.add("Mul", {p.add("Add", {inner, number(1)}), number(0.5)});
  p.result("Out", 0, p.add("Mul", {x, share}));
}

/// A value without axes counts as [1].
ImportRule softmax_by(const char* type) {
  return [type](Importer& p) {
    const bool scalar = p.rank("X", 0) == 0;
    const std::string x = p.in("X", 0);
    const std::string out = p.add(type, {scalar ? p.add("Reshape", {x, p.constant_ints({1})}) : x},
                                  {int_attribute("axis", scalar ? 0 : p.integer({"axis"}, -1))});
    p.result("Out", 0, scalar ? p.without_axes(out) : out);
  };
}

void reduce_by(Importer& p, const std::string& type) {
  auto axes = p.known_ints("AxisTensor", 1, {"dim", "axis"});
  if (!axes) p.reject("its axes are only known when the program runs");
  if (p.flag({"reduce_all"}, false)) axes->clear();
  ImportAttributes attributes = {
      int_attribute("keepdims", p.flag({"keep_dim", "keepdim"}, false) ? 1 : 0)};
  ImportNames inputs = {p.in("X", 0)};
  auto dtype =
      p.integer({"out_dtype"}, 0) >= 0 ? p.dtype_attr({"out_dtype", "dtype"}) : std::nullopt;
  // Sums and products of small integers and truth values are int64; the declared type says so.
  if (!dtype && type != "ReduceMean") dtype = p.result_type("Out", 0).dtype;
  if (dtype && *dtype != p.dtype("X", 0)) inputs[0] = p.cast(inputs[0], *dtype);
  // Axes 0 and -1 of a value without axes stand for none.
  if (p.rank("X", 0) == 0) return p.result("Out", 0, p.add("Identity", inputs));
  // ReduceSum has its axes as an operand since opset 13, the others since 18.
  if (!axes->empty() && (type == "ReduceSum" || p.opset() >= 18))
    inputs.push_back(p.constant_ints(*axes));
  else if (!axes->empty())
    attributes.push_back(ints_attribute("axes", *axes));
  p.result("Out", 0, p.add(type, inputs, std::move(attributes)));
}

ImportRule reduce(const char* type) {
  return [type](Importer& p) { reduce_by(p, type); };
}

/// The mean of all elements.
void mean_of_all(Importer& p) {
  p.result("Out", 0, p.add("ReduceMean", {p.in("X", 0)}, {int_attribute("keepdims", 0)}));
}

void index_of(Importer& p, const char* type) {
  const bool flat = p.flag({"flatten"}, false);
  const auto axis = static_cast<int64_t>(p.known_number("Axis", 1, {"axis"}, -1));
  const bool keeps = p.flag({"keepdims"}, false);
  if (flat && keeps) p.reject("flatten with keepdims");
  const bool scalar = p.rank("X", 0) == 0;
  const std::string x =
      flat || scalar ? p.add("Reshape", {p.in("X", 0), p.constant_ints({-1})}) : p.in("X", 0);
  const std::string index = p.add(type, {x},
                                  {int_attribute("axis", flat || scalar ? 0 : axis),
                                   int_attribute("keepdims", keeps && !scalar)});
  const DType wanted = p.dtype_attr({"dtype"}).value_or(DType::kI64);
  p.result("Out", 0, wanted == DType::kI64 ? index : p.cast(index, wanted));
}

ImportRule arg_extreme(const char* type) {
  return [type](Importer& p) { index_of(p, type); };
}

void top_k(Importer& p) {
  std::string k = p.in("K", 1);
  k = k.empty() ? p.constant_ints({p.integer({"k"}, 1)})
                : p.add("Reshape", {p.cast(k, DType::kI64), p.constant_ints({1})});
  const ImportNames out = p.add_several("TopK", {p.in("X", 0), k}, 2,
                                        {int_attribute("axis", p.integer({"axis"}, -1)),
                                         int_attribute("largest", p.flag({"largest"}, true)),
                                         int_attribute("sorted", p.flag({"sorted"}, true))});
  p.result("Out", 0, out[0]);
  p.result("Indices", 1, out[1]);
}

void matrix_product(Importer& p) {
  std::string x = p.in("X", 0), y = p.in("Y", 1);
  if (p.flag({"trans_x", "transpose_x", "transpose_X"}, false)) x = p.transposed(x, p.rank("X", 0));
  if (p.flag({"trans_y", "transpose_y", "transpose_Y"}, false)) y = p.transposed(y, p.rank("Y", 1));
  std::string out = p.add("MatMul", {x, y});
  if (const double alpha = p.real({"alpha"}, 1); alpha != 1)
    out = p.add("Mul", {out, p.scalar(alpha, p.dtype("X", 0))});
  p.result("Out", 0, out);
}

/// How quantize_linear and dequantize_linear count: an integer i of -limit - 1 to limit stands for
/// i · step, where step is Scale / limit.
struct Quantization {
  double limit = 127;
  std::string step;
  int64_t axis = -1, rank = 0;

  ImportAttributes axis_attribute() const {
    return axis < 0 ? ImportAttributes{} : ImportAttributes{int_attribute("axis", axis)};
  }
  /// The step, in the shape that aligns with the operand.
  std::string aligned_step(Importer& p) const {
    std::vector<int64_t> axes;
    for (int64_t i = axis + 1; axis >= 0 && i < rank; ++i) axes.push_back(i - axis);
    return axes.empty() ? step : p.add("Unsqueeze", {step, p.constant_ints(axes)});
  }
};

Quantization quantization_of(Importer& p) {
  Quantization out;
  const int64_t bits = p.integer({"bit_length"}, 8);
  if (bits < 2 || bits > 16) p.reject("expected a bit_length of 2 to 16");
  out.limit = static_cast<double>((int64_t{1} << (bits - 1)) - 1);
  out.axis = p.integer({"quant_axis"}, 0);
  out.rank = p.rank("X", 0);
  if (out.axis >= out.rank) p.reject("its axis is out of range");
  const auto scale = p.known_value("Scale", 1);
  if (!scale) p.reject("its scale is only known when the program runs");
  if (out.axis < 0 && scale->size() != 1) p.reject("expected one scale");
  std::vector<double> steps;
  for (int64_t i = 0; i < scale->size(); ++i) steps.push_back(scale->number(i) / out.limit);
  const Dims shape = out.axis < 0 ? Dims{} : Dims{scale->size()};
  out.step = p.constant(Array::from<double>(steps, shape).cast(scale->dtype));
  return out;
}

/// Weights as int8 where all are integers of that range.
std::optional<Array> int8_weights(const Array& weights) {
  for (int64_t i = 0; i < weights.size(); ++i)
    if (const double value = weights.number(i);
        value != std::nearbyint(value) || value < -128 || value > 127)
      return std::nullopt;
  return weights.cast(DType::kI8);
}

/// Fake-quantized values are integers in floats; where only dequantize_linear reads them they
/// become int8, so that integer kernels can be used.
void quantize_linear(Importer& p) {
  const DType dtype = p.dtype("X", 0);
  if (p.flag({"only_observer"}, false)) return p.result("Y", 0, p.add("Identity", {p.in("X", 0)}));
  if (!is_float(dtype)) p.reject("its operand is not a float");
  const Quantization q = quantization_of(p);
  const bool away = p.integer({"round_type"}, 0) == 1;
  if (q.limit == 127 && !away && p.only_read_by("Y", 0, "dequantize_linear"))
    return p.result("Y", 0,
                    p.add("QuantizeLinear",
                          {p.in("X", 0), q.step,
                           p.add("Expand", {p.scalar(0, DType::kI8), p.add("Shape", {q.step})})},
                          q.axis_attribute()));
  const auto number = [&](double value) { return p.scalar(value, dtype); };
  std::string scaled = p.add("Div", {p.in("X", 0), q.aligned_step(p)});
  if (away) {
    // Halves away from 0.
    const std::string moved = p.add("Floor", {p.add("Add", {p.add("Abs", {scaled}), number(0.5)})});
    scaled = p.add("Mul", {p.add("Sign", {scaled}), moved});
  } else {
    scaled = p.add("Round", {scaled});
  }
  p.result("Y", 0,
           p.add("Clip", {scaled, number(away ? -q.limit : -q.limit - 1), number(q.limit)}));
}

void dequantize_linear(Importer& p) {
  if (p.flag({"only_observer"}, false)) return p.result("Y", 0, p.add("Identity", {p.in("X", 0)}));
  const Quantization q = quantization_of(p);
  const std::string x = p.in("X", 0);
  const DType wanted = p.result_type("Y", 0).dtype.value_or(DType::kF32);
  if (p.is_made_by(x, "QuantizeLinear") && p.dtype("X", 0) == wanted)
    return p.result("Y", 0, p.add("DequantizeLinear", {x, q.step}, q.axis_attribute()));
  const auto known = q.limit == 127 ? p.known_value("X", 0) : std::nullopt;
  if (const auto weights = known ? int8_weights(*known) : std::nullopt)
    return p.result("Y", 0,
                    p.add("DequantizeLinear", {p.constant(*weights), q.step}, q.axis_attribute()));
  p.result("Y", 0, p.add("Mul", {p.cast(x, wanted), q.aligned_step(p)}));
}

/// Matrices of which the first axes are rows.
void flattened_product(Importer& p) {
  const int64_t rows = p.integer({"x_num_col_dims"}, 1);
  if (p.integer({"y_num_col_dims"}, 1) != 1 || p.rank("Y", 1) != 2)
    p.reject("the second operand is not a matrix");
  if (rows == p.rank("X", 0) - 1)
    return p.result("Out", 0, p.add("MatMul", {p.in("X", 0), p.in("Y", 1)}));
  if (rows != 1) p.reject("the first operand is flattened to several axes");
  const std::string x = p.add("Flatten", {p.in("X", 0)}, {int_attribute("axis", 1)});
  p.result("Out", 0, p.add("MatMul", {x, p.in("Y", 1)}));
}

void cast(Importer& p) {
  const auto to = p.dtype_attr({"out_dtype", "dtype"});
  if (!to) p.reject("the type is not known");
  p.result("Out", 0, p.cast(p.in("X", 0), *to));
}

void cumulative_sum(Importer& p) {
  const bool flat = p.flag({"flatten"}, false);
  const auto axis = static_cast<int64_t>(p.known_number("AxisTensor", 1, {"axis"}, -1));
  const bool scalar = p.rank("X", 0) == 0;
  std::string x = p.in("X", 0);
  if (const auto dtype = p.result_type("Out", 0).dtype; dtype && *dtype != p.dtype("X", 0))
    x = p.cast(x, *dtype);
  if (flat || scalar) x = p.add("Reshape", {x, p.constant_ints({-1})});
  const std::string out =
      p.add("CumSum", {x, p.constant(Array::scalar(flat || scalar ? int64_t{0} : axis))},
            {int_attribute("exclusive", p.flag({"exclusive"}, false)),
             int_attribute("reverse", p.flag({"reverse"}, false))});
  const bool keeps = !scalar || p.result_type("Out", 0).shape.size() == 1;
  p.result("Out", 0, keeps ? out : p.without_axes(out));
}

}  // namespace

std::vector<ImportRuleEntry> paddle_math_rules() {
  return {
      {{"relu"}, unary("Relu")},
      {{"sigmoid"}, unary("Sigmoid")},
      {{"tanh"}, unary("Tanh")},
      {{"exp"}, unary("Exp")},
      {{"log"}, unary("Log")},
      {{"sqrt"}, unary("Sqrt")},
      {{"abs"}, unary("Abs")},
      {{"floor"}, rounding("Floor")},
      {{"ceil"}, rounding("Ceil")},
      {{"round"}, rounding("Round")},
      {{"sin"}, unary("Sin")},
      {{"cos"}, unary("Cos")},
      {{"tan"}, unary("Tan")},
      {{"asin"}, unary("Asin")},
      {{"acos"}, unary("Acos")},
      {{"atan"}, unary("Atan")},
      {{"sinh"}, unary("Sinh")},
      {{"cosh"}, unary("Cosh")},
      {{"erf"}, unary("Erf")},
      {{"sign"}, unary("Sign")},
      {{"reciprocal"}, unary("Reciprocal")},
      {{"softsign"}, unary("Softsign")},
      {{"logical_not"}, logical_not},
      {{"assign", "share_data", "share_data_"}, unary("Identity")},
      {{"elementwise_add", "add", "add_"}, binary("Add")},
      {{"elementwise_sub", "subtract"}, binary("Sub")},
      {{"elementwise_mul", "multiply"}, binary("Mul")},
      {{"elementwise_max", "maximum"}, binary("Max")},
      {{"elementwise_min", "minimum"}, binary("Min")},
      {{"elementwise_pow"}, binary("Pow")},
      {{"elementwise_div", "divide"}, divide},
      {{"elementwise_floordiv", "floor_divide"}, floor_divide},
      {{"elementwise_mod", "remainder"}, remainder},
      {{"equal"}, binary("Equal")},
      {{"not_equal"}, not_equal},
      {{"less_than"}, binary("Less")},
      {{"less_equal"}, binary("LessOrEqual")},
      {{"greater_than"}, binary("Greater")},
      {{"greater_equal"}, binary("GreaterOrEqual")},
      {{"logical_and"}, logical("And")},
      {{"logical_or"}, logical("Or")},
      {{"logical_xor"}, logical("Xor")},
      {{"scale", "scale_"}, scale},
      {{"pow"}, power},
      {{"square"}, square},
      {{"rsqrt"}, rsqrt},
      {{"relu6"}, relu6},
      {{"clip"}, clip},
      {{"leaky_relu"}, leaky_relu},
      {{"elu"}, elu},
      {{"hard_sigmoid", "hardsigmoid"}, hard_sigmoid},
      {{"hard_swish", "hardswish"}, hard_swish},
      {{"swish", "silu"}, swish},
      {{"mish"}, mish},
      {{"softplus"}, softplus},
      {{"gelu"}, gelu},
      {{"softmax"}, softmax_by("Softmax")},
      {{"log_softmax"}, softmax_by("LogSoftmax")},
      {{"reduce_mean"}, reduce("ReduceMean")},
      {{"reduce_sum"}, reduce("ReduceSum")},
      // In .pdmodel files the sum of several tensors.
      {{"sum"},
       [](Importer& p) {
         if (p.is_pir()) return reduce_by(p, "ReduceSum");
         sum_of_list(p);
       }},
      {{"add_n"}, sum_of_list},
      {{"reduce_max", "max"}, reduce("ReduceMax")},
      {{"reduce_min", "min"}, reduce("ReduceMin")},
      {{"reduce_prod", "prod"}, reduce("ReduceProd")},
      {{"mean"}, [](Importer& p) { p.is_pir() ? reduce_by(p, "ReduceMean") : mean_of_all(p); }},
      {{"mean_all"}, mean_of_all},
      {{"arg_max", "argmax"}, arg_extreme("ArgMax")},
      {{"arg_min", "argmin"}, arg_extreme("ArgMin")},
      {{"top_k_v2", "topk"}, top_k},
      {{"matmul_v2", "matmul"}, matrix_product},
      {{"mul"}, flattened_product},
      {{"cast"}, cast},
      {{"quantize_linear"}, quantize_linear},
      {{"dequantize_linear"}, dequantize_linear},
      {{"cumsum"}, cumulative_sum},
  };
}

}  // namespace paddle::onnx
