// Functions of the table: elementwise operations, reductions, products and quantization.

#include <algorithm>
#include <cmath>

#include "ops/generated/complex.h"
#include "ops/generated/creation.h"
#include "ops/generated/linalg.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/quantization.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "paddle_program/program_call.h"

namespace paddle::paddle_program {
namespace {

using onnx::scalar;

Values assign(ProgramCall& c) { return {c.value("x")}; }

/// Integers are their own floor and ceiling.
Values rounding(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  if (!is_float(x.dtype())) return {x};
  const std::string which = c.text("function");
  return {which == "floor" ? ops::floor(x) : which == "ceil" ? ops::ceil(x) : ops::trunc(x)};
}

Values round(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  if (!is_float(x.dtype())) return {x};
  return {ops::round(x, c.integer("decimals"))};
}

Values increment(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  return {x + c.number("value", x.dtype())};
}

Values cast(ProgramCall& c) {
  const auto to = c.dtype("dtype");
  c.check(to.has_value(), "its type is not known");
  return {ops::cast(c.tensor("x"), *to)};
}

/// Of integers a quotient is a float in PIR, and one of integers in protobuf.
Values divide(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), y = placed_operand(c, "y");
  if (!c.is_named("elementwise_div") || !is_integer(x.dtype())) return {ops::divide(x, y)};
  return {ops::divide_rounded(x, y, "trunc")};
}

/// PaddlePaddle rounds quotients of integers down as well.
Values floor_divide(ProgramCall& c) {
  return {ops::floor_divide(c.tensor("x"), placed_operand(c, "y"))};
}

Values scale(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const DType dtype = x.dtype();
  // Whole numbers are scaled by whole numbers, whatever the type of the factor says.
  const Tensor factor = c.number("scale", dtype);
  if (!c.has("bias") && c.real("bias") == 0) return {x * factor};
  const Tensor bias = c.number("bias", dtype);
  return {c.flag("bias_after_scale") ? x * factor + bias : (x + bias) * factor};
}

Values power(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  return {ops::pow(x, c.number("exponent", x.dtype()))};
}

Values clip(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  return {ops::minimum(ops::maximum(x, c.number("min", x.dtype())), c.number("max", x.dtype()))};
}

Values clip_by_norm(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const double most = c.real("max_norm");
  const Tensor norm = ops::sqrt(ops::sum(ops::square(x)));
  return {ops::where(ops::greater_than(norm, scalar(most, x.dtype())), x * (most / norm), x)};
}

Values hard_swish(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const double scale = c.real("scale"), most = c.real("threshold");
  const DType dtype = x.dtype();
  if (scale == 6 && most == 6 && c.real("offset") == 3) return {ops::hardswish(x)};
  const Tensor inner =
      ops::minimum(ops::maximum(x + c.real("offset"), scalar(0, dtype)), scalar(most, dtype));
  return {x * inner / scale};
}

Values swish(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const double beta = c.is_named("silu") ? 1 : c.real("beta");
  return {beta == 1 ? ops::silu(x) : x * ops::sigmoid(x * beta)};
}

Values mish(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  return {x * ops::tanh(ops::softplus(x, 1, c.real("threshold")))};
}

Values leaky_mean(ProgramCall& c) {
  return {ops::leaky_relu(c.tensor("x"), (c.real("lower") + c.real("upper")) / 2)};
}

/// A value without axes counts as [1].
Values softmax(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const bool is_scalar = x.ndim() == 0;
  const Tensor in = is_scalar ? ops::reshape(x, {Dim(1)}) : x;
  const int64_t axis = is_scalar ? 0 : c.integer("axis");
  const Tensor out =
      c.text("function") == "softmax" ? ops::softmax(in, axis) : ops::log_softmax(in, axis);
  return {is_scalar ? ops::reshape(out, Shape()) : out};
}

/// The mean of integers is one of them.
Values mean(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const Axes axes = c.ints("axis");
  const bool all = axes.empty() || c.flag("reduce_all");
  const Tensor out = ops::mean(x, all ? std::nullopt : std::optional(axes), c.flag("keepdim"));
  const DType own = is_integer(x.dtype()) ? x.dtype() : out.dtype();
  return {ops::cast(out, c.dtype("dtype").value_or(own))};
}

Values arg_extreme(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const bool flat = c.flag("flatten") || x.ndim() == 0, keeps = c.flag("keepdim");
  const DType dtype = c.dtype("dtype").value_or(DType::kI64);
  const auto find = [&](const Tensor& in, int64_t axis, bool kept) {
    return c.text("function") == "argmax" ? ops::argmax(in, axis, kept, dtype)
                                          : ops::argmin(in, axis, kept, dtype);
  };
  if (!flat) return {find(x, c.integer("axis"), keeps)};
  const Tensor out = find(ops::reshape(x, {Dim(-1)}), 0, false);
  const Shape ones(keeps ? static_cast<size_t>(x.ndim()) : 0, Dim(1));
  return {ops::reshape(out, ones)};
}

/// The largest or smallest numbers, and where they are.
Values extreme_with_index(ProgramCall& c) {
  const Values found = arg_extreme(c);
  const Tensor& x = c.tensor("x");
  const bool is_largest = c.text("function") == "argmax", keeps = c.flag("keepdim");
  const bool flat = c.flag("flatten") || x.ndim() == 0;
  const auto axes = flat ? std::nullopt : std::optional(Axes{c.integer("axis")});
  return {is_largest ? ops::max(x, axes, keeps) : ops::min(x, axes, keeps), found[0]};
}

Values standard_deviation(ProgramCall& c) {
  const Axes axes = c.ints("axis");
  return {ops::sqrt(ops::var(c.tensor("x"), axes.empty() ? std::nullopt : std::optional(axes),
                             std::nullopt, c.flag("keepdim"), c.real("correction")))};
}

Values slogdet_parts(ProgramCall& c) {
  const Tensor both = ops::slogdet(c.tensor("x"));
  const auto part = [&](int64_t i) {
    return ops::squeeze(onnx::slice_axis(both, 0, i, i + 1), Axes{0});
  };
  return {part(0), part(1)};
}

Values l2_normalize(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const Axes axis = {c.integer("axis")};
  const Tensor norm =
      ops::sqrt(ops::sum(ops::square(x), axis, std::nullopt, true) + c.real("epsilon"));
  return {x / norm, norm};
}

Values l1_norm(ProgramCall& c) {
  return {ops::reshape(ops::sum(ops::abs(c.tensor("x"))), {Dim(1)})};
}

Values squared_l2_norm(ProgramCall& c) {
  return {ops::reshape(ops::sum(ops::square(c.tensor("x"))), {Dim(1)})};
}

/// The result along an axis, flattened if the program requests it.
template <class F>
Tensor along(ProgramCall& c, const Tensor& x, F&& f) {
  const bool flat = c.flag("flatten") || x.ndim() == 0;
  const Tensor out = flat ? f(ops::reshape(x, {Dim(-1)}), int64_t{0}) : f(x, c.integer("axis"));
  return x.ndim() == 0 && !c.flag("flatten") ? ops::reshape(out, Shape()) : out;
}

Values cumulative_sum(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  const bool reverse = c.flag("reverse"), exclusive = c.flag("exclusive");
  return {along(c, x, [&](const Tensor& in, int64_t axis) {
    const Axes axes = {axis};
    const Tensor given = reverse ? ops::flip(in, axes) : in;
    Tensor out = ops::cumsum(given, axis);
    if (exclusive) out = out - given;
    return reverse ? ops::flip(out, axes) : out;
  })};
}

Values cumulative(ProgramCall& c) {
  return {along(c, c.tensor("x"),
                [](const Tensor& in, int64_t axis) { return ops::logcumsumexp(in, axis); })};
}

Values matmul(ProgramCall& c) {
  const Tensor out =
      ops::matmul(c.tensor("x"), c.tensor("y"), c.flag("transpose_x"), c.flag("transpose_y"));
  const double alpha = c.real("alpha");
  return {alpha == 1 ? out : out * alpha};
}

/// The axes from `first` on, and those before, as the two axes of a matrix.
Tensor as_matrix(const ProgramCall& c, const Tensor& x, int64_t first) {
  c.check(first > 0 && first < x.ndim(), "an operand of rank ", x.ndim(), " is flattened at axis ",
          first);
  if (x.ndim() == 2) return x;
  Dim rows = 1, columns = 1;
  for (int64_t i = 0; i < x.ndim(); ++i)
    (i < first ? rows : columns) = (i < first ? rows : columns) * x.dim(i);
  return ops::reshape(x, {rows, columns});
}

}  // namespace

