// Convolutions and pooling in float16 run by the kernels of float32: the same numbers, rounded.

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/compile.h"
#include "runtime/executable.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using namespace testing_support;

Array drawn(const Dims& shape, double seed) {
  Array a = Array::zeros(DType::kF32, shape);
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<float>()[i] = static_cast<float>(std::sin(seed + 1.7 * static_cast<double>(i)));
  return a.cast(DType::kF16);
}

/// A grouped convolution with bias, and pooling with its places.
std::string net(const std::string& dtype) {
  const std::string image = dtype + "[batch, 24, 9, 10]", half = dtype + "[batch, 24, 4, 5]";
  return "module 'm' {\n  func 'f'(%0 : " + image + " 'x', %1 : " + dtype +
         "[24, 8, 3, 3] parameter 'w', %2 : " + dtype +
         "[24] parameter 'b') {\n"
         "    %3 = conv2d(%0, %1, %2) {padding = [1, 1, 1, 1], groups = 3} : " +
         image + "\n    %4, %5 = max_pool2d(%3) {kernel_size = 2} : " + half +
         ", int32[batch, 24, 4, 5]\n    return %3 'y', %4 'p', %5 'places'\n  }\n}\n";
}

TEST(Widened, GivesTheNumbersOfFloat32) {
  const Array w = drawn({24, 8, 3, 3}, 1), b = drawn({24}, 2);
  ir::Module wide = ir::parse(net("float32"), "widened_test.txt");
  const auto reference = runtime::compile(wide.functions[0], {});
  struct Form {
    bool constant, once;
  };
  for (const Form form : {Form{false, false}, Form{true, false}, Form{true, true}}) {
    ir::Module module = ir::parse(net("float16"), "widened_test.txt");
    if (form.constant) {
      module.functions[0]->bind_input(2, misplaced(b));
      module.functions[0]->bind_input(1, misplaced(w));
    }
    const auto f = runtime::compile(
        module.functions[0], {.prepare = {.allow_winograd = true, .skip_prepack = form.once}});
    for (const int64_t batch : {1, 3}) {
      const Array x = drawn({batch, 24, 9, 10}, 3);
      std::vector<Array> inputs = {x};
      if (!form.constant) inputs.insert(inputs.end(), {w, b});
      const auto wanted =
          reference->run({x.cast(DType::kF32), w.cast(DType::kF32), b.cast(DType::kF32)});
      const auto got = f->run(inputs);
      for (size_t r = 0; r < 2; ++r) {
        ASSERT_EQ(got[r].dtype, DType::kF16);
        ASSERT_EQ(got[r].shape, wanted[r].shape);
        const Array a = got[r].contiguous(), e = wanted[r].contiguous();
        for (int64_t i = 0; i < a.size(); ++i)
          EXPECT_NEAR(a.number(i), e.number(i), 1e-3 * std::abs(e.number(i)) + 1e-4);
      }
      int upcast = 0;
      for (const runtime::Instruction& i : f->prepare(inputs).instructions())
        upcast += i.kernel && i.kernel->implementation().ends_with(" upcast");
      EXPECT_EQ(upcast, 2);
      // The place of the greatest number that was rounded is a place of it.
      const Array y = got[0].contiguous(), p = got[1].contiguous(), at = got[2].contiguous();
      for (int64_t i = 0; i < p.size(); ++i)
        EXPECT_EQ(y.number(i / 20 * 90 + at.integer(i)), p.number(i));
    }
  }
}

}  // namespace
}  // namespace paddle
