// A running step allocates nothing: every operator new between two runs of a plan is counted. The
// operations here run on our own kernels; oneDNN's own small allocations are not ours to count.

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "ir/tracer.h"
#include "ops/core/operators.h"
#include "ops/generated/ops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "support/allocations.h"

namespace paddle {
namespace {

TEST(SteadyStep, AllocatesNothing) {
#ifdef __SANITIZE_THREAD__
  set_thread_count(1);  // the threads of this form are made again for each region
#endif
  runtime::register_backends();
  auto function = std::make_shared<ir::Function>("f");
  {
    ir::Tracer tracer(*function);
    const InterpreterScope scope(tracer);
    const Tensor x =
        tracer.input({ir::PortKind::kValue, "x"}, {DType::kF32, {Dim::symbol("batch"), 64}});
    const Tensor p = tracer.input({ir::PortKind::kParameter, "p"}, {DType::kF32, {64}});
    const Tensor lr = tracer.input({ir::PortKind::kValue, "lr"}, {DType::kF32, {}});
    const Tensor y = ops::softmax(ops::tanh(x * p) + ops::exp(x * 0.1));
    const Tensor loss = ops::mean(ops::square(y));
    tracer.output({ir::PortKind::kValue, "loss"}, loss);
    tracer.output({ir::PortKind::kParameter, "p"},
                  ops::sgd_update(p, ops::sum(y * x, std::vector<int64_t>{0}), {}, lr)[0]);
  }
  runtime::optimize(*function);
  runtime::Executable executable(function);
  const std::vector<Array> inputs = {Array::zeros(DType::kF32, {32, 64}),
                                     Array::zeros(DType::kF32, {64}), Array::scalar(0.1f)};
  executable.run(inputs);
  executable.run(inputs);
  EXPECT_EQ(testing_support::count_allocations([&] {
              for (int i = 0; i < 10; ++i) executable.run(inputs);
            }),
            0);
}

}  // namespace
}  // namespace paddle
