// Inference: constant weights are folded and packed, sums and activations join convolutions and
// products, and the results stay those of the function as it was.

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/compile.h"
#include "runtime/executable.h"
#include "support/numbers.h"

namespace paddle {
namespace {

const char* const kNet =
    "module 'm' {\n  func 'f'(\n"
    "      %0 : float32[batch, 32, 9, 7] 'x',\n"
    "      %1 : float32[32, 32, 3, 3] parameter 'w',\n"
    "      %2 : float32[32] parameter 'scale',\n"
    "      %3 : float32[32] parameter 'shift',\n"
    "      %4 : float32[32] state 'mean',\n"
    "      %5 : float32[32] state 'var',\n"
    "      %6 : float32[48, 32] parameter 'v',\n"
    "      %7 : float32[32] parameter 'b') {\n"
    "    %8 = conv2d(%0, %1, _) {padding = 1} : float32[batch, 32, 9, 7]\n"
    "    %9, %10, %11, %12, %13 = batch_norm(%8, %4, %5, %2, %3) : "
    "float32[batch, 32, 9, 7], float32[32], float32[32], float32[32], float32[32]\n"
    "    %14 = add(%9, %0) : float32[batch, 32, 9, 7]\n"
    "    %15 = relu(%14) : float32[batch, 32, 9, 7]\n"
    "    %16 = reshape(%15) {shape = [batch * 42, 48]} : float32[batch * 42, 48]\n"
    "    %17 = linear(%16, %6, %7) : float32[batch * 42, 32]\n"
    "    %18 = gelu(%17) : float32[batch * 42, 32]\n"
    "    return %18 'y', %15 'z'\n  }\n}\n";

Array values(const Dims& shape, double scale, double shift) {
  Array a = Array::zeros(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] =
        static_cast<float>(shift + scale * (static_cast<double>(i * 37 % 101) / 50.0 - 1));
  return a;
}

/// In the order of the inputs, without x.
std::vector<Array> weights() {
  return {values({32, 32, 3, 3}, 0.1, 0),
          values({32}, 0.5, 1),
          values({32}, 0.5, 0),
          values({32}, 1, 0),
          values({32}, 0.5, 1),
          values({48, 32}, 0.2, 0),
          values({32}, 1, 0)};
}

void run_passes(ir::Function& f, bool exact) { runtime::optimize(f, {.exact = exact}); }

TEST(Inference, FoldsPacksAndJoins) {
  ir::Module fixed = ir::parse(kNet, "inference_test.txt");
  const ir::Module plain = ir::parse(kNet, "inference_test.txt");
  const std::vector<Array> given = weights();
  for (size_t i = given.size(); i-- > 0;) fixed.functions[0]->bind_input(i + 1, given[i]);
  run_passes(*fixed.functions[0], false);
  run_passes(*plain.functions[0], true);
  ir::verify(*fixed.functions[0]);
  const std::string text = ir::print(*fixed.functions[0]);
  EXPECT_EQ(text.find("batch_norm"), std::string::npos);
  EXPECT_NE(text.find("fused("), text.rfind("fused(")) << "two groups are expected";

  runtime::Executable a(fixed.functions[0]), b(plain.functions[0]);
  for (const int64_t batch : {1, 4, 1}) {
    const Array x = values({batch, 32, 9, 7}, 1, 0.1);
    std::vector<Array> all = {x};
    all.insert(all.end(), given.begin(), given.end());
    const std::vector<Array> ya = a.run({x}), yb = b.run(all);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(ya[i].shape, yb[i].shape);
      EXPECT_LE(testing_support::relative_difference(ya[i], yb[i]), 1e-5) << "result " << i;
    }
  }
}

class Activations : public testing::TestWithParam<const char*> {};

TEST_P(Activations, JoinProductsAndConvolutions) {
  const std::string call = std::string("    %18 = ") + GetParam() + " : float32[batch * 42, 32]\n";
  std::string text = kNet;
  const size_t at = text.find("    %18 = ");
  text.replace(at, text.find('\n', at) + 1 - at, call);
  ir::Module joined = ir::parse(text, "inference_test.txt");
  const ir::Module plain = ir::parse(text, "inference_test.txt");
  const std::vector<Array> given = weights();
  for (size_t i = given.size(); i-- > 0;) joined.functions[0]->bind_input(i + 1, given[i]);
  run_passes(*joined.functions[0], false);
  run_passes(*plain.functions[0], true);
  // The activation is the last of a group that begins with the product.
  const std::string name = std::string(GetParam()).substr(0, std::string(GetParam()).find('('));
  const std::string printed = ir::print(*joined.functions[0]);
  const size_t product = printed.find("= linear(");
  ASSERT_NE(product, std::string::npos) << printed;
  EXPECT_LT(printed.find("= " + name + "(", product), printed.find("yield", product)) << printed;
  std::vector<Array> all = {values({3, 32, 9, 7}, 1, 0.1)};
  all.insert(all.end(), given.begin(), given.end());
  runtime::Executable a(joined.functions[0]), b(plain.functions[0]);
  const std::vector<Array> ya = a.run({all[0]}), yb = b.run(all);
  EXPECT_LE(testing_support::relative_difference(ya[0], yb[0]), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         testing::Values("relu(%17)", "relu6(%17)", "gelu(%17)", "silu(%17)",
                                         "hardswish(%17)", "sigmoid(%17)",
                                         "leaky_relu(%17) {negative_slope = 0.3}"));

TEST(Inference, ASquareConstantIsPackedForBothOrdersOfItsAxes) {
  const Array x = values({3, 8}, 1, 0), w = values({8, 8}, 1, 0.1);
  const ir::Module module = ir::parse(
      "module 'm' {\n  func 'f'(%0 : float32[3, 8] 'x', %1 : float32[8, 8] parameter 'w') {\n"
      "    %2 = matmul(%0, %1) : float32[3, 8]\n"
      "    %3 = matmul(%2, %1) {transpose_y = true} : float32[3, 8]\n"
      "    return %3 'y'\n  }\n}\n",
      "inference_test.txt");
  const std::shared_ptr<ir::Function>& function = module.functions[0];
  function->bind_input(1, w);
  runtime::Executable executable(function);
  const Array y = executable.run({x})[0].contiguous();
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 8; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 8; ++k)
        for (int64_t l = 0; l < 8; ++l)
          sum += x.number(i * 8 + l) * w.number(l * 8 + k) * w.number(j * 8 + k);
      EXPECT_NEAR(y.number(i * 8 + j), sum, 1e-4) << i << ", " << j;
    }
}

TEST(Inference, ANormThatOthersReadStays) {
  std::string text = kNet;
  text.replace(text.find("%15 'z'"), 7, "%8 'z'");
  ir::Module m = ir::parse(text, "inference_test.txt");
  const std::vector<Array> given = weights();
  for (size_t i = given.size(); i-- > 0;) m.functions[0]->bind_input(i + 1, given[i]);
  run_passes(*m.functions[0], true);
  EXPECT_NE(ir::print(*m.functions[0]).find("batch_norm("), std::string::npos);
}

}  // namespace
}  // namespace paddle
