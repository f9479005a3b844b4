// A prediction allocates nothing once its shapes have been seen: every operator new is counted. The
// model here has no matrix products; oneDNN's own small allocations are not ours to count.

#include <cmath>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "program/model.h"
#include "support/allocations.h"

namespace paddle::infer {
namespace {

TEST(SteadyPrediction, AllocatesNothing) {
#ifdef __SANITIZE_THREAD__
  set_thread_count(1);  // the threads of this form are made again for each region
#endif
  const std::string path =
      testing::TempDir() + "/paddle_steady_" + std::to_string(::getpid()) + ".yaml";
  std::ofstream(path) << "inputs: {x: 'float32[n, 64]'}\n"
                         "model: return tanh(x * param('gain', [64], init=0.5))\n";
  const auto model = program::load_model(path, {});
  std::filesystem::remove(path);
  const std::vector<Array> inputs[2] = {{Array::from(std::vector<float>(32 * 64, 1), {32, 64})},
                                        {Array::from(std::vector<float>(32 * 64, 2), {32, 64})}};
  double sum = 0;
  const auto predict = [&](int i) { sum += model->run(inputs[i % 2])[0].number(5); };
  predict(0);
  predict(1);
  EXPECT_NEAR(sum, std::tanh(0.5) + std::tanh(1.0), 1e-6);
  EXPECT_EQ(testing_support::count_allocations([&] {
              for (int i = 0; i < 10; ++i) predict(i);
            }),
            0);
  EXPECT_NEAR(sum, 6 * (std::tanh(0.5) + std::tanh(1.0)), 1e-6);
}

}  // namespace
}  // namespace paddle::infer
