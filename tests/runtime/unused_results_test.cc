// Results that nothing reads: a plan allocates no memory for them if the operation allows it, and
// what is read stays the same bits.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/compile.h"
#include "runtime/executable.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using namespace testing_support;

struct Case {
  const char* inputs;
  const char* call;  ///< with its result types
  const char* read;  ///< what the function returns
  const char* all;   ///< every result, so that all have memory
  const char* op;
  size_t unread;
};

const Case kCases[] = {
    {"%0 : float32[2, 3, 7, 6] 'x'",
     "%1, %2 = max_pool2d(%0) {kernel_size = 3, stride = 2, padding = 1} : float32[2, 3, 4, 3], "
     "int32[2, 3, 4, 3]",
     "%1 'y'", "%1 'y', %2 'm'", "max_pool2d", 1},
    // Squares of 2 x 2: whole vectors, shorter ones and single elements of a row.
    {"%0 : float32[2, 3, 7, 63] 'x'",
     "%1, %2 = max_pool2d(%0) {kernel_size = 2} : float32[2, 3, 3, 31], int32[2, 3, 3, 31]",
     "%1 'y'", "%1 'y', %2 'm'", "max_pool2d", 1},
    {"%0 : float32[4, 33] 'x', %1 : float32[33] 'w', %2 : float32[33] 'b'",
     "%3, %4, %5 = layer_norm(%0, %1, %2) : float32[4, 33], float32[4], float32[4]", "%3 'y'",
     "%3 'y', %4 'm', %5 'r'", "layer_norm", 2},
    {"%0 : float32[4, 3, 5] 'x', %1 : float32[3] 'm', %2 : float32[3] 'v'",
     "%3, %4, %5, %6, %7 = batch_norm(%0, %1, %2, _, _) {training = true} : float32[4, 3, 5], "
     "float32[3], float32[3], float32[3], float32[3]",
     "%3 'y', %5 'v1'", "%3 'y', %5 'v1', %4 'm1', %6 'm', %7 'r'", "batch_norm", 3},
    {"%0 : float32[3, 5, 44] 'g', %1 : float32[44, 11] 'w', %2 : float32[3, 11] 'h', "
     "%3 : float32[3, 11] 'c'",
     "%4, %5, %6, %7 = recurrent_scan(%0, %1, _, %2, %3) {cell = 'lstm'} : float32[3, 5, 11], "
     "float32[3, 11], float32[3, 11], float32[3, 5, 55]",
     "%4 'y'", "%4 'y', %5 'h', %6 'c1', %7 's'", "recurrent_scan", 3},
    {"%0 : float32[3, 5, 33] 'g', %1 : float32[33, 11] 'w', %2 : float32[3, 11] 'h', "
     "%3 : float32[33] 'b'",
     "%4, %5, %6, %7 = recurrent_scan(%0, %1, %3, %2, %2) {cell = 'gru', reverse = true} : "
     "float32[3, 5, 11], float32[3, 11], float32[3, 11], float32[3, 5, 44]",
     "%4 'y', %5 'h1'", "%4 'y', %5 'h1', %6 'c1', %7 's'", "recurrent_scan", 2},
    {"%0 : float32[2, 7, 6, 300] 'x'",
     "%1, %2 = max_pool2d(%0) {kernel_size = 3, stride = 2, padding = 1, data_format = 'NHWC'} : "
     "float32[2, 4, 3, 300], int32[2, 4, 3, 300]",
     "%1 'y'", "%1 'y', %2 'm'", "max_pool2d", 1},
    // These two are the other backend's where the machine has what it needs.
    {"%0 : float32[4, 3, 5, 32] 'x', %1 : float32[32] 'm', %2 : float32[32] 'v'",
     "%3, %4, %5, %6, %7 = batch_norm(%0, %1, %2, _, _) {training = true, data_format = 'NHWC'} : "
     "float32[4, 3, 5, 32], float32[32], float32[32], float32[32], float32[32]",
     "%3 'y', %4 'm1'", "%3 'y', %4 'm1', %5 'v1', %6 'm', %7 'r'", "batch_norm", 3},
    {"%0 : float32[8, 9, 256] 'g', %1 : float32[256, 64] 'w', %2 : float32[8, 64] 'h', "
     "%3 : float32[8, 64] 'c'",
     "%4, %5, %6, %7 = recurrent_scan(%0, %1, _, %2, %3) {cell = 'lstm'} : float32[8, 9, 64], "
     "float32[8, 64], float32[8, 64], float32[8, 9, 320]",
     "%4 'y'", "%4 'y', %5 'h', %6 'c1', %7 's'", "recurrent_scan", 3},
};