Tensor flat_product(const ProgramCall& c, const Tensor& x, const Tensor& y, int64_t x_axes,
                    int64_t y_axes) {
  Tensor out = ops::matmul(as_matrix(c, x, x_axes), as_matrix(c, y, y_axes));
  if (x.ndim() == 2 && y.ndim() == 2) return out;
  Shape shape;
  for (int64_t i = 0; i < x_axes; ++i) shape.push_back(x.dim(i));
  for (int64_t i = y_axes; i < y.ndim(); ++i) shape.push_back(y.dim(i));
  return ops::reshape(out, shape);
}

namespace {

Values flattened_product(ProgramCall& c) {
  return {flat_product(c, c.tensor("x"), c.tensor("y"), c.integer("x_num_col_dims"),
                       c.integer("y_num_col_dims"))};
}

Values repeated_fully_connected(ProgramCall& c) {
  const Tensors weights = c.list("weights"), biases = c.list("biases");
  c.check(!weights.empty() && weights.size() == biases.size(), "has ", weights.size(),
          " weights and ", biases.size(), " biases");
  Tensor x = c.tensor("x");
  Values out;
  for (size_t i = 0; i < weights.size(); ++i) {
    x = ops::relu(ops::matmul(x, weights[i]) + ops::reshape(biases[i], {Dim(-1)}));
    out.emplace_back(x);
  }
  return out;
}

/// ((x y)^2 - x^2 y^2) of matrices, scaled.
Values squared_difference(ProgramCall& c) {
  const Tensor &x = c.tensor("x"), &y = c.tensor("y");
  const Tensor xx = ops::square(x), yy = ops::square(y), xy = ops::square(ops::matmul(x, y));
  return {xx, yy, xy, (xy - ops::matmul(xx, yy)) * c.real("scalar")};
}

Values qr(ProgramCall& c) {
  const std::string mode = c.text("mode");
  const Tensors made = ops::qr(c.tensor("x"), mode);
  return mode == "r" ? Values{Value(), made.at(0)} : Values{made.at(0), made.at(1)};
}

Values fully_connected(ProgramCall& c) {
  Tensor out = flat_product(c, c.tensor("x"), c.tensor("weight"), c.integer("in_num_col_dims"), 1);
  if (c.has("bias")) out = out + ops::reshape(c.tensor("bias"), {Dim(-1)});
  const std::string activation = c.text("activation");
  c.check(activation.empty() || activation == "relu", "the activation ", activation,
          " is not supported");
  return {activation == "relu" ? ops::relu(out) : out};
}

/// How quantize_linear and dequantize_linear count: an integer i of -limit - 1 to limit stands for
/// i * step, where step is the scale over limit.
struct QuantizedScale {
  double limit = 127;
  Tensor step;     ///< 0-D, or [channels]
  Tensor aligned;  ///< in the shape that broadcasts with the operand

