// Constants, ranges and random numbers.

#include <cmath>

#include "onnx/graph/evaluator.h"
#include "onnx/ops/helpers.h"
#include "ops/core/call.h"
#include "ops/generated/creation.h"
#include "ops/generated/math.h"
#include "ops/generated/nn.h"
#include "ops/generated/random.h"
#include "ops/generated/shape.h"

namespace paddle::onnx {
namespace {

Values constant(NodeCall& c) {
  if (const auto* a = c.find("value")) {
    c.check(!a->tensors.empty(), "the attribute 'value' must be a tensor");
    return {Value::of(a->tensors[0])};
  }
  if (const auto* a = c.find("sparse_value")) {
    c.check(a->sparse != nullptr, "the attribute 'sparse_value' must be a sparse tensor");
    return {dense_value(*a->sparse)};
  }
  if (const auto* a = c.find("value_float")) return {Tensor(Array::scalar(a->f))};
  if (const auto* a = c.find("value_int")) return {Tensor(Array::scalar(a->i))};
  if (const auto* a = c.find("value_floats"))
    return {Tensor(Array::from(a->floats, {static_cast<int64_t>(a->floats.size())}))};
  if (c.has_attribute("value_ints")) return {int_vector(c.ints_attr("value_ints"))};
  if (const auto* a = c.find("value_string")) return {Value::of_strings({}, {a->s})};
  if (const auto* a = c.find("value_strings"))
    return {Value::of_strings({static_cast<int64_t>(a->strings.size())}, a->strings)};
  c.reject("it has no value");
}

Values constant_of_shape(NodeCall& c) {
  const Shape shape = c.dims_operand(0);
  const auto* a = c.find("value");
  if (!a || a->tensors.empty()) return {ops::full(shape, 0.0, DType::kF32)};
  return {ops::expand(ops::reshape(Tensor(a->tensors[0].array), Shape()), shape)};
}

/// Stays symbolic for a step of 1.
Values range(NodeCall& c) {
  const DType dtype = c.value(0).dtype();
  if (is_integer(dtype)) {
    const Shape start = c.dims_operand(0), limit = c.dims_operand(1);
    const int64_t step = c.constant_int(2);
    c.check(step != 0, "the step is 0");
    return {ops::arange(AttrValue(start.at(0)), AttrValue(limit.at(0)), AttrValue(step), dtype)};
  }
  const double start = c.constant_float(0), limit = c.constant_float(1), step = c.constant_float(2);
  c.check(step != 0, "the step is 0");
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  c.check(count < 0x1p40, "the range is too long");
  const Tensor steps = iota(static_cast<int64_t>(count));
  return {ops::cast(ops::cast(steps, DType::kF64) * step + start, dtype)};
}

Values eye_like(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  c.check(x.ndim() == 2, "expected a matrix");
  const DType dtype = c.dtype_attr("dtype", x.dtype());
  const Tensor rows = ops::unsqueeze(iota(x.dim(0)), {1});
  const Tensor columns = ops::unsqueeze(iota(x.dim(1)), {0});
  return {ops::cast(ops::equal(columns - rows, int_scalar(c.int_attr("k", 0))), dtype)};
}

/// A node with its own seed draws the same numbers in every run.
template <class F>
Tensor drawn(const NodeCall& c, F&& draw) {
  if (!c.has_attribute("seed")) return draw();
  const auto seed = static_cast<uint64_t>(std::llround(c.float_attr("seed", 0) * 65536.0));
  const RandomScope scope(Tensor(Array::from<uint64_t>({seed, 0}, {2})));
  return draw();
}

Tensor normal(const NodeCall& c, const Shape& shape, DType dtype) {
  return drawn(c, [&] {
    return ops::cast(
        ops::gaussian(shape, c.float_attr("mean", 0), c.float_attr("scale", 1), 0, DType::kF32),
        dtype);
  });
}
Tensor uniform(const NodeCall& c, const Shape& shape, DType dtype) {
  return drawn(c, [&] {
    return ops::cast(
        ops::uniform(shape, DType::kF32, c.float_attr("low", 0), c.float_attr("high", 1)), dtype);
  });
}

template <Tensor (*F)(const NodeCall&, const Shape&, DType)>
Values random(NodeCall& c) {
  return {F(c, to_shape(c.ints_attr("shape")), c.dtype_attr("dtype", DType::kF32))};
}
template <Tensor (*F)(const NodeCall&, const Shape&, DType)>
Values random_like(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  return {F(c, x.shape(), c.dtype_attr("dtype", is_float(x.dtype()) ? x.dtype() : DType::kF32))};
}

Values bernoulli(NodeCall& c) {
  const Tensor& x = c.tensor(0);
  return {drawn(c, [&] { return ops::cast(ops::bernoulli(x), c.dtype_attr("dtype", x.dtype())); })};
}

/// Input: unnormalized log probabilities.
Values multinomial(NodeCall& c) {
  const Tensor weights = ops::softmax(ops::cast(c.tensor(0), DType::kF32), -1);
  const int64_t count = c.int_attr("sample_size", 1);
  return {drawn(c, [&] {
    return ops::cast(ops::multinomial(weights, count, true), c.dtype_attr("dtype", DType::kI32));
  })};
}

/// Sum of coefficients times cos(2 pi k n / N).
template <int Kind>
Values window(NodeCall& c) {
  const int64_t size = c.constant_int(0);
  c.check(size >= 0 && size <= max_listed_indices(), "the size ", size, " is out of range");
  const double period = static_cast<double>(c.bool_attr("periodic", true) ? size : size - 1);
  constexpr double kTwoPi = 6.283185307179586;
  Array out = Array::empty(DType::kF64, {size});
  for (int64_t n = 0; n < size; ++n) {
    const double t = kTwoPi * static_cast<double>(n) / period;
    out.data<double>()[n] = Kind == 0   ? 0.5 - 0.5 * std::cos(t)
                            : Kind == 1 ? 25.0 / 46 - 21.0 / 46 * std::cos(t)
                                        : 0.42 - 0.5 * std::cos(t) + 0.08 * std::cos(2 * t);
  }
  return {ops::cast(Tensor(out), c.dtype_attr("output_datatype", DType::kF32))};
}

}  // namespace

OperatorTable creation_operators() {
  static constexpr Operator operators[] = {
      {"Constant", 1, constant},
      {"ConstantOfShape", 1, constant_of_shape},
      {"Range", 1, range},
      {"EyeLike", 1, eye_like},
      {"RandomNormal", 1, random<normal>},
      {"RandomNormalLike", 1, random_like<normal>},
      {"RandomUniform", 1, random<uniform>},
      {"RandomUniformLike", 1, random_like<uniform>},
      {"Bernoulli", 1, bernoulli},
      {"Multinomial", 1, multinomial},
      {"HannWindow", 1, window<0>},
      {"HammingWindow", 1, window<1>},
      {"BlackmanWindow", 1, window<2>},
  };
  return operators;
}

}  // namespace paddle::onnx
