// The public functions of autograd.h: vjp, jvp, jacobian and hessian in float64, eagerly and in a
// trace, against derivatives by hand and central differences.

#include "autograd/autograd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

using Vector = std::vector<double>;

Array array(const Vector& values, const Dims& shape) { return Array::from<double>(values, shape); }

Vector elements(const Array& a) {
  const Array values = a.contiguous();
  Vector out;
  for (int64_t i = 0; i < values.size(); ++i) out.push_back(values.number(i));
  return out;
}

/// `fn` on concrete tensors below a tape.
std::vector<Array> eager(const TensorFn& fn, const std::vector<Array>& inputs) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope executing(executor);
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  Tensors tensors;
  for (const Array& a : inputs) tensors.emplace_back(a);
  std::vector<Array> out;
  for (const Tensor& t : fn(tensors)) out.push_back(t.array().contiguous());
  return out;
}

/// `fn` traced, optimized and run.
std::vector<Array> traced(const TensorFn& fn, const std::vector<Array>& inputs) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Tensors arguments;
    for (size_t i = 0; i < inputs.size(); ++i)
      arguments.push_back(tracer.input({ir::PortKind::kValue, "x" + std::to_string(i)},
                                       {inputs[i].dtype, to_shape(inputs[i].shape)}));
    size_t i = 0;
    for (const Tensor& t : fn(arguments))
      tracer.output({ir::PortKind::kValue, "y" + std::to_string(i++)}, t);
  }
  ir::verify(*function);
  runtime::optimize(*function);
  runtime::Executable executable(function);
  std::vector<Array> out;
  for (const Array& a : executable.run(inputs)) {  // results are in the executable's memory
    Array own = Array::empty(a.dtype, a.shape);
    for (int64_t i = 0; i < a.size(); ++i) own.data<double>()[i] = a.number(i);
    out.push_back(std::move(own));
  }
  return out;
}

void expect_near(const Array& got, const Dims& shape, const Vector& expected,
                 double tolerance = 1e-12) {
  EXPECT_EQ(got.shape, shape);
  const Vector values = elements(got);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

/// Checks the results of `fn` in both modes.
void expect_results(const TensorFn& fn, const std::vector<Array>& inputs,
                    const std::vector<Dims>& shapes, const std::vector<Vector>& expected) {
  for (const bool trace : {false, true}) {
    SCOPED_TRACE(trace ? "traced" : "eager");
    const std::vector<Array> results = trace ? traced(fn, inputs) : eager(fn, inputs);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      SCOPED_TRACE("result " + std::to_string(i));
      expect_near(results[i], shapes[i], expected[i]);
    }
  }
}

/// Jacobian of `fn` for its only input, row by row, by central differences.
Vector difference_jacobian(const TensorFn& fn, const Array& input, double step = 1e-5) {
  std::vector<Vector> columns;
  for (int64_t i = 0; i < input.size(); ++i) {
    const auto moved = [&](double by) {
      Vector values = elements(input);
      values[static_cast<size_t>(i)] += by;
      return elements(eager(fn, {array(values, input.shape)})[0]);
    };
    const Vector up = moved(step), down = moved(-step);
    columns.emplace_back();
    for (size_t o = 0; o < up.size(); ++o) columns.back().push_back((up[o] - down[o]) / (2 * step));
  }
  Vector rows;
  for (size_t o = 0; o < columns[0].size(); ++o)
    for (const Vector& column : columns) rows.push_back(column[o]);
  return rows;
}

// f(x, y) = (x y, sin x): the vector-Jacobian product with (a, b) is (a y + b cos x, a x).
TEST(Vjp, HasTheGradientsOfEachInput) {
  const Vector x = {0.5, -1.25}, y = {2.0, 3.0}, a = {1.0, -2.0}, b = {0.25, 4.0};
  const TensorFn pulled = [](const Tensors& t) {
    const TensorFn f = [](const Tensors& v) { return Tensors{v[0] * v[1], ops::sin(v[0])}; };
    return autograd::vjp(f, {t[0], t[1]}, {t[2], t[3]});
  };
  Vector for_x, for_y;
  for (size_t i = 0; i < 2; ++i) {
    for_x.push_back(a[i] * y[i] + b[i] * std::cos(x[i]));
    for_y.push_back(a[i] * x[i]);
  }
  expect_results(pulled, {array(x, {2}), array(y, {2}), array(a, {2}), array(b, {2})}, {{2}, {2}},
                 {for_x, for_y});
}

