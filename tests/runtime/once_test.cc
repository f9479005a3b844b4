// Plans that run once read constants in place, at any address, and return the same results.
// Code inside a loop runs many times and is prepacked.

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/compile.h"
#include "runtime/executable.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using namespace testing_support;

const char* const kNet =
    "module 'm' {\n  func 'f'(\n"
    "      %0 : float32[batch, 32, 9, 10] 'x',\n"
    "      %1 : float32[32, 32, 3, 3] parameter 'narrow',\n"
    "      %2 : float32[48, 32, 1, 1] parameter 'point',\n"
    "      %3 : float32[48, 20] parameter 'last',\n"
    "      %4 : float32[7, 20] parameter 'turned') {\n"
    "    %5 = conv2d(%0, %1, _) {padding = 1} : float32[batch, 32, 9, 10]\n"
    "    %6 = relu(%5) : float32[batch, 32, 9, 10]\n"
    "    %7 = conv2d(%6, %2, _) {stride = [2, 2]} : float32[batch, 48, 5, 5]\n"
    "    %8 = mean(%7) {axis = [2, 3]} : float32[batch, 48]\n"
    "    %9 = matmul(%8, %3) : float32[batch, 20]\n"
    "    %10 = matmul(%9, %4) {transpose_y = true} : float32[batch, 7]\n"
    "    return %10 'y'\n  }\n}\n";

TEST(Once, GivesWhatRepeatedRunsDo) {
  const std::vector<Array> weights = {drawn({32, 32, 3, 3}, 1, 0.1f),
                                      drawn({48, 32, 1, 1}, 2, 0.2f), drawn({48, 20}, 3, 0.2f),
                                      drawn({7, 20}, 4, 0.3f)};
  const auto compiled = [&](bool once) {
    ir::Module module = ir::parse(kNet, "once_test.txt");
    for (size_t i = weights.size(); i-- > 0;)
      module.functions[0]->bind_input(1 + i, misplaced(weights[i]));
    return runtime::compile(module.functions[0],
                            {.prepare = {.allow_winograd = true, .skip_prepack = once}});
  };
  const auto once = compiled(true), often = compiled(false);
  for (const int64_t batch : {1, 5}) {
    const Array x = drawn({batch, 32, 9, 10}, 5, 1);
    const Array got = once->run({x})[0].contiguous(), wanted = often->run({x})[0].contiguous();
    const Array again = once->run({x})[0];
    ASSERT_EQ(got.shape, (Dims{batch, 7}));
    for (int64_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(got.number(i), wanted.number(i), 1e-5);
      EXPECT_EQ(got.number(i), again.number(i));
    }
    // No weight was brought to another place: all are read from where they lie.
    for (const runtime::Instruction& i : once->prepare({x}).instructions())
      for (size_t k = 0; i.kernel && i.operation && k < i.operands.size(); ++k)
        if (i.operation->op->name() != "fused" && k == 1) {
          EXPECT_FALSE(i.kernel->reads(k)) << i.operation->op->name();
        }
  }
}

TEST(Once, DoesNotHoldInLoops) {
  const char* const text =
      "module 'm' {\n  func 'f'(\n"
      "      %0 : float32[1, 64, 4, 4] 'x',\n"
      "      %1 : float32[64, 64, 5, 5] parameter 'w') {\n"
      "    %2 = constant int64[] [0]\n"
      "    %3 = constant int64[] [3]\n"
      "    %4 = constant int64[] [1]\n"
      "    %5, %6 = cf.while([%0, %2]) {max_steps = -1} : float32[1, 64, 4, 4], int64[] "
      "(%7 : float32[1, 64, 4, 4], %8 : int64[]) {\n"
      "      %9 = less_than(%8, %3) : bool[]\n      yield %9\n    } "
      "(%10 : float32[1, 64, 4, 4], %11 : int64[]) {\n"
      "      %12 = conv2d(%10, %1, _) {padding = [2, 2, 2, 2]} : float32[1, 64, 4, 4]\n"
      "      %13 = add(%11, %4) : int64[]\n      yield %12, %13\n    }\n"
      "    %14 = conv2d(%5, %1, _) {padding = [2, 2, 2, 2]} : float32[1, 64, 4, 4]\n"
      "    return %14 'y'\n  }\n}\n";
  ir::Module module = ir::parse(text, "once_test.txt");
  const Array w = drawn({64, 64, 5, 5}, 1, 0.1f);
  module.functions[0]->bind_input(1, w);
  const auto f = runtime::compile(module.functions[0],
                                  {.prepare = {.allow_winograd = true, .skip_prepack = true}});
  const size_t weight_bytes = static_cast<size_t>(w.size()) * sizeof(float);
  int inside = 0, outside = 0;
  const auto is_convolution = [](const runtime::Instruction& i) {
    return i.kernel && i.operation && i.operation->op->name() == "conv2d";
  };
  for (const runtime::Instruction& i : f->prepare({drawn({1, 64, 4, 4}, 2, 1)}).instructions()) {
    if (is_convolution(i)) {
      ++outside;
      EXPECT_GE(i.kernel->scratch_bytes(), weight_bytes);
    }
    for (const auto& block : i.blocks)
      for (const runtime::Instruction& inner : block)
        if (is_convolution(inner)) {
          ++inside;
          EXPECT_LT(inner.kernel->scratch_bytes(), weight_bytes);
        }
  }
  EXPECT_EQ(inside, 1);
  EXPECT_EQ(outside, 1);
}

}  // namespace
}  // namespace paddle
