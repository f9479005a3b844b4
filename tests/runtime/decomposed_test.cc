// Where the only kernel of an operation declines, eager mode and plans both run its decomposition.

#include "runtime/decomposed.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ops/core/call.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/execute.h"
#include "support/numbers.h"

namespace paddle {
namespace {

using namespace testing_support;

Array random_array(DType dtype, const Dims& shape, uint64_t seed) {
  Array x = Array::empty(DType::kF32, shape);
  Generator generator(seed);
  for (int64_t i = 0; i < x.size(); ++i)
    x.data<float>()[i] = static_cast<float>(generator.next()) / (1 << 24) - 0.5f;
  return runtime::cast_array(x, dtype);
}

void expect_same(const Array& a, const Array& b, const std::string& what) {
  ASSERT_EQ(a.shape, b.shape) << what;
  ASSERT_EQ(a.dtype, b.dtype) << what;
  const Array x = a.contiguous(), y = b.contiguous();
  EXPECT_EQ(0, std::memcmp(x.raw(), y.raw(), static_cast<size_t>(storage_bytes(x.dtype, x.size()))))
      << what;
}

/// The outputs of a function of the IR, and the implementation of each of its instructions.
std::vector<Array> run(const std::string& body, const std::vector<Array>& inputs,
                       std::vector<std::string>& implementations) {
  ir::Module m = ir::parse(str("module 'm' {\n  func 'f'(", body, "\n  }\n}\n"), "test.txt");
  ir::verify(m);
  runtime::Executable executable(m.functions[0]);
  const std::vector<Array> out = executable.run(inputs);
  std::vector<Layout> layouts;
  for (const Array& x : inputs) layouts.push_back(Layout::of(x));
  for (const runtime::Instruction& i : executable.plan(layouts).instructions())
    if (i.kernel) implementations.push_back(i.kernel->implementation());
  std::vector<Array> copies;
  for (const Array& each : out) copies.push_back(runtime::copied(each));
  return copies;
}

TEST(Decomposed, PlansDecomposeWhatTheKernelDeclines) {
  // The kernel takes features side by side; these are those of a transposed view.
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const std::string type = text(dtype);
    const Array x = random_array(dtype, {6, 5, 3}, 1), cos = random_array(dtype, {5, 6}, 2),
                sin = random_array(dtype, {5, 6}, 3);
    std::vector<std::string> implementations;
    const std::vector<Array> planned =
        run(str("%0 : ", type, "[6, 5, 3] 'x', %1 : ", type, "[5, 6] 'c', %2 : ", type,
                "[5, 6] 's') {\n    %3 = transpose(%0) {perm = [2, 1, 0]} : ", type,
                "[3, 5, 6]\n    %4 = rotary_embedding(%3, %1, %2) : ", type,
                "[3, 5, 6]\n    return %4 'y'"),
            {x, cos, sin}, implementations);
    EXPECT_EQ(implementations, std::vector<std::string>{"decomposition"}) << type;
    runtime::EagerExecutor eager;
    const InterpreterScope scope(eager);
    Array view = x;
    view.shape = {3, 5, 6};
    view.strides = {1, 3, 15};
    static const Op& op = get_op("rotary_embedding");
    const Tensors operands = {Tensor(view), Tensor(cos), Tensor(sin)};
    const Attrs attrs = default_attrs(op);
    const std::vector<TensorType> types = {{dtype, to_shape(view.shape)}};
    const Tensors called = eager.apply({op, operands, attrs, types, {}});
    expect_same(planned[0], called[0].array(), "eager and planned " + type);
    // So it is with features side by side.
    const Array packed = view.contiguous();
    const std::vector<Array> kernel = runtime::execute(op, attrs, {&packed, &cos, &sin}, types);
    const Array a = runtime::cast_array(planned[0], DType::kF64),
                b = runtime::cast_array(kernel[0], DType::kF64);
    for (int64_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a.number(i), b.number(i), dtype == DType::kBF16 ? 2e-2 : 1e-6) << type << i;
  }
}

TEST(Decomposed, ResultsInThePlaceOfOperandsAreRight) {
  // An update in place whose kernel declines: the master weight and its decay have other dtypes.
  static const Op& op = get_op("sgd_update_rows");
  ASSERT_TRUE(op.def->decompose != nullptr);
  const Array param = random_array(DType::kF16, {4, 3}, 1),
              rows = random_array(DType::kF16, {2, 3}, 2);
  const Array rate = Array::from<float>({0.5f}, {}), indices = Array::from<int64_t>({3, 1}, {2});
  std::vector<std::string> implementations;
  const Array before = runtime::copied(param);
  const std::vector<Array> out =
      run("%0 : float16[4, 3] 'p', %1 : float16[2, 3] 'r', %2 : float32[] 'lr', %3 : int64[2] 'i') "
          "{\n    %4 = sgd_update_rows(%0, %1, _, %2, _, _, %3) : float16[4, 3]\n    return %4 'y'",
          {param, rows, rate, indices}, implementations);
  EXPECT_EQ(implementations, std::vector<std::string>{"decomposition"});
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t row = i / 3 == 3 ? 0 : i / 3 == 1 ? 1 : -1;
    const double wanted = before.number(i) - (row < 0 ? 0 : 0.5 * rows.number(row * 3 + i % 3));
    EXPECT_NEAR(out[0].number(i), wanted, 1e-3) << i;
  }
}

TEST(Decomposed, InstructionsOfSizesKnownAtRunTimeDecomposeToo) {
  // They are executed as calls.
  const Array cos = random_array(DType::kF32, {6}, 6), sin = random_array(DType::kF32, {6}, 7);
  const Array view = [&] {
    Array out = random_array(DType::kF32, {6, 4}, 5);
    out.shape = {4, 6};
    out.strides = {1, 4};
    return out;
  }();
  static const Op& op = get_op("rotary_embedding");
  const Attrs attrs = default_attrs(op);
  const std::vector<TensorType> types = {{DType::kF32, to_shape(Dims{4, 6})}};
  const std::vector<Array> out = runtime::execute(op, attrs, {&view, &cos, &sin}, types);
  const Array packed = view.contiguous();
  const std::vector<Array> kernel = runtime::execute(op, attrs, {&packed, &cos, &sin}, types);
  for (int64_t i = 0; i < 24; ++i) EXPECT_NEAR(out[0].number(i), kernel[0].number(i), 1e-6);
}

}  // namespace
}  // namespace paddle
