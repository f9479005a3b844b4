// Operations and gradients: least squares by gradient descent, and a second derivative.

#include <paddle/paddle.h>

#include <cstdio>

using paddle::Array;
using paddle::call;
using paddle::Tensor;

int main() {
  try {
    // y = 2 * x0 - x1, so that is what the weights become.
    const Tensor x = Array::from<float>({4, 2}, {0, 1, 1, 0, 1, 1, 2, 1});
    const Tensor y = Array::from<float>({4, 1}, {-1, 2, 1, 3});
    Array weights(paddle::DType::kFloat32, {2, 1});
    for (int step = 0; step < 500; ++step) {
      const Tensor w = paddle::variable(weights);
      const Tensor error = call("sub", {call("matmul", {x, w}), y});
      const Tensor loss = call("mean", {call("square", {error})});
      const Array slope = paddle::gradients({loss}, {w})[0].array();
      // Arrays share their elements when they are copied; the next step gets an array of its own.
      weights = weights.clone();
      for (int i = 0; i < 2; ++i) weights.data<float>()[i] -= 0.1f * slope.data<float>()[i];
    }
    std::printf("weights %.3f %.3f\n", weights.data<float>()[0], weights.data<float>()[1]);

    // The gradient is a tensor with a record of its own: the second derivative of t^3 at 2 is 12.
    const Tensor t = paddle::variable(Array::scalar(2.0));
    const Tensor cube = call("pow", {t, 3.0});
    const Tensor first = paddle::gradients({cube}, {t})[0];
    const Tensor second = paddle::gradients({first}, {t})[0];
    std::printf("derivatives %.1f %.1f\n", first.array().data<double>()[0],
                second.array().data<double>()[0]);

    // Attributes by name.
    const Tensor p = call("softmax", {Array::from<float>({1, 2}, {0, 0})}, {{"axis", -1}});
    std::printf("softmax %s\n", p.array().text().c_str());
  } catch (const paddle::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
