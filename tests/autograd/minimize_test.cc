// Minimizers against PaddlePaddle's (minimize_reference.py prints the values), eagerly and
// compiled.

#include "autograd/minimize.h"

#include <gtest/gtest.h>

#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"
#include "ops/generated/reduce.h"
#include "ops/generated/shape.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

Tensors rosenbrock(const Tensors& x) {
  const Tensor left = ops::slice(x[0], {0}, {Dim(0)}, {Dim(3)});
  const Tensor right = ops::slice(x[0], {0}, {Dim(1)}, {Dim(4)});
  const Tensor bend = right - left * left, far = 1.0 - left;
  return {ops::sum(100.0 * bend * bend + far * far)};
}

/// converged, evaluations, position, value, gradient
std::vector<Array> found(const TensorFn& fn, const Array& start,
                         const autograd::MinimizeOptions& options, bool compiled) {
  runtime::register_backends();
  const auto results = [&](const Tensor& x) {
    const autograd::Minimum m = autograd::minimize(fn, x, options);
    return Tensors{m.converged, m.evaluations, m.position, m.value, m.gradient};
  };
  std::vector<Array> out;
  if (!compiled) {
    runtime::EagerExecutor executor;
    const InterpreterScope executing(executor);
    autograd::Tape tape;
    const InterpreterScope recording(tape);
    for (const Tensor& t : results(Tensor(start))) out.push_back(t.array().contiguous());
    return out;
  }
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor x =
        tracer.input({ir::PortKind::kValue, "x"}, {start.dtype, to_shape(start.shape)});
    size_t i = 0;
    for (const Tensor& t : results(x)) tracer.output({ir::PortKind::kValue, str("y", i++)}, t);
  }
  const auto executable = runtime::compile(function, {});
  for (const Array& a : executable->run({start})) out.push_back(runtime::copied(a));
  return out;
}

struct Reference {
  int64_t iterations;
  bool converged;
  double position[4], value;
};
const Reference kReferences[] = {
    {3,
     false,
     {0.8323516285848406, 0.32210601260968796, 0.20055435810610725, 0.34781824113275533},
     25.267453188062824},
    {8,
     false,
     {0.8417250652241838, 0.6985974814987659, 0.4836015045092885, 0.23665614966376466},
     0.39511464870987795},
    {40,
     true,
     {1.0000000000113491, 1.0000000000306934, 1.0000000000741944, 1.0000000001516942},
     3.046378998567095e-20}};

TEST(Minimize, FindsWhatPaddlePaddleFinds) {
  const Array start = Array::from<double>({-1.2, 1.0, 0.5, -0.3}, {4});
  for (const Reference& reference : kReferences)
    for (const bool compiled : {false, true}) {
      const auto got = found(rosenbrock, start,
                             {.history = 100,
                              .iterations = reference.iterations,
                              .tolerance_grad = 1e-8,
                              .tolerance_change = 1e-8},
                             compiled);
      EXPECT_EQ(got[0].integer(), reference.converged) << compiled;
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_NEAR(got[2].number(i), reference.position[i], 1e-9)
            << reference.iterations << " " << compiled;
      EXPECT_NEAR(got[3].number(), reference.value, 1e-8);
    }
}

/// With the whole history both methods are the same one.
TEST(Minimize, BfgsIsLbfgsWithAllSteps) {
  const Array start = Array::from<double>({-1.2, 1.0, 0.5, -0.3}, {2, 2});
  const TensorFn fn = [](const Tensors& x) { return rosenbrock({ops::reshape(x[0], {Dim(4)})}); };
  for (const bool compiled : {false, true}) {
    const auto a = found(fn, start, {.limited_memory = true, .iterations = 12}, compiled);
    const auto b = found(fn, start, {.limited_memory = false, .iterations = 12}, compiled);
    EXPECT_EQ(a[1].integer(), b[1].integer());
    ASSERT_EQ(b[2].shape, (Dims{2, 2}));
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(a[2].number(i), b[2].number(i), 1e-8);
  }
}

TEST(Minimize, AShortMemoryConvergesToo) {
  const Array start = Array::from<double>({-1.2, 1.0, 0.5, -0.3}, {4});
  const auto got = found(rosenbrock, start, {.history = 3, .iterations = 100}, true);
  EXPECT_TRUE(got[0].integer());
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(got[2].number(i), 1, 1e-6);
}

/// log(x - 1) has no value left of 1, where the first step leads.
TEST(Minimize, StepsBackFromWhereTheFunctionHasNoValue) {
  const TensorFn fn = [](const Tensors& x) {
    return Tensors{ops::sum(2.0 * x[0] - ops::log(x[0] - 1.0))};
  };
  const auto got = found(fn, Array::from<double>({1.2, 5}, {2}), {}, false);
  EXPECT_TRUE(got[0].integer());
  EXPECT_NEAR(got[2].number(0), 1.5, 1e-6);
  EXPECT_NEAR(got[2].number(1), 1.5, 1e-6);
}

TEST(Minimize, RejectsWhatDoesNotFit) {
  const Array start = Array::from<double>({1, 2}, {2});
  const TensorFn same = [](const Tensors& x) { return Tensors{x[0]}; };
  EXPECT_THROW(found(same, start, {}, false), Error);
  EXPECT_THROW(found(rosenbrock, Array::zeros(DType::kF64, {0}), {}, false), Error);
  EXPECT_THROW(found(rosenbrock, Array::zeros(DType::kI64, {4}), {}, true), Error);
  const Tensor square(Array::zeros(DType::kF64, {3, 3}));
  EXPECT_THROW(found(rosenbrock, Array::zeros(DType::kF64, {4}), {.inverse_hessian = square}, true),
               Error);
}

}  // namespace
}  // namespace paddle