  explicit QuantizedScale(const ProgramCall& c) {
    const int64_t bits = c.integer("bits"), axis = c.integer("axis");
    c.check(bits >= 2 && bits <= 16, "expected a bit_length of 2 to 16, not ", bits);
    limit = static_cast<double>((int64_t{1} << (bits - 1)) - 1);
    const Tensor &x = c.tensor("x"), &scale = c.tensor("scale");
    c.check(axis < x.ndim(), "its axis ", axis, " is out of range for ", x.type());
    const bool whole = axis < 0 || x.ndim() == 0;
    if (whole) {
      c.check(element_count(std::span<const Dim>(scale.shape())).equals(1).value_or(true),
              "expected one scale, not ", scale.type());
      step = aligned = ops::reshape(scale, Shape()) / limit;
      return;
    }
    step = ops::reshape(scale, {Dim(-1)}) / limit;
    Shape shape(static_cast<size_t>(x.ndim() - axis), Dim(1));
    shape[0] = step.dim(0);
    aligned = ops::reshape(step, shape);
  }
};

/// Fake-quantized values are integers in floats; where only dequantize_linear reads them they
/// become int8, so that integer kernels can be used.
Values quantize_linear(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  if (c.flag("only_observer")) return {x};
  c.check(is_float(x.dtype()), "its operand is ", x.type(), ", expected floats");
  const QuantizedScale q(c);
  const bool away = c.integer("round_type") == 1;
  if (c.attribute(kAsInt8) && q.limit == 127 && !away && x.dtype() == DType::kF32)
    return {ops::quantize(x, q.aligned, scalar(0, DType::kF32), DType::kI8)};
  Tensor scaled = x / q.aligned;
  // Halves away from 0, or to the even number.
  scaled = away ? ops::sign(scaled) * ops::floor(ops::abs(scaled) + 0.5) : ops::round(scaled);
  const DType dtype = x.dtype();
  return {ops::minimum(ops::maximum(scaled, scalar(away ? -q.limit : -q.limit - 1, dtype)),
                       scalar(q.limit, dtype))};
}

/// Constants of whole numbers within 8 bits as int8.
std::optional<Array> int8_values(const Tensor& x, double limit) {
  if (!x.is_concrete() || limit != 127) return std::nullopt;
  const Array& values = x.array();
  for (int64_t i = 0; i < values.size(); ++i)
    if (const double value = values.number(i);
        value != std::nearbyint(value) || value < -128 || value > 127)
      return std::nullopt;
  return values.cast(DType::kI8);
}

Values dequantize_linear(ProgramCall& c) {
  const Tensor& x = c.tensor("x");
  if (c.flag("only_observer")) return {x};
  const QuantizedScale q(c);
  const Tensor zero = scalar(0, DType::kF32);
  if (x.dtype() == DType::kI8 && q.step.dtype() == DType::kF32)
    return {ops::dequantize(x, q.aligned, zero)};
  if (const auto weights = int8_values(x, q.limit); weights && q.step.dtype() == DType::kF32)
    return {ops::dequantize(Tensor(*weights), q.aligned, zero)};
  return {ops::cast(x, q.step.dtype()) * q.aligned};
}

}  // namespace