std::shared_ptr<ir::Function> function_of(const Case& c, const char* results) {
  ir::Module m = ir::parse(str("module 'm' {\n  func 'f'(", c.inputs, ") {\n    ", c.call,
                               "\n    return ", results, "\n  }\n}\n"),
                           "unread_test.txt");
  ir::verify(m);
  return m.functions[0];
}

std::vector<Array> inputs_of(const ir::Function& f) {
  std::vector<Array> out;
  Generator generator(1);
  for (const ir::Value* v : f.body.arguments) {
    Array x = Array::empty(v->type.dtype, concrete(v->type.shape));
    for (int64_t i = 0; i < x.size(); ++i)
      static_cast<float*>(x.raw())[i] = 0.1f + static_cast<float>(generator.next()) / (1 << 24);
    out.push_back(std::move(x));
  }
  return out;
}

TEST(Unread, ResultsThatNothingReadsHaveNoMemory) {
  for (const Case& c : kCases) {
    const auto few = function_of(c, c.read), full = function_of(c, c.all);
    const std::vector<Array> inputs = inputs_of(*few);
    runtime::Executable lean(few, {4, {true, nullptr}}), whole(full, {4, {true, nullptr}});
    const auto some = lean.run(inputs), every = whole.run(inputs);
    std::vector<Layout> layouts;
    for (const Array& x : inputs) layouts.push_back(Layout::of(x));
    size_t absent = 0;
    for (const runtime::Instruction& i : lean.plan(layouts).instructions())
      if (i.operation && i.operation->op->name() == c.op)
        for (const int id : i.results) absent += id < 0;
    EXPECT_EQ(absent, c.unread) << c.op;
    for (const runtime::Instruction& i : whole.plan(layouts).instructions())
      for (const int id : i.results) EXPECT_GE(id, 0) << c.op;
    for (size_t i = 0; i < some.size(); ++i)
      EXPECT_EQ(0, std::memcmp(some[i].raw(), every[i].raw(),
                               static_cast<size_t>(storage_bytes(some[i].dtype, some[i].size()))))
          << c.op << " result " << i;
  }
}

TEST(Unread, MaxPoolingKeepsNanAndInfinityWithAndWithoutItsMask) {
  const float nan = std::nanf(""), low = -std::numeric_limits<float>::infinity();
  for (const std::string format : {"NCHW", "NHWC"})
    for (const char* results : {"%1 'y'", "%1 'y', %2 'm'"}) {
      const bool last = format == "NHWC";
      const Case c{last ? "%0 : float32[1, 2, 6, 1] 'x'" : "%0 : float32[1, 1, 2, 6] 'x'",
                   last ? "%1, %2 = max_pool2d(%0) {kernel_size = 2, data_format = 'NHWC'} : "
                          "float32[1, 1, 3, 1], int32[1, 1, 3, 1]"
                        : "%1, %2 = max_pool2d(%0) {kernel_size = 2} : float32[1, 1, 1, 3], "
                          "int32[1, 1, 1, 3]",
                   results,
                   results,
                   "max_pool2d",
                   1};
      const auto function = function_of(c, c.read);
      const Array x = Array::from<float>({nan, 1, low, low, 1, 2, 1, 1, low, low, nan, 3},
                                         concrete(function->body.arguments[0]->type.shape));
      runtime::Executable executable(function);
      const auto out = executable.run({x});
      const float* y = out[0].data<float>();
      EXPECT_TRUE(std::isnan(y[0])) << format;
      EXPECT_EQ(y[1], low) << format;
      EXPECT_TRUE(std::isnan(y[2])) << format;
    }
}

}  // namespace
}  // namespace paddle
