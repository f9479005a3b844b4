// merge_slice_grads: sums of slice gradients that cover a tensor become a concatenation with the
// same result; other sums stay.

#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "runtime/executable.h"
#include "runtime/execute.h"

namespace paddle {
namespace {

/// y is the sum of slices a and b [2, 2, 3] and c [2, 1, 3], padded to [2, 5, 3] at these
/// positions.
std::string module_text(const std::string& a, const std::string& b, const std::string& c,
                        const std::string& fill = "0.0", const std::string& also = "") {
  const auto scatter = [&](int id, int value, const std::string& at) {
    return "    %" + std::to_string(id) + " = strided_slice_scatter(%3, %" + std::to_string(value) +
           ") {axes = [1], " + at + ", strides = [1]} : float32[2, 5, 3]\n";
  };
  return "module 'm' {\n  func 'f'(%0 : float32[2, 2, 3] 'a', %1 : float32[2, 2, 3] 'b', "
         "%2 : float32[2, 1, 3] 'c') {\n"
         "    %3 = full() {shape = [2, 5, 3], fill_value = " +
         fill + ", dtype = float32} : float32[2, 5, 3]\n" + scatter(4, 0, a) + scatter(5, 1, b) +
         "    %6 = add(%4, %5) : float32[2, 5, 3]\n" + scatter(7, 2, c) +
         "    %8 = add(%6, %7) : float32[2, 5, 3]\n    return %8 'y'" + also + "\n  }\n}\n";
}

struct Result {
  std::string text;
  std::vector<float> before, after;
};

std::vector<float> computed(const std::shared_ptr<ir::Function>& function) {
  const auto numbers = [](const Dims& shape, float from) {
    Array a = Array::zeros(DType::kF32, shape);
    for (int64_t i = 0; i < a.size(); ++i) a.data<float>()[i] = from + static_cast<float>(i);
    return a;
  };
  runtime::Executable executable(function);
  const Array y =
      executable.run({numbers({2, 2, 3}, 1), numbers({2, 2, 3}, 100), numbers({2, 1, 3}, -50)})[0];
  return {y.data<float>(), y.data<float>() + y.size()};
}

Result merged(const std::string& text) {
  runtime::register_backends();
  ir::Module module = ir::parse(text, "test.txt");
  ir::Function& f = *module.functions[0];
  Result out;
  out.before = computed(module.functions[0]);
  passes::merge_slice_grads(f);
  passes::remove_dead_code(f);
  ir::verify(module);
  out.text = ir::print(module);
  out.after = computed(module.functions[0]);
  return out;
}

constexpr const char *kFirst = "starts = [0], ends = [2]", *kThird = "starts = [2], ends = [4]",
                     *kSecond = "starts = [1], ends = [3]", *kLast = "starts = [4], ends = [5]";

TEST(MergeSliceGrads, ConcatenatesSlicesThatCoverTheTensor) {
  const Result r = merged(module_text(kThird, kFirst, kLast));
  EXPECT_NE(r.text.find("concat([%1, %0, %2]) {axis = 1} : float32[2, 5, 3]"), std::string::npos)
      << r.text;
  EXPECT_EQ(r.text.find("add"), std::string::npos) << r.text;
  EXPECT_EQ(r.text.find("full"), std::string::npos) << r.text;
  EXPECT_EQ(r.before, r.after);
}

TEST(MergeSliceGrads, KeepsOtherSums) {
  const std::string others[] = {
      module_text(kSecond, kFirst, kLast),                      // two overlap
      module_text(kThird, kFirst, kLast, "1.0"),                // not padded with zero
      module_text(kThird, kFirst, kLast, "0.0", ", %6 'z'"),    // a partial sum is read
      module_text(kFirst, kThird, "starts = [3], ends = [4]"),  // the last row is not covered
  };
  for (const std::string& text : others) {
    const Result r = merged(text);
    EXPECT_EQ(r.text.find("concat"), std::string::npos) << r.text;
    EXPECT_EQ(r.before, r.after);
  }
}

}  // namespace
}  // namespace paddle