ProgramFunctions program_math_functions() {
  return {
      {"assign", assign},
      {"rounding", rounding},
      {"round", round},
      {"increment", increment},
      {"cast", cast},
      {"divide", divide},
      {"floor_divide", floor_divide},
      {"scale", scale},
      {"power", power},
      {"clip", clip},
      {"clip_by_norm", clip_by_norm},
      {"hard_swish", hard_swish},
      {"swish", swish},
      {"mish", mish},
      {"leaky_mean", leaky_mean},
      {"softmax", softmax},
      {"arg_extreme", arg_extreme},
      {"extreme_with_index", extreme_with_index},
      {"standard_deviation", standard_deviation},
      {"slogdet_parts", slogdet_parts},
      {"l2_normalize", l2_normalize},
      {"l1_norm", l1_norm},
      {"squared_l2_norm", squared_l2_norm},
      {"cumulative_sum", cumulative_sum},
      {"cumulative", cumulative},
      {"matmul", matmul},
      {"flattened_product", flattened_product},
      {"repeated_fully_connected", repeated_fully_connected},
      {"mean", mean},
      {"squared_difference", squared_difference},
      {"qr", qr},
      {"fully_connected", fully_connected},
      {"quantize_linear", quantize_linear},
      {"dequantize_linear", dequantize_linear},
  };
}

}  // namespace paddle::paddle_program
