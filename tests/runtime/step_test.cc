// The two modes agree: what the tape computes eagerly, a traced, simplified and planned function
// computes as well, gradients and in-place writes included.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "ir/tracer.h"
#include "ops/core/call.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

using Fn = std::function<Tensors(const Tensors&)>;

std::vector<Array> eager(const Fn& fn, const std::vector<Array>& inputs) {
  runtime::EagerExecutor executor;
  const InterpreterScope a(executor);
  autograd::Tape tape;
  const InterpreterScope b(tape);
  const RandomScope random(Tensor(Array::from<uint64_t>({7, 1}, {2})));
  Tensors leaves;
  for (const Array& x : inputs) leaves.push_back(autograd::variable(Tensor(x)));
  std::vector<Array> out;
  for (const Tensor& t : fn(leaves)) out.push_back(t.array().contiguous());
  return out;
}

/// Traces on symbolic first dims, runs all passes, and executes.
std::vector<Array> compiled(const Fn& fn, const std::vector<Array>& inputs, bool check = true) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    Tensors traced;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Shape shape = to_shape(inputs[i].shape);
      if (!shape.empty()) shape[0] = Dim::symbol("n" + std::to_string(inputs[i].shape[0]));
      traced.push_back(
          tracer.input({ir::PortKind::kValue, "x" + std::to_string(i)}, {inputs[i].dtype, shape}));
    }
    const RandomScope random(Tensor(Array::from<uint64_t>({7, 1}, {2})));
    size_t i = 0;
    for (const Tensor& t : fn(traced))
      tracer.output({ir::PortKind::kValue, "y" + std::to_string(i++)}, t);
  }
  runtime::optimize(*function);
  runtime::Executable executable(function, {4, {.check_memory = check, .profile = nullptr}});
  executable.run(inputs);
  std::vector<Array> out;
  for (const Array& a : executable.run(inputs)) out.push_back(Array(a.contiguous()).cast(a.dtype));
  for (Array& a : out) {  // outputs lie in the arena, which ends with the executable
    Array own = Array::empty(a.dtype, a.shape);
    std::memcpy(own.raw(), a.raw(), static_cast<size_t>(storage_bytes(a.dtype, a.size())));
    a = own;
  }
  return out;
}

void expect_same(const Fn& fn, const std::vector<Array>& inputs, double tolerance = 1e-6) {
  const auto a = eager(fn, inputs), b = compiled(fn, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape, b[i].shape) << "output " << i;
    ASSERT_EQ(a[i].dtype, b[i].dtype);
    for (int64_t j = 0; j < a[i].size(); ++j)
      ASSERT_NEAR(a[i].number(j), b[i].number(j), tolerance * (1 + std::abs(a[i].number(j))))
          << "output " << i << " at " << j;
  }
}

Array ramp(Dims shape, double scale = 0.1, double offset = -0.7) {
  Array a = Array::empty(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = static_cast<float>(offset + scale * static_cast<double>(i % 17));
  return a;
}

TEST(BothModes, GradientsOfASmallNet) {
  expect_same(
      [](const Tensors& t) {
        const Tensor h = ops::relu(ops::linear(t[0], t[1], t[2]));
        const Tensor y = ops::softmax(ops::matmul(h, t[3]));
        const Tensor loss = ops::mean(ops::square(y - 0.3));
        Tensors out = autograd::grad({loss}, {t[0], t[1], t[2], t[3]});
        out.push_back(loss);
        return out;
      },
      {ramp({5, 4}), ramp({4, 6}, 0.2), ramp({6}, 0.3), ramp({6, 3}, 0.07, -0.2)});
}

TEST(BothModes, SecondOrder) {
  expect_same(
      [](const Tensors& t) {
        const Tensor y =
            ops::sum(ops::tanh(t[0]) * ops::exp(t[0]) + ops::pow(t[0], Tensor::number(3.0)));
        const Tensor g = autograd::grad({y}, {t[0]})[0];
        return autograd::grad({ops::sum(g * g)}, {t[0]});
      },
      {ramp({3, 4}, 0.05, 0.1)});
}

TEST(BothModes, WritesThroughViews) {
  expect_same(
      [](const Tensors& t) {
        const Tensor x = t[0] * 1.0;
        const Tensor row = ops::strided_slice(x, {0}, {Dim(1)}, {Dim(2)}, {1});
        const Tensor turned = ops::transpose(x, {1, 0});
        row.assign(row * 2.0 + 1.0);
        const Tensor loss = ops::sum(turned * turned);
        Tensors out = autograd::grad({loss}, {t[0]});
        out.push_back(ops::assign(turned));
        out.push_back(x);
        return out;
      },
      {ramp({3, 4})});
}

TEST(BothModes, BranchAndItsGradient) {
  const Fn fn = [](const Tensors& t) {
    const Tensor condition = ops::greater_than(ops::sum(t[0]), Tensor::number(0.0));
    const Tensors y = current_interpreter().branch(
        condition, [&](const Tensors&) { return Tensors{t[0] * 3.0}; },
        [&](const Tensors&) { return Tensors{ops::square(t[0])}; });
    Tensors out = autograd::grad({ops::sum(y[0])}, {t[0]});
    out.push_back(y[0]);
    return out;
  };
  expect_same(fn, {ramp({2, 3}, 0.1, 0.2)});
  expect_same(fn, {ramp({2, 3}, 0.1, -2.0)});
}

TEST(BothModes, LoopAndItsGradient) {
  expect_same(
      [](const Tensors& t) {
        const Tensors y = current_interpreter().loop(
            [&](const Tensors& s) {
              return Tensors{ops::less_than(s[1], Tensor::number(int64_t{4}))};
            },
            [&](const Tensors& s) {
              return Tensors{ops::tanh(s[0] * t[1]) + s[0], s[1] + Tensor::number(int64_t{1})};
            },
            {t[0], full_of({}, 0, DType::kI64)}, 10);
        Tensors out = autograd::grad({ops::sum(y[0])}, {t[0], t[1]});
        out.push_back(y[0]);
        return out;
      },
      {ramp({2, 3}), ramp({2, 3}, 0.2, 0.1)});
}

TEST(BothModes, DropoutIsTheSame) {
  expect_same(
      [](const Tensors& t) {
        return Tensors{ops::dropout(t[0], 0.4), ops::dropout(t[0], 0.4)};
      },
      {ramp({40, 10}, 0.1, 1)});
}

TEST(BothModes, ConvolutionAndPooling) {
  expect_same(
      [](const Tensors& t) {
        const Tensor y = ops::max_pool2d(
            ops::relu(ops::conv2d(t[0], t[1], t[2], AttrValue(1), AttrValue(1))), AttrValue(2))[0];
        Tensors out = autograd::grad({ops::sum(y * y)}, {t[0], t[1], t[2]});
        out.push_back(y);
        return out;
      },
      {ramp({2, 3, 6, 6}), ramp({4, 3, 3, 3}, 0.05), ramp({4}, 0.2)}, 1e-5);
}

TEST(BothModes, ManySizesOneTrace) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor x =
        tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {Dim::symbol("batch"), 3}});
    tracer.output({ir::PortKind::kValue, "y"}, ops::sum(ops::reshape(x, {Dim(-1)}) * 2.0));
  }
  runtime::Executable executable(function, {4, {}});
  for (int64_t n = 1; n <= 50; ++n) {
    Array x = Array::empty(DType::kF32, {n, 3});
    for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = 1;
    EXPECT_EQ(executable.run({x})[0].number(), 6.0 * static_cast<double>(n));
  }
}

}  // namespace
}  // namespace paddle
