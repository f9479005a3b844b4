// paddle launch -n 4 ranks: least squares over several ranks, each with rows of its own.

#include <paddle/paddle.h>

#include <cstdio>

using paddle::Array;
using paddle::call;
using paddle::Tensor;

int main() {
  try {
    paddle::Communicator run = paddle::Communicator::join();
    // y = 2 * x0 - x1, at points that depend on the rank.
    const auto own = static_cast<float>(run.rank());
    const Tensor x = Array::from<float>({2, 2}, {1, own, 1 - own, 1});
    const Tensor y = Array::from<float>({2, 1}, {2 - own, 2 * (1 - own) - 1});
    Array weights(paddle::DType::kFloat32, {2, 1});
    for (int step = 0; step < 1000; ++step) {
      const Tensor w = paddle::variable(weights);
      const Tensor loss =
          call("mean", {call("square", {call("sub", {call("matmul", {x, w}), y})})});
      const Array slope = run.all_reduce(paddle::gradients({loss}, {w})[0].array());
      weights = weights.clone();
      for (int i = 0; i < 2; ++i)
        weights.data<float>()[i] -= 0.1f * slope.data<float>()[i] / static_cast<float>(run.size());
    }
    if (run.rank() == 0)
      std::printf("weights of %d ranks: %.3f %.3f\n", run.size(), weights.data<float>()[0],
                  weights.data<float>()[1]);
  } catch (const paddle::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
