// A training step allocates nothing once its shapes have been seen: from a batch to its loss, every
// operator new is counted. The model here has no matrix products; oneDNN's own small allocations
// are not ours to count.

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "config/diagnostics.h"
#include "config/document.h"
#include "support/allocations.h"
#include "train/session/session.h"

namespace paddle::train {
namespace {

constexpr const char* kModel = R"(
inputs: {x: 'float32[n, 64]'}
model: |
  return tanh(x * param('gain', [64], init=0.5))
)";

StepDefinition definition() {
  config::Diagnostics diagnostics;
  StepDefinition d;
  d.models = {{"", lang::read_program(config::parse_document(kModel, "model.yaml"), {})}};
  d.loss =
      lang::read_code(config::parse_document("mean(square(output - x))", "loss.yaml"), diagnostics);
  diagnostics.raise();
  d.optimizers = {{"", std::make_shared<optim::Optimizer>(optim::OptimizerOptions{})}};
  return d;
}

TEST(SteadyTraining, AllocatesNothing) {
#ifdef __SANITIZE_THREAD__
  set_thread_count(1);  // the threads of this form are made again for each region
#endif
  program::ParameterStore store;
  Session session(std::make_shared<Step>(definition()),
                  {{"x", {DType::kF32, {Dim::symbol("n"), 64}}}}, store, {});
  session.prepare();
  std::vector<Array> batches[2];
  for (auto& batch : batches) batch = {Array::from(std::vector<float>(32 * 64, 0.5f), {32, 64})};
  constexpr double kWhole = 1;
  const double rate = 1e-3;
  StepScalars numbers{1, {&rate, 1}};
  double first = 0, last = 0;
  const auto step = [&] {
    last = session.train({&batches[numbers.step % 2], 1}, {&kWhole, 1}, numbers);
    ++numbers.step;
  };
  step();
  first = last;
  step();
  EXPECT_EQ(testing_support::count_allocations([&] {
              for (int i = 0; i < 10; ++i) step();
            }),
            0);
  EXPECT_LT(last, first);
}

}  // namespace
}  // namespace paddle::train
