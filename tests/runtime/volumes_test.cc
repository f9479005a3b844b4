// Networks of volumes: they stay in one layout with their channels last, take norms, sums and
// activations into their convolutions, and give the results of the function as it was.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/elementwise/loops.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using testing_support::drawn;

/// Windows along all axes, in planes, across planes, and of one element with strides; pooling as
/// max_pool3d is made of.
const char* const kNet =
    "module 'm' {\n  func 'f'(\n"
    "      %0 : float32[batch, 3, 5, 12, 10] 'x',\n"
    "      %1 : float32[32, 3, 3, 5, 5] parameter 'w1',\n"
    "      %2 : float32[32, 32, 1, 3, 3] parameter 'w2',\n"
    "      %3 : float32[32, 32, 3, 1, 1] parameter 'w3',\n"
    "      %4 : float32[32, 32, 3, 3, 3] parameter 'w4',\n"
    "      %5 : float32[48, 16, 1, 1, 1] parameter 'w5',\n"
    "      %6 : float32[32] parameter 'mean',\n"
    "      %7 : float32[32] parameter 'var') {\n"
    "    %8 = conv3d(%0, %1, _) {stride = [1, 2, 2], padding = [1, 2, 2]} : "
    "float32[batch, 32, 5, 6, 5]\n"
    "    %9, %10, %11, %12, %13 = batch_norm(%8, %6, %7, %7, %6) {data_format = 'NCDHW'} : "
    "float32[batch, 32, 5, 6, 5], float32[32], float32[32], float32[32], float32[32]\n"
    "    %14 = relu(%9) : float32[batch, 32, 5, 6, 5]\n"
    "    %15 = conv3d(%14, %2, %6) {padding = [0, 1, 1]} : float32[batch, 32, 5, 6, 5]\n"
    "    %16 = conv3d(%15, %3, _) {padding = [1, 0, 0]} : float32[batch, 32, 5, 6, 5]\n"
    "    %17 = add(%16, %14) : float32[batch, 32, 5, 6, 5]\n"
    "    %18 = relu(%17) : float32[batch, 32, 5, 6, 5]\n"
    "    %19 = conv3d(%18, %4, %6) {padding = 1} : float32[batch, 32, 5, 6, 5]\n"
    "    %20 = transpose(%19) {perm = [0, 2, 3, 4, 1]} : float32[batch, 5, 6, 5, 32]\n"
    "    %21 = reshape(%20) {shape = [batch * 5, 6, 5, 32]} : float32[batch * 5, 6, 5, 32]\n"
    "    %22, %23 = max_pool2d(%21) {kernel_size = 2, data_format = 'NHWC'} : "
    "float32[batch * 5, 3, 2, 32], int32[batch * 5, 3, 2, 32]\n"
    "    %24 = reshape(%22) {shape = [batch, 5, 3, 2, 32]} : float32[batch, 5, 3, 2, 32]\n"
    "    %25 = transpose(%24) {perm = [0, 4, 1, 2, 3]} : float32[batch, 32, 5, 3, 2]\n"
    "    %26 = conv3d(%25, %5, _) {stride = 2, groups = 2} : float32[batch, 48, 3, 2, 1]\n"
    "    %27 = mean(%26) {axis = [2, 3, 4]} : float32[batch, 48]\n"
    "    return %19 'y', %27 'z'\n  }\n}\n";

/// A window per channel: with what follows it, with places apart, and with strides across planes.
const char* const kDepthwise =
    "module 'm' {\n  func 'f'(\n"
    "      %0 : float32[batch, 40, 5, 7, 6] 'x',\n"
    "      %1 : float32[40, 1, 3, 3, 3] parameter 'w',\n"
    "      %2 : float32[40] parameter 'b') {\n"
    "    %3 = conv3d(%0, %1, %2) {padding = 1, groups = 40} : float32[batch, 40, 5, 7, 6]\n"
    "    %4 = add(%3, %0) : float32[batch, 40, 5, 7, 6]\n"
    "    %5 = relu(%4) : float32[batch, 40, 5, 7, 6]\n"
    "    %6 = conv3d(%5, %1, _) {stride = [1, 2, 1], padding = [2, 1, 1], dilation = [2, 1, 1], "
    "groups = 40} : float32[batch, 40, 5, 4, 6]\n"
    "    %7 = conv3d(%6, %1, %2) {stride = 2, padding = 1, groups = 40} : "
    "float32[batch, 40, 3, 2, 3]\n"
    "    %8 = silu(%7) : float32[batch, 40, 3, 2, 3]\n"
    "    return %5 'y', %8 'z'\n  }\n}\n";

