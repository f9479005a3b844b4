// Which convolutions of a compiled function take fewer multiplications, and that the results stay.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/elementwise/loops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using namespace testing_support;

const char* const kNet =
    "module 'm' {\n  func 'f'(\n"
    "      %0 : float32[batch, 32, 17, 18] 'x',\n"
    "      %1 : float32[32, 32, 3, 3] parameter 'w',\n"
    "      %2 : float32[32] parameter 'b') {\n"
    "    %3 = conv2d(%0, %1, %2) {padding = 1} : float32[batch, 32, 17, 18]\n"
    "    %4 = ACTIVATION : float32[batch, 32, 17, 18]\n"
    "    %5 = conv2d(%4, %1, %2) {padding = 1} : float32[batch, 32, 17, 18]\n"
    "    %6 = add(%5, %0) : float32[batch, 32, 17, 18]\n"
    "    %7 = relu(%6) : float32[batch, 32, 17, 18]\n"
    "    return %7 'y'\n  }\n}\n";

class ConvFunctions : public testing::TestWithParam<const char*> {};

TEST_P(ConvFunctions, TakeItForConstantWeightsWithWhatFollows) {
  if (cpu::vector_bytes() < 32) GTEST_SKIP() << "needs AVX2";
  std::string text = kNet;
  text.replace(text.find("ACTIVATION"), 10, GetParam());
  const Array w = drawn({32, 32, 3, 3}, 1, 0.1f), b = drawn({32}, 2, 1);
  const auto compiled = [&](bool winograd, bool constant) {
    ir::Module module = ir::parse(text, "winograd_test.txt");
    if (constant) {
      module.functions[0]->bind_input(2, b);
      module.functions[0]->bind_input(1, w);
    }
    return runtime::compile(module.functions[0], {.prepare = {.allow_winograd = winograd}});
  };
  const auto implementations = [](runtime::Executable& f, const std::vector<Array>& inputs) {
    int count = 0;
    for (const runtime::Instruction& i : f.prepare(inputs).instructions())
      count += i.kernel && i.kernel->implementation() == "cpu:winograd4x4";
    return count;
  };
  const auto fast = compiled(true, true), direct = compiled(false, true);
  const auto variable = compiled(true, false);
  for (const int64_t batch : {1, 3}) {
    const Array x = drawn({batch, 32, 17, 18}, 3, 1);
    EXPECT_EQ(implementations(*fast, {x}), 2);
    EXPECT_EQ(implementations(*direct, {x}), 0);
    EXPECT_EQ(implementations(*variable, {x, w, b}), 0);
    const double difference = relative_difference(fast->run({x})[0], direct->run({x})[0]);
    EXPECT_LT(difference, 5e-6);
    EXPECT_GT(difference, 0) << "the same kernel ran";
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvFunctions,
                         testing::Values("relu(%3)", "silu(%3)", "gelu(%3)", "hardswish(%3)",
                                         "sigmoid(%3)", "relu6(%3)",
                                         "leaky_relu(%3) {negative_slope = 0.3}"));

TEST(Convolutions, ReadOneConstantAsWeightsOfTwoShapes) {
  if (cpu::vector_bytes() < 32) GTEST_SKIP() << "needs AVX2";
  const char* const text =
      "module 'm' {\n  func 'f'(\n"
      "      %0 : float32[1, 32, 17, 18] 'x',\n"
      "      %1 : float32[32, 32, 3, 3] parameter 'w') {\n"
      "    %2 = conv2d(%0, %1) {padding = 1} : float32[1, 32, 17, 18]\n"
      "    %3 = reshape(%1) {shape = [64, 16, 3, 3]} : float32[64, 16, 3, 3]\n"
      "    %4 = slice(%0) {axes = [1], starts = [0], ends = [16]} : float32[1, 16, 17, 18]\n"
      "    %5 = conv2d(%4, %3) {padding = 1} : float32[1, 64, 17, 18]\n"
      "    return %2 'y', %5 'z'\n  }\n}\n";
  const auto compiled = [&](bool winograd) {
    ir::Module module = ir::parse(text, "winograd_test.txt");
    module.functions[0]->bind_input(1, drawn({32, 32, 3, 3}, 1, 0.1f));
    return runtime::compile(module.functions[0], {.prepare = {.allow_winograd = winograd}});
  };
  const Array x = drawn({1, 32, 17, 18}, 3, 1);
  const auto winograd = compiled(true), direct = compiled(false);
  const auto got = winograd->run({x}), wanted = direct->run({x});
  for (const size_t i : {0, 1}) EXPECT_LT(relative_difference(got[i], wanted[i]), 5e-6) << i;
}

}  // namespace
}  // namespace paddle
