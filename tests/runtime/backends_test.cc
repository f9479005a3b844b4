// Kernels of both backends for the same call: each is taken when it is asked for, and they agree.
// Our own loops are compared with references elsewhere (tests/op).

#include <gtest/gtest.h>

#include <cmath>

#include "ir/module.h"
#include "kernels/elementwise/loops.h"
#include "ops/core/kernel.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "support/numbers.h"
#include "tensor/random.h"

namespace paddle {
namespace {

struct Case {
  std::string inputs, call, results;
  double tolerance = 2e-5;                     ///< of the largest element of each result
  std::string own = "cpu", other = "onednn:";  ///< our implementation; how the other one's begins
};

std::shared_ptr<ir::Function> function_of(const Case& c) {
  ir::Module m = ir::parse(str("module 'm' {\n  func 'f'(", c.inputs, ") {\n    ", c.call,
                               "\n    return ", c.results, "\n  }\n}\n"),
                           "backends_test.txt");
  ir::verify(m);
  return m.functions[0];
}

/// Normal numbers; positive ones for inputs called 'v…' (variances and their like).
std::vector<Array> inputs_of(const ir::Function& f) {
  std::vector<Array> out;
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    const TensorType& type = f.body.arguments[i]->type;
    Array x = Array::empty(DType::kF64, concrete(type.shape));
    Random(i + 1).fill_normal(std::span(x.data<double>(), static_cast<size_t>(x.size())));
    if (f.inputs[i].name[0] == 'v')
      for (int64_t k = 0; k < x.size(); ++k)
        x.data<double>()[k] = 0.5 + std::abs(x.data<double>()[k]);
    out.push_back(x.cast(type.dtype));
  }
  return out;
}

struct Outcome {
  std::vector<Array> results;
  std::string implementation;
  double flops = 0;
};

Outcome run(const Case& c, const std::string& backend) {
  runtime::register_backends();
  const BackendScope scope(backend);
  const auto function = function_of(c);
  const std::vector<Array> inputs = inputs_of(*function);
  runtime::Executable executable(function, {4, {true, nullptr}});
  Outcome out;
  for (const Array& a : executable.run(inputs))
    out.results.push_back(a.contiguous().cast(DType::kF64));
  std::vector<Layout> layouts;
  for (const Array& x : inputs) layouts.push_back(Layout::of(x));
  const auto& plan = executable.plan(layouts);
  out.implementation = plan.instructions().back().kernel->implementation();
  out.flops = plan.flops();
  return out;
}

void expect_agreement(const Case& c) {
  const Outcome own = run(c, "cpu"), other = run(c, "onednn");
  EXPECT_EQ(own.implementation, c.own) << c.call;
  EXPECT_TRUE(other.implementation.starts_with(c.other)) << c.call << other.implementation;
  ASSERT_EQ(own.results.size(), other.results.size());
  for (size_t r = 0; r < own.results.size(); ++r)
    EXPECT_LE(testing_support::relative_difference(other.results[r], own.results[r]), c.tolerance)
        << c.call << " result " << r;
}

TEST(Backends, AveragePoolingAndItsGradient) {
  for (const std::string exclusive : {"true", "false"})
    for (const std::string dtype : {"float32", "bfloat16"}) {
      const double tolerance = dtype == "float32" ? 2e-6 : 1e-2;
      // Without AVX-512 oneDNN has nothing for bfloat16.
      const std::string other = dtype == "float32" || cpu::vector_bytes() >= 64 ? "onednn:" : "cpu";
      const std::string how =
          str("kernel_size = [3, 2], stride = 2, padding = [1, 0], exclusive = ", exclusive);
      expect_agreement({str("%0 : ", dtype, "[2, 19, 9, 8] 'x'"),
                        str("%1 = avg_pool2d(%0) {", how, "} : ", dtype, "[2, 19, 5, 4]"), "%1 'y'",
                        tolerance, "cpu:windows", other});
      expect_agreement(
          {str("%0 : ", dtype, "[2, 9, 8, 19] 'x'"),
           str("%1 = avg_pool2d(%0) {", how, ", data_format = 'NHWC'} : ", dtype, "[2, 5, 4, 19]"),
           "%1 'y'", tolerance, "cpu:windows", other});
      expect_agreement({str("%0 : ", dtype, "[2, 19, 5, 4] 'g'"),
                        str("%1 = avg_pool2d_grad(%0) {input_shape = [2, 19, 9, 8], ", how,
                            "} : ", dtype, "[2, 19, 9, 8]"),
                        "%1 'y'", tolerance, "cpu", other});
    }
}

TEST(Backends, WindowsThatOneDnnDividesOtherwiseStayWithOurLoops) {
  // The last row's windows reach beyond the padded input: they hold 3 of 6 elements.
  Case c{"%0 : float32[1, 16, 6, 4] 'x'",
         "%1 = avg_pool2d(%0) {kernel_size = [3, 2], stride = 2, ceil_mode = true, "
         "exclusive = false} : float32[1, 16, 3, 2]",
         "%1 'y'"};
  EXPECT_EQ(run(c, "onednn").implementation, "cpu:windows");
  c.own = "cpu:windows";
  c.call.replace(c.call.find("false}"), 6, "true}");
  expect_agreement(c);
  c.call.replace(c.call.find("true}"), 5, "true, divisor_override = 4.0}");
  EXPECT_EQ(run(c, "onednn").implementation, "cpu:windows");
}

TEST(Backends, BatchNormalization) {
  for (const std::string training : {"true", "false"})
    for (const auto& [shape, format] :
         {std::pair("[3, 32, 5, 4]", "NCHW"), {"[3, 5, 4, 32]", "NHWC"}, {"[7, 32]", "NCHW"}})
      for (const std::string weights : {"%3, %4", "_, _"})
        expect_agreement(
            {str("%0 : float32", shape, " 'x', %1 : float32[32] 'm', %2 : float32[32] 'v', ",
                 "%3 : float32[32] 'w', %4 : float32[32] 'b'"),
             str("%5, %6, %7, %8, %9 = batch_norm(%0, %1, %2, ", weights,
                 ") {training = ", training, ", data_format = '", format, "'} : float32", shape,
                 ", float32[32], float32[32], float32[32], float32[32]"),
             "%5 'y', %6 'nm', %7 'nv', %8 'mean', %9 'rstd'"});
}

TEST(Backends, GradientOfBatchNormalization) {
  for (const std::string batch : {"true", "false"})
    for (const auto& [shape, format] :
         {std::pair("[3, 32, 5, 4]", "NCHW"), {"[3, 5, 4, 32]", "NHWC"}, {"[7, 32]", "NCHW"}})
      for (const std::string weight : {"%4", "_"})
        expect_agreement(
            {str("%0 : float32", shape, " 'g', %1 : float32", shape,
                 " 'x', %2 : float32[32] 'm', %3 : float32[32] 'v', %4 : float32[32] 'w'"),
             str("%5, %6, %7 = batch_norm_grad(%0, %1, %2, %3, ", weight,
                 ") {batch_statistics = ", batch, ", data_format = '", format, "'} : float32",
                 shape, ", float32[32], float32[32]"),
             "%5 'dx', %6 'dw', %7 'db'"});
}

TEST(Backends, LayerNormalizationAndItsGradient) {
  for (const std::string weights : {"%1, %2", "_, _"})
    expect_agreement({"%0 : float32[6, 5, 70] 'x', %1 : float32[70] 'w', %2 : float32[70] 'b'",
                      str("%3, %4, %5 = layer_norm(%0, ", weights,
                          ") : float32[6, 5, 70], float32[6, 5], float32[6, 5]"),
                      "%3 'y', %4 'm', %5 'r'"});
  for (const std::string weight : {"%4", "_"})
    expect_agreement(
        {"%0 : float32[6, 5, 70] 'g', %1 : float32[6, 5, 70] 'x', "
         "%2 : float32[6, 5] 'm', %3 : float32[6, 5] 'v', %4 : float32[70] 'w'",
         str("%5, %6, %7 = layer_norm_grad(%0, %1, %2, %3, ", weight,
             ") : float32[6, 5, 70], float32[70], float32[70]"),
         "%5 'dx', %6 'dw', %7 'db'"});
}

TEST(Backends, ConvolutionsWhoseWindowsEndBeyondTheEdge) {
  // Sizes for which oneDNN code reads past the end of a row: nothing there may be summed.
  const auto lines = [](int64_t in, int64_t out, int64_t kernel, int64_t width, int64_t dilation) {
    const int64_t border = (kernel - 1) * dilation / 2;
    return Case{str("%0 : float32[1, ", in, ", 1, ", width, "] 'x', %1 : float32[", out, ", ", in,
                    ", 1, ", kernel, "] 'w'"),
                str("%2 = conv2d(%0, %1, _) {padding = [0, ", border, "], dilation = [1, ",
                    dilation, "]} : float32[1, ", out, ", 1, ", width, "]"),
                "%2 'y'", 2e-5, "cpu:im2col"};
  };
  expect_agreement(lines(32, 64, 5, 7, 2));
  expect_agreement(lines(48, 64, 9, 15, 2));
  expect_agreement(lines(96, 128, 11, 9, 1));
  expect_agreement(lines(64, 32, 9, 31, 2));
  expect_agreement(lines(32, 128, 7, 11, 2));
}

TEST(Backends, ConvolutionsWithWindowsSpreadWide) {
  // Taps that meet the image in part, in one corner, or nowhere, in both layouts.
  struct Window {
    int64_t height, width, kernel, stride, dilation, border;
  };
  for (const auto& [height, width, kernel, stride, dilation, border] :
       {Window{29, 33, 3, 1, 12, 12},
        {14, 13, 3, 1, 24, 24},
        {31, 75, 3, 2, 36, 36},
        {15, 16, 5, 1, 9, 18},
        {16, 20, 3, 3, 21, 21}})
    for (const bool last : {false, true})
      for (const bool biased : {false, true}) {
        const auto results = [&](int64_t in) {
          return (in + 2 * border - dilation * (kernel - 1) - 1) / stride + 1;
        };
        const auto images = [&](int64_t channels, int64_t h, int64_t w) {
          return last ? str("float32[2, ", h, ", ", w, ", ", channels, "]")
                      : str("float32[2, ", channels, ", ", h, ", ", w, "]");
        };
        expect_agreement(
            {str("%0 : ", images(40, height, width), " 'x', %1 : float32[72, 40, ", kernel, ", ",
                 kernel, "] 'w', %2 : float32[72] 'b'"),
             str("%3 = conv2d(%0, %1, ", biased ? "%2" : "_", ") {padding = [", border, ", ",
                 border, "], stride = [", stride, ", ", stride, "], dilation = [", dilation, ", ",
                 dilation, "], data_format = '", last ? "NHWC" : "NCHW",
                 "'} : ", images(72, results(height), results(width))),
             "%3 'y'", 2e-5, "cpu:im2col", "onednn:dilated"});
      }
}

TEST(Backends, LargeMatrixProducts) {
  // Sizes of which the kernel takes another code than oneDNN's first choice, and one that it
  // leaves.
  expect_agreement({"%0 : float32[1030, 1100] 'x', %1 : float32[1100, 530] 'y'",
                    "%2 = matmul(%0, %1) : float32[1030, 530]", "%2 'z'", 2e-5, "cpu:gemm",
                    cpu::vector_bytes() == 32 ? "onednn:jit_1x1" : "onednn:gemm:jit"});
  expect_agreement({"%0 : float32[700, 650] 'x', %1 : float32[700, 1301] 'y'",
                    "%2 = matmul(%0, %1) {transpose_x = true} : float32[650, 1301]", "%2 'z'", 2e-5,
                    "cpu:gemm", "onednn:gemm:jit"});
  expect_agreement({"%0 : float32[530, 1100] 'x', %1 : float32[1030, 1100] 'y'",
                    "%2 = matmul(%0, %1) {transpose_y = true} : float32[530, 1030]", "%2 'z'", 2e-5,
                    "cpu:gemm"});
}

TEST(Backends, RecurrentStepsAndTheirGradients) {
  struct Kind {
    const char* cell;
    int gates, saved;
  };
  for (const auto& [cell, gates, saved] : {Kind{"lstm", 4, 5}, {"gru", 3, 4}, {"tanh", 1, 0}})
    for (const std::string reverse : {"true", "false"})
      for (const int batch : {1, 5}) {
        const int n = 24, width = n * gates;
        const std::string out = str("float32[", batch, ", 7, ", n, "]"),
                          wide = str("float32[", batch, ", 7, ", width, "]"),
                          state = str("float32[", batch, ", ", n, "]"),
                          kept = str("float32[", batch, ", 7, ", n * saved, "]"),
                          weight = str("float32[", width, ", ", n, "]"),
                          how = str("{cell = '", cell, "', reverse = ", reverse, "}");
        const std::string bias = std::string(cell) == "gru" ? "%2" : "_";
        expect_agreement({str("%0 : ", wide, " 'g', %1 : ", weight, " 'w', %2 : float32[", width,
                              "] 'b', %3 : ", state, " 'h', %4 : ", state, " 'c'"),
                          str("%5, %6, %7, %8 = recurrent_scan(%0, %1, ", bias, ", %3, %4) ", how,
                              " : ", out, ", ", state, ", ", state, ", ", kept),
                          "%5 'y', %6 'h1', %7 'c1', %8 's'", 1e-4});
        expect_agreement(
            {str("%0 : ", out, " 'dy', %1 : ", state, " 'dh', %2 : ", state, " 'dc', %3 : ", wide,
                 " 'g', %4 : ", weight, " 'w', %5 : float32[", width, "] 'b', %6 : ", state,
                 " 'h', %7 : ", state, " 'c', %8 : ", out, " 'y', %9 : ", kept, " 's'"),
             str("%10, %11, %12, %13 = recurrent_scan_grad(%0, %1, %2, %3, %4, ",
                 std::string(cell) == "gru" ? "%5" : "_", ", %6, %7, %8, %9) ", how, " : ", wide,
                 ", ", wide, ", ", state, ", ", state),
             "%10 'dg', %11 'ds', %12 'dh0', %13 'dc0'", 1e-3});
      }
}

TEST(Backends, RecurrentStepsCountTheirProducts) {
  const Case forward{
      "%0 : float32[3, 7, 40] 'g', %1 : float32[40, 10] 'w', %2 : float32[3, 10] 'h'",
      "%3, %4, %5, %6 = recurrent_scan(%0, %1, _, %2, %2) {cell = 'lstm'} : "
      "float32[3, 7, 10], float32[3, 10], float32[3, 10], float32[3, 7, 50]",
      "%3 'y'"};
  EXPECT_EQ(run(forward, "cpu").flops, 2.0 * 3 * 7 * 40 * 10);
  const Case backward{
      "%0 : float32[3, 7, 10] 'dy', %1 : float32[3, 10] 'h', %2 : float32[3, 7, 40] 'g', "
      "%3 : float32[40, 10] 'w', %4 : float32[3, 7, 50] 's'",
      "%5, %6, %7, %8 = recurrent_scan_grad(%0, %1, %1, %2, %3, _, %1, %1, %0, %4) "
      "{cell = 'lstm'} : float32[3, 7, 40], float32[3, 7, 40], float32[3, 10], float32[3, 10]",
      "%5 'dg', %6 'ds', %7 'dh', %8 'dc'"};
  EXPECT_EQ(run(backward, "cpu").flops, 2.0 * 3 * 7 * 40 * 10);
}

}  // namespace
}  // namespace paddle