std::vector<Array> weights() {
  return {drawn({32, 3, 3, 5, 5}, 1, 0.2f),
          drawn({32, 32, 1, 3, 3}, 2, 0.1f),
          drawn({32, 32, 3, 1, 1}, 3, 0.2f),
          drawn({32, 32, 3, 3, 3}, 4, 0.1f),
          drawn({48, 16, 1, 1, 1}, 5, 1),
          drawn({32}, 6, 0.5f),
          drawn({32}, 7, 0.5f, 1)};
}

/// Compiled with constant weights; `exact` leaves the function as it is.
std::shared_ptr<ir::Function> compiled(const char* text, const std::vector<Array>& given,
                                       bool exact) {
  const ir::Module module = ir::parse(text, "volumes_test.txt");
  for (size_t i = given.size(); i-- > 0;) module.functions[0]->bind_input(i + 1, given[i]);
  runtime::optimize(*module.functions[0], {.exact = exact});
  ir::verify(*module.functions[0]);
  return module.functions[0];
}

/// Results for one input of these dims next to a batch, also in plans for one run and with fewer
/// multiplications, are those of the function as it was.
void expect_the_same(const char* text, const std::vector<Array>& given, const Dims& shape) {
  const auto with = [](bool winograd, bool skip_prepack) {
    runtime::ExecutableOptions options{1, {.check_memory = true, .profile = nullptr}};
    options.plan.prepare.allow_winograd = winograd;
    options.plan.prepare.skip_prepack = skip_prepack;
    return options;
  };
  runtime::Executable plain(compiled(text, given, true), with(false, false));
  for (const bool winograd : {false, true})
    for (const bool skip_prepack : {false, true}) {
      runtime::Executable fast(compiled(text, given, false), with(winograd, skip_prepack));
      for (const int64_t batch : {1, 3}) {
        Dims dims = shape;
        dims.insert(dims.begin(), batch);
        const Array x = drawn(dims, 8, 1);
        const std::vector<Array> wanted = plain.run({x}), got = fast.run({x});
        for (size_t i = 0; i < wanted.size(); ++i)
          EXPECT_LE(testing_support::relative_difference(got[i], wanted[i]), 1e-5)
              << "batch " << batch << ", result " << i;
      }
    }
}

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Volumes, HoldTheirChannelsTogether) {
  const std::string text = ir::print(*compiled(kNet, weights(), false));
  EXPECT_EQ(count(text, "= conv3d("), 5u) << text;
  EXPECT_EQ(count(text, "'NDHWC'"), 5u) << text;
  EXPECT_EQ(count(text, "= transpose("), 2u) << text;  // x and y
  EXPECT_EQ(count(text, "batch_norm("), 0u) << text;
  EXPECT_EQ(count(text, "= fused("), 2u) << text;
}

TEST(Volumes, GiveTheSameResults) { expect_the_same(kNet, weights(), {3, 5, 12, 10}); }

TEST(Volumes, DepthwiseWindowsGiveTheSameResults) {
  expect_the_same(kDepthwise, {drawn({40, 1, 3, 3, 3}, 1, 0.3f), drawn({40}, 2, 1)}, {40, 5, 7, 6});
}

TEST(Volumes, TakeFewerMultiplications) {
  if (cpu::vector_bytes() < 32) GTEST_SKIP() << "needs AVX2";
  runtime::ExecutableOptions options{1, {.profile = nullptr}};
  options.plan.prepare.allow_winograd = true;
  runtime::Executable f(compiled(kNet, weights(), false), options);
  int tiles = 0;
  for (const runtime::Instruction& i : f.prepare({drawn({1, 3, 5, 12, 10}, 9, 1)}).instructions())
    tiles += i.kernel && i.kernel->implementation().starts_with("cpu:winograd");
  EXPECT_EQ(tiles, 1);  // windows along all axes; those in planes are few
}

}  // namespace
}  // namespace paddle
