// A plan for one thread computes the bits of a plan for several, also where an operation sums in as
// many parts as there are threads.

#include <gtest/gtest.h>

#include <cstring>

#include "autograd/autograd.h"
#include "base/thread_scope.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

constexpr int kThreads = 3;

Array noise(const Dims& shape, uint64_t seed) {
  Array out = Array::empty(DType::kF32, shape);
  for (int64_t i = 0; i < out.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out.data<float>()[i] = static_cast<float>(static_cast<double>(seed >> 11) * 0x1p-53 - 0.5);
  }
  return out;
}

/// The loss and all gradients of a small network.
std::shared_ptr<ir::Function> training_function(const std::vector<Array>& inputs) {
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  ir::Tracer tracer(*function);
  const InterpreterScope scope(tracer);
  Tensors t;
  for (const Array& x : inputs)
    t.push_back(tracer.input({ir::PortKind::kValue, "x" + std::to_string(t.size())},
                             {x.dtype, to_shape(x.shape)}));
  Tensor x = ops::relu(ops::conv2d(t[0], t[1], {}, AttrValue(1), AttrValue(1)));
  x = ops::relu(ops::conv2d(x, t[2], {}, AttrValue(2), AttrValue(1)));
  // Short sums in the product: without AVX-512 oneDNN divides long ones by threads.
  x = ops::matmul(ops::mean(x, std::vector<int64_t>{2, 3}), t[3]);
  const Tensor loss = ops::mean(x * x);
  tracer.output({ir::PortKind::kValue, "loss"}, loss);
  size_t i = 0;
  for (const Tensor& gradient : autograd::grad({loss}, t))
    tracer.output({ir::PortKind::kValue, "gradient" + std::to_string(i++)}, gradient);
  runtime::optimize(*function);
  return function;
}

std::vector<Array> run(const std::shared_ptr<ir::Function>& function,
                       const std::vector<Array>& inputs, int threads, int summing_threads) {
  const ThreadScope scope(threads);
  runtime::Executable executable(function, {.plan = {.summing_threads = summing_threads}});
  executable.run(inputs);
  std::vector<Array> out;
  for (const Array& a : executable.run(inputs)) out.push_back(runtime::copied(a));
  return out;
}

TEST(SummingThreads, OneThreadGivesTheBitsOfSeveral) {
  const std::vector<Array> inputs = {noise({20, 3, 19, 17}, 1), noise({32, 3, 3, 3}, 2),
                                     noise({24, 32, 3, 3}, 3), noise({24, 12}, 4)};
  const auto function = training_function(inputs);
  const std::vector<Array> several = run(function, inputs, kThreads, 0);
  const std::vector<Array> one = run(function, inputs, 1, kThreads);
  ASSERT_EQ(several.size(), one.size());
  for (size_t i = 0; i < several.size(); ++i)
    EXPECT_EQ(std::memcmp(several[i].raw(), one[i].raw(),
                          static_cast<size_t>(storage_bytes(one[i].dtype, one[i].size()))),
              0)
        << function->outputs[i].name;
}

}  // namespace
}  // namespace paddle
