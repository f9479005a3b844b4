// Times eager calls of the library on small arrays: eager_calls [CALLS] prints nanoseconds for each
// call as JSON. tests/bench/eager_calls.py compares them with PyTorch.

#include <paddle/ops.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

template <class Body>
double nanoseconds(int times, Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) body();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / times;
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::max(1, std::atoi(argv[1])) : 100000;
  const paddle::Array ones = paddle::Array::from<float>({8}, {1, 1, 1, 1, 1, 1, 1, 1});
  const paddle::Tensor x = ones, y = ones, w = paddle::variable(ones);
  const auto add = [&] { paddle::call("add", {x, y}); };
  const auto add_recorded = [&] { paddle::call("add", {w, y}); };
  const auto backward = [&] {
    paddle::Tensor sum = w;
    for (int i = 0; i < 100; ++i) sum = paddle::call("add", {sum, y});
    paddle::call("sum", {sum}).backward();
    w.clear_gradient();
  };
  nanoseconds(calls / 10 + 1, add);
  nanoseconds(calls / 10 + 1, add_recorded);
  nanoseconds(calls / 1000 + 1, backward);
  std::printf("{\"add\": %.1f, \"add_recorded\": %.1f, \"backward_100\": %.1f}\n",
              nanoseconds(calls, add), nanoseconds(calls, add_recorded),
              nanoseconds(calls / 100 + 1, backward));
}
