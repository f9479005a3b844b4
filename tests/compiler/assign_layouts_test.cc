// Layout assignment: which operations move to channels last, which transposes remain, and that
// results stay the same. tests/passes/assign_layouts*.ir show its output.

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/compile.h"
#include "runtime/executable.h"
#include "support/numbers.h"

namespace paddle {
namespace {

ir::Module module_of(const std::string& body, const std::string& inputs) {
  return ir::parse("module 'm' {\n  func 'f'(\n" + inputs + ") {\n" + body + "  }\n}\n",
                   "layout_test.txt");
}

void run_passes(ir::Function& f, bool exact) { runtime::optimize(f, {.exact = exact}); }

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

/// A residual block, forward and backward.
const char* const kInputs =
    "      %0 : float32[batch, 3, 12, 10] 'x',\n"
    "      %1 : float32[32, 3, 3, 3] 'w1',\n"
    "      %2 : float32[32, 32, 3, 3] 'w2',\n"
    "      %3 : float32[32] 'mean',\n"
    "      %4 : float32[32] 'var',\n"
    "      %5 : float32[32] 'scale',\n"
    "      %6 : float32[32] 'shift',\n"
    "      %7 : float32[batch, 32] 'g'";
const char* const kBlock =
    "    %21 = constant float32[] [0.0]\n"
    "    %8 = conv2d(%0, %1, _) {padding = 1} : float32[batch, 32, 12, 10]\n"
    "    %9, %10 = max_pool2d(%8) {kernel_size = 3, stride = 2, padding = 1} : "
    "float32[batch, 32, 6, 5], int32[batch, 32, 6, 5]\n"
    "    %11 = conv2d(%9, %2, _) {padding = 1} : float32[batch, 32, 6, 5]\n"
    "    %12, %13, %14, %15, %16 = batch_norm(%11, %3, %4, %5, %6) {training = true} : "
    "float32[batch, 32, 6, 5], float32[32], float32[32], float32[32], float32[32]\n"
    "    %17 = add(%12, %9) : float32[batch, 32, 6, 5]\n"
    "    %18 = relu(%17) : float32[batch, 32, 6, 5]\n"
    "    %19 = mean(%18) {axis = [2, 3]} : float32[batch, 32]\n"
    "    %20 = reshape(%7) {shape = [batch, 32, 1, 1]} : float32[batch, 32, 1, 1]\n"
    "    %22 = greater_than(%18, %21) : bool[batch, 32, 6, 5]\n"
    "    %23 = where(%22, %20, %21) : float32[batch, 32, 6, 5]\n"
    "    %24, %25, %26 = batch_norm_grad(%23, %11, %15, %16, %5) : "
    "float32[batch, 32, 6, 5], float32[32], float32[32]\n"
    "    %27 = conv2d_input_grad(%2, %24) {input_shape = [batch, 32, 6, 5], stride = [1, 1], "
    "padding = [1, 1, 1, 1], dilation = [1, 1]} : float32[batch, 32, 6, 5]\n"
    "    %28 = conv2d_weight_grad(%9, %24) {weight_shape = [32, 32, 3, 3], stride = [1, 1], "
    "padding = [1, 1, 1, 1], dilation = [1, 1]} : float32[32, 32, 3, 3]\n"
    "    %29 = add(%27, %23) : float32[batch, 32, 6, 5]\n"
    "    %30 = max_pool2d_grad(%29, %10) {input_shape = [batch, 32, 12, 10]} : "
    "float32[batch, 32, 12, 10]\n"
    "    %31 = conv2d_weight_grad(%0, %30) {weight_shape = [32, 3, 3, 3], stride = [1, 1], "
    "padding = [1, 1, 1, 1], dilation = [1, 1]} : float32[32, 3, 3, 3]\n"
    "    return %19 'y', %13 'new_mean', %14 'new_var', %25 'dscale', %26 'dshift', %28 'dw2', "
    "%31 'dw1', %18 'z'\n";

Array values(const Dims& shape, double scale, double shift) {
  Array a = Array::zeros(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] =
        static_cast<float>(shift + scale * (static_cast<double>(i * 37 % 101) / 50.0 - 1));
  return a;
}

/// Expects `left` transposes in the optimized function, and an unchanged result.
void expect_transposes(size_t left, const std::string& body, const std::string& inputs,
                       const std::vector<Array>& given) {
  ir::Module fast = module_of(body, inputs), exact = module_of(body, inputs);
  run_passes(*fast.functions[0], false);
  run_passes(*exact.functions[0], true);
  ir::verify(fast);
  EXPECT_EQ(count(ir::print(fast), "= transpose("), left) << ir::print(fast);
  const runtime::ExecutableOptions options{1, {.check_memory = true, .profile = nullptr}};
  runtime::Executable a(fast.functions[0], options), b(exact.functions[0], options);
  const Array p = a.run(given)[0].contiguous(), q = b.run(given)[0].contiguous();
  ASSERT_EQ(p.shape, q.shape);
  for (int64_t i = 0; i < p.size(); ++i) ASSERT_NEAR(p.number(i), q.number(i), 1e-5);
}

TEST(AssignLayouts, CoversForwardAndBackward) {
  ir::Module m = module_of(kBlock, kInputs);
  run_passes(*m.functions[0], false);
  ir::verify(m);
  const std::string text = ir::print(m);
  EXPECT_EQ(count(text, "'NHWC'"), 9u) << text;  // 2 + 3 convolutions, pool and norm, twice each
  // The input, the gradient of the mean, and the result z.
  EXPECT_EQ(count(text, "= transpose("), 3u) << text;
  EXPECT_EQ(count(text, "batch_norm("), 0u) << text;
  EXPECT_NE(text.find("float32[batch, 6, 5, 32]"), std::string::npos);
}

TEST(AssignLayouts, KeepsResults) {
  for (const int64_t batch : {1, 5}) {
    ir::Module fast = module_of(kBlock, kInputs), exact = module_of(kBlock, kInputs);
    run_passes(*fast.functions[0], false);
    run_passes(*exact.functions[0], true);
    ASSERT_EQ(count(ir::print(exact), "NHWC"), 0u);
    const std::vector<Array> inputs = {values({batch, 3, 12, 10}, 1, 0.1),
                                       values({32, 3, 3, 3}, 0.3, 0),
                                       values({32, 32, 3, 3}, 0.1, 0),
                                       values({32}, 1, 0),
                                       values({32}, 0.5, 1),
                                       values({32}, 0.5, 1),
                                       values({32}, 0.5, 0),
                                       values({batch, 32}, 1, 0)};
    runtime::ExecutableOptions options{1, {.check_memory = true, .profile = nullptr}};
    runtime::Executable a(fast.functions[0], options), b(exact.functions[0], options);
    const std::vector<Array> ya = a.run(inputs), yb = b.run(inputs);
    ASSERT_EQ(ya.size(), yb.size());
    for (size_t i = 0; i < ya.size(); ++i)
      EXPECT_LE(testing_support::relative_difference(ya[i], yb[i]), 2e-5)
          << "batch " << batch << ", result " << i;
  }
}

TEST(AssignLayouts, StartsAtEightChannelsIfOthersHaveMore) {
  const auto moved = [](const std::string& channels) {
    const std::string inputs =
        "      %0 : float32[batch, 3, 8, 8] 'x',\n      %1 : float32[8, 3, 3, 3] 'a',\n"
        "      %2 : float32[" +
        channels + ", 8, 3, 3] 'b'";
    ir::Module m = module_of(
        "    %3 = conv2d(%0, %1, _) : float32[batch, 8, 6, 6]\n"
        "    %4 = conv2d(%3, %2, _) : float32[batch, " +
            channels + ", 4, 4]\n    return %4 'y'\n",
        inputs);
    run_passes(*m.functions[0], false);
    return count(ir::print(m), "'NHWC'");
  };
  EXPECT_EQ(moved("32"), 2u);
  EXPECT_EQ(moved("31"), 0u);
}

TEST(AssignLayouts, ConvertsAxisAttributes) {
  // As in the neck of a detector: slices, padding, repeated rows and columns, concatenated
  // channels.
  const std::string body =
      "    %3 = conv2d(%0, %1, _) {padding = 1} : float32[batch, 32, 4, 5]\n"
      "    %4 = index_select(%3, %2) {axis = 2} : float32[batch, 32, 8, 5]\n"
      "    %5 = strided_slice(%4) {axes = [1, -1], starts = [8, 1], ends = [32, 5], "
      "strides = [1, 1]} : float32[batch, 24, 8, 4]\n"
      "    %6 = pad(%5) {pad = [0, 0, 0, 0, 2, 1, 0, 3], value = 0.5} : "
      "float32[batch, 24, 11, 7]\n"
      "    %7 = concat([%6, %6]) {axis = -3} : float32[batch, 48, 11, 7]\n"
      "    %8 = softmax(%7) {axis = 1} : float32[batch, 48, 11, 7]\n"
      "    %10 = conv2d(%8, %9, _) : float32[batch, 32, 11, 7]\n"
      "    return %10 'y'\n";
  const std::string inputs =
      "      %0 : float32[batch, 32, 4, 5] 'x',\n      %1 : float32[32, 32, 3, 3] 'w',\n"
      "      %2 : int64[8] 'rows',\n      %9 : float32[32, 48, 1, 1] 'v'";
  expect_transposes(
      2, body, inputs,  // x and y
      {values({2, 32, 4, 5}, 1, 0), values({32, 32, 3, 3}, 0.3, 0),
       Array::from<int64_t>({0, 0, 1, 1, 2, -2, 3, -1}, {8}), values({32, 48, 1, 1}, 1, 0)});
}

/// An operation on an image `%3` of [batch, 32, 6, 5], and its result's type.
struct AlongAxis {
  std::string op, call, type;
};

const std::vector<AlongAxis>& along_axes() {
  static const std::vector<AlongAxis> all = [] {
    std::vector<AlongAxis> out;
    // Reductions take one axis or several, count from the front or the back, keep axes or not.
    for (const char* op : {"sum", "mean", "max", "min", "prod", "all", "any", "logsumexp"}) {
      const std::string type = op[0] == 'a' ? "bool" : "float32";
      out.push_back({op, "{axis = 1}", type + "[batch, 6, 5]"});
      out.push_back({op, "{axis = [1, -1]}", type + "[batch, 6]"});
      out.push_back({op, "{axis = [-3], keepdim = true}", type + "[batch, 1, 6, 5]"});
      out.push_back({op, "{axis = [2, 3]}", type + "[batch, 32]"});
      out.push_back({op, "", type + "[]"});
    }
    for (const char* op : {"argmax", "argmin"}) {
      out.push_back({op, "{axis = 1}", "int64[batch, 6, 5]"});
      out.push_back({op, "{axis = -3, keepdim = true}", "int64[batch, 1, 6, 5]"});
      out.push_back({op, "{axis = 2, keepdim = true}", "int64[batch, 32, 1, 5]"});
      out.push_back({op, "{axis = -1}", "int64[batch, 32, 6]"});
      out.push_back({op, "{axis = 0}", "int64[32, 6, 5]"});
      out.push_back({op, "", "int64[]"});
    }
    for (const char* op : {"softmax", "log_softmax"})
      for (const char* axis : {"1", "-3", "2", "-1", "0"})
        out.push_back({op, str("{axis = ", axis, "}"), "float32[batch, 32, 6, 5]"});
    return out;
  }();
  return all;
}

TEST(AssignLayouts, KeepsTheFormOfAxesAndTheResults) {
  const std::string inputs =
      "      %0 : float32[batch, 3, 6, 5] 'x',\n      %1 : float32[32, 3, 1, 1] 'w'";
  for (const AlongAxis& c : along_axes()) {
    SCOPED_TRACE(c.op + " " + c.call);
    const std::string body =
        "    %3 = conv2d(%0, %1, _) : float32[batch, 32, 6, 5]\n"
        "    %4 = " +
        c.op + "(%3) " + c.call + " : " + c.type + "\n    return %4 'y'\n";
    ir::Module fast = module_of(body, inputs), exact = module_of(body, inputs);
    run_passes(*fast.functions[0], false);
    run_passes(*exact.functions[0], true);
    ir::verify(fast);
    EXPECT_EQ(count(ir::print(fast), "'NHWC'"), 1u);
    const runtime::ExecutableOptions options{1, {.check_memory = true, .profile = nullptr}};
    runtime::Executable a(fast.functions[0], options), b(exact.functions[0], options);
    const std::vector<Array> given = {values({2, 3, 6, 5}, 1, 0.3), values({32, 3, 1, 1}, 0.7, 0)};
    const Array p = a.run(given)[0].contiguous(), q = b.run(given)[0].contiguous();
    ASSERT_EQ(p.shape, q.shape);
    ASSERT_EQ(p.dtype, q.dtype);
    for (int64_t i = 0; i < p.size(); ++i)
      EXPECT_NEAR(p.number(i), q.number(i), 1e-5 * (1 + std::abs(q.number(i)))) << i;
  }
}

TEST(AssignLayouts, IsTestedForEveryOperationThatItMoves) {
  // Those of several operands, and of scales, stand in tests of their own.
  std::set<std::string> covered = {"index_select", "strided_slice",    "concat",        "pad",
                                   "index_add",    "quantize_dynamic", "sum_of_squares"};
  for (const AlongAxis& c : along_axes()) covered.insert(c.op);
  for (const Op* op : all_ops())
    if (op->has(kLayoutTransparent) || op->has(kReduction)) {
      EXPECT_TRUE(covered.contains(std::string(op->name()))) << op->name();
    }
}

TEST(AssignLayouts, HoldsWhereImagesOfOneRowAreLines) {
  // As one-dimensional convolutions come from files, with what lies between them and a linear
  // layer after them.
  const std::string body =
      "    %4 = unsqueeze(%0) {axis = [2]} : float32[batch, 32, 1, 9]\n"
      "    %5 = conv2d(%4, %1, _) {padding = [0, 1]} : float32[batch, 32, 1, 9]\n"
      "    %6 = squeeze(%5) {axis = [-2]} : float32[batch, 32, 9]\n"
      "    %7 = relu(%6) : float32[batch, 32, 9]\n"
      "    %8 = add(%7, %2) : float32[batch, 32, 9]\n"
      "    %9 = mean(%8) {axis = [2], keepdim = true} : float32[batch, 32, 1]\n"
      "    %10 = multiply(%8, %9) : float32[batch, 32, 9]\n"
      "    %11 = unsqueeze(%10) {axis = [-1]} : float32[batch, 32, 9, 1]\n"
      "    %12 = squeeze(%11) {axis = 3} : float32[batch, 32, 9]\n"
      "    %13 = unsqueeze(%12) {axis = [2]} : float32[batch, 32, 1, 9]\n"
      "    %14 = conv2d(%13, %1, _) {padding = [0, 1]} : float32[batch, 32, 1, 9]\n"
      "    %15 = squeeze(%14) {axis = [2]} : float32[batch, 32, 9]\n"
      "    %16 = transpose(%15) {perm = [0, 2, 1]} : float32[batch, 9, 32]\n"
      "    %17 = matmul(%16, %3) : float32[batch, 9, 16]\n"
      "    return %17 'y'\n";
  const std::string inputs =
      "      %0 : float32[batch, 32, 9] 'x',\n      %1 : float32[32, 32, 1, 3] 'w',\n"
      "      %2 : float32[32, 1] 'b',\n      %3 : float32[32, 16] 'v'";
  expect_transposes(2, body, inputs,  // x, and b, of which it is a view
                    {values({2, 32, 9}, 1, 0), values({32, 32, 1, 3}, 0.1, 0),
                     values({32, 1}, 1, 0), values({32, 16}, 0.2, 0)});
}

TEST(AssignLayouts, LeavesFewChannelsAndPaddingPerAxisAlone) {
  ir::Module few =
      module_of("    %2 = conv2d(%0, %1, _) : float32[batch, 6, 10, 10]\n    return %2 'y'\n",
                "      %0 : float32[batch, 1, 12, 12] 'x',\n      %1 : float32[6, 1, 3, 3] 'w'");
  run_passes(*few.functions[0], false);
  EXPECT_EQ(count(ir::print(few), "NHWC"), 0u);
  ir::Module padded = module_of(
      "    %2 = conv2d(%0, %1, _) {padding = [[0, 0], [0, 0], [1, 0], [0, 1]]} : "
      "float32[batch, 64, 11, 11]\n    return %2 'y'\n",
      "      %0 : float32[batch, 64, 12, 12] 'x',\n      %1 : float32[64, 64, 3, 3] 'w'");
  run_passes(*padded.functions[0], false);
  ir::verify(padded);
  EXPECT_EQ(count(ir::print(padded), "NHWC"), 0u);
}

TEST(Lowering, MakesSmallPowersProducts) {
  const auto powers = [](const std::string& exponent, const std::string& dtype) {
    ir::Module m = module_of("    %1 = constant " + dtype + "[] [" + exponent +
                                 "]\n    %2 = pow(%0, %1) : " + dtype +
                                 "[n]\n    %3 = sum(%2) : " + dtype + "[]\n    return %3 'y'\n",
                             "      %0 : " + dtype + "[n] 'x'");
    run_passes(*m.functions[0], false);
    ir::verify(m);
    if (dtype == "float32") {
      runtime::Executable executable(m.functions[0], {1, {true, nullptr}});
      const Array x = values({7}, 1.5, 0.25);
      double sum = 0;
      for (int64_t i = 0; i < x.size(); ++i) sum += std::pow(x.number(i), std::stod(exponent));
      EXPECT_NEAR(executable.run({x})[0].number(), sum, 1e-5);
    }
    return count(ir::print(m), "= pow(");
  };
  EXPECT_EQ(powers("1.0", "float32"), 0u);
  EXPECT_EQ(powers("2.0", "float32"), 0u);
  EXPECT_EQ(powers("3.0", "float32"), 0u);
  EXPECT_EQ(powers("4.0", "float32"), 1u);
  EXPECT_EQ(powers("3.0", "bfloat16"), 1u);  // it would be rounded twice
}

}  // namespace
}  // namespace paddle