TEST(Vjp, IsZeroForInputsThatDoNotMatter) {
  const TensorFn pulled = [](const Tensors& t) {
    return autograd::vjp([](const Tensors& v) { return Tensors{v[0] * v[0]}; }, {t[0], t[1]},
                         {t[0]});
  };
  expect_results(pulled, {array({3.0, -1.0}, {2}), array({7.0}, {1})}, {{2}, {1}},
                 {{18.0, 2.0}, {0.0}});
}

TEST(Vjp, RejectsACotangentOfAnotherShape) {
  const TensorFn pulled = [](const Tensors& t) {
    return autograd::vjp([](const Tensors& v) { return Tensors{v[0] * v[0]}; }, {t[0]}, {t[1]});
  };
  try {
    eager(pulled, {array({1, 2}, {2}), array({1, 2, 3}, {3})});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_EQ(e.message(), "grad: the cotangent is float64[3], the output float64[2]");
  }
}

// f(x, y) = (x y, sin x): the Jacobian-vector product with (u, v) is (y u + x v, u cos x).
TEST(Jvp, PushesTangentsForward) {
  const Vector x = {0.5, -1.25}, y = {2.0, 3.0}, u = {1.0, -2.0}, v = {0.25, 4.0};
  const TensorFn pushed = [](const Tensors& t) {
    const TensorFn f = [](const Tensors& w) { return Tensors{w[0] * w[1], ops::sin(w[0])}; };
    return autograd::jvp(f, {t[0], t[1]}, {t[2], t[3]});
  };
  Vector first, second;
  for (size_t i = 0; i < 2; ++i) {
    first.push_back(y[i] * u[i] + x[i] * v[i]);
    second.push_back(u[i] * std::cos(x[i]));
  }
  expect_results(pushed, {array(x, {2}), array(y, {2}), array(u, {2}), array(v, {2})}, {{2}, {2}},
                 {first, second});
}

TEST(Jvp, IsZeroForOutputsThatDoNotDependOnTheInputs) {
  const TensorFn pushed = [](const Tensors& t) {
    const TensorFn f = [&](const Tensors& v) { return Tensors{v[0] * v[0], t[1] * 2.0}; };
    return autograd::jvp(f, {t[0]}, {t[1]});
  };
  expect_results(pushed, {array({3.0, -1.0}, {2}), array({1.0, 0.5}, {2})}, {{2}, {2}},
                 {{6.0, -1.0}, {0.0, 0.0}});
}

// A matrix product, whose Jacobian for the vector is the matrix, and the cross terms of a map whose
// outputs depend on all inputs.
TEST(Jacobian, OfALinearMapIsItsMatrix) {
  const Vector matrix = {1, 2, 3, 4, 5, 6};
  const TensorFn jacobian = [](const Tensors& t) {
    const TensorFn f = [&](const Tensors& v) { return Tensors{ops::matmul(t[1], v[0])}; };
    return Tensors{autograd::jacobian(f, t[0])};
  };
  expect_results(jacobian, {array({0.5, -1, 2}, {3}), array(matrix, {2, 3})}, {{2, 3}}, {matrix});
}

TEST(Jacobian, FlattensOutputAndInput) {
  // softmax along the rows of [2, 2]: p_i (δ_ij - p_j) in each row, zero between rows.
  const Vector x = {0.3, -0.9, 1.5, 0.2};
  const TensorFn softmax = [](const Tensors& v) { return Tensors{ops::softmax(v[0], 1)}; };
  Vector expected(16, 0.0);
  for (size_t row = 0; row < 2; ++row) {
    const double p = 1 / (1 + std::exp(x[2 * row + 1] - x[2 * row]));
    const double slope = p * (1 - p);
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 2; ++j)
        expected[(2 * row + i) * 4 + 2 * row + j] = i == j ? slope : -slope;
  }
  const TensorFn jacobian = [&](const Tensors& t) {
    return Tensors{autograd::jacobian(softmax, t[0])};
  };
  const Array input = array(x, {2, 2});
  expect_results(jacobian, {input}, {{4, 4}}, {expected});
  expect_near(eager(jacobian, {input})[0], {4, 4}, difference_jacobian(softmax, input), 1e-9);
}

TEST(Jacobian, IsZeroForAnOutputThatDoesNotDependOnTheInput) {
  const TensorFn jacobian = [](const Tensors& t) {
    return Tensors{autograd::jacobian([&](const Tensors&) { return Tensors{t[1] * 2.0}; }, t[0])};
  };
  expect_results(jacobian, {array({1, 2}, {2}), array({3}, {1})}, {{1, 2}}, {{0.0, 0.0}});
}

// f(x) = x0² x1 + sin(x2): second derivatives by hand.
TEST(Hessian, IsSymmetricWithTheSecondDerivatives) {
  const Vector x = {1.5, -0.5, 0.7};
  const TensorFn f = [](const Tensors& v) {
    const auto at = [&](int64_t i) {
      return ops::strided_slice(v[0], {0}, {Dim(i)}, {Dim(i + 1)}, {1});
    };
    return Tensors{ops::sum(at(0) * at(0) * at(1) + ops::sin(at(2)))};
  };
  const TensorFn hessian = [&](const Tensors& t) { return Tensors{autograd::hessian(f, t[0])}; };
  const Vector expected = {2 * x[1], 2 * x[0], 0, 2 * x[0], 0, 0, 0, 0, -std::sin(x[2])};
  const Array input = array(x, {3});
  expect_results(hessian, {input}, {{3, 3}}, {expected});

  const TensorFn gradient = [&](const Tensors& t) {
    const Tensor leaf = autograd::variable(t[0]);
    return autograd::grad(f({leaf}), {leaf});
  };
  expect_near(eager(hessian, {input})[0], {3, 3}, difference_jacobian(gradient, input), 1e-8);
}

// lerp is differentiated through its decomposition, and its operands depend on one another:
// x + 0.3 (x^2 - x) has the derivative 1 + 0.3 (2 x - 1).
TEST(Gradient, OfADecomposedOperationCountsEachPathOnce) {
  const TensorFn gradient = [](const Tensors& t) {
    const Tensor leaf = autograd::variable(t[0]);
    const Tensor weight = ops::full_like(leaf, 0.3);
    return autograd::grad({ops::sum(ops::lerp(leaf, leaf * leaf, weight))}, {leaf});
  };
  expect_results(gradient, {array({1.5, -0.5}, {2})}, {{2}}, {{1.6, 0.4}});
}

TEST(Hessian, OfALinearFunctionIsZero) {
  const TensorFn hessian = [](const Tensors& t) {
    return Tensors{
        autograd::hessian([](const Tensors& v) { return Tensors{ops::sum(v[0] * 3.0)}; }, t[0])};
  };
  expect_results(hessian, {array({1, 2}, {2})}, {{2, 2}}, {{0, 0, 0, 0}});
}

TEST(Hooks, SeeTheSumOfGradientsAndMayReplaceIt) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope executing(executor);
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  const Tensor x = autograd::variable(Tensor(array({1, 2}, {2})));
  const Tensor y = x * x;
  std::vector<Vector> seen;
  const int64_t first = autograd::add_hook(y, [&](const Tensor& gradient) {
    seen.push_back(elements(gradient.array()));
    return Tensor();
  });
  autograd::add_hook(y, [](const Tensor& gradient) { return gradient + gradient; });
  const Tensor out = ops::sum(y + y);
  EXPECT_EQ(elements(autograd::grad({out}, {x})[0].array()), Vector({8, 16}));
  EXPECT_EQ(seen, std::vector<Vector>({{2, 2}}));
  autograd::remove_hook(y, first);
  EXPECT_EQ(elements(autograd::grad({out}, {y})[0].array()), Vector({4, 4}));
  EXPECT_EQ(seen.size(), 1U);
  EXPECT_THROW(autograd::add_hook(Tensor(array({1}, {1})), {}), Error);
}

TEST(WithVjp, ReplacesTheGradient) {
  runtime::register_backends();
  runtime::EagerExecutor executor;
  const InterpreterScope executing(executor);
  autograd::Tape tape;
  const InterpreterScope recording(tape);
  const Tensor x = autograd::variable(Tensor(array({1, 2}, {2})));
  const Tensor constant(array({5, 6}, {2}));
  std::vector<bool> asked;
  const Tensors out = autograd::with_vjp(
      {Tensor(array({3, 4}, {2}))}, {x, constant},
      [&](const Tensors& cotangents, const std::vector<bool>& needed) -> Tensors {
        asked = needed;
        return {cotangents[0] * x, Tensor()};
      });
  const Tensor first = autograd::grad({ops::sum(out[0] * out[0])}, {x})[0];
  EXPECT_EQ(elements(first.array()), Vector({6, 16}));
  EXPECT_EQ(asked, std::vector<bool>({true, false}));
  // The operations of vjp are recorded: the derivative of 2 y x by x is 2 y + 2 x · x.
  const Tensor second = autograd::grad({ops::sum(first)}, {x})[0];
  EXPECT_EQ(elements(second.array()), Vector({8, 16}));
  EXPECT_FALSE(autograd::with_vjp({constant}, {constant},
                                  [](const auto&, const auto&) { return Tensors(); })[0]
                   .requires_grad());
}

}  // namespace
}  // namespace paddle
