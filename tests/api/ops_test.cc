// Operations and gradients by the public interface, against hand arithmetic.

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "paddle/error.h"
#include "paddle/ops.h"

namespace {

using paddle::Array;
using paddle::call;
using paddle::Tensor;

std::vector<float> floats(const Tensor& t) { return t.array().to_vector<float>(); }

TEST(ApiOps, PositionalAndNamedArguments) {
  const Array x = Array::from<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(floats(call("add", {x, 1})), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(floats(call("sum", {x}, {{"axis", 0}})), (std::vector<float>{4, 6}));
  EXPECT_EQ(floats(call("concat", {std::vector<Tensor>{x, x}}, {{"axis", 1}})),
            (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(call("cast", {x, paddle::DType::kInt64}).dtype(), paddle::DType::kInt64);
  EXPECT_EQ(call("transpose", {x, std::vector<int64_t>{1, 0}}).array().to_vector<float>(),
            (std::vector<float>{1, 3, 2, 4}));
}

TEST(ApiOps, SeveralResults) {
  const auto both = paddle::call_all("topk", {Array::from<float>({3}, {1, 3, 2}), 2});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(floats(both[0]), (std::vector<float>{3, 2}));
  EXPECT_EQ(both[1].array().to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
}

TEST(ApiOps, GradientsOfAnyOrder) {
  // d/dx (x^3) = 3 x^2, d2 = 6 x
  const Tensor x = paddle::variable(Array::from<float>({2}, {2, -1}));
  const Tensor cube = call("mul", {call("square", {x}), x});
  const Tensor first = paddle::gradients({cube}, {x})[0];
  EXPECT_EQ(floats(first), (std::vector<float>{12, 3}));
  EXPECT_EQ(floats(paddle::gradients({first}, {x})[0]), (std::vector<float>{12, -6}));
  // Weighted: 2 * 12 and 0 * 3.
  const Tensor weights = Array::from<float>({2}, {2, 0});
  EXPECT_EQ(floats(paddle::gradients({cube}, {x}, {weights})[0]), (std::vector<float>{24, 0}));
}

TEST(ApiOps, GradientsOfInputsWithoutPartAreUndefined) {
  const Tensor x = paddle::variable(Array::scalar(1.0f)), y = paddle::variable(Array::scalar(1.0f));
  const auto g = paddle::gradients({call("square", {x})}, {x, y});
  EXPECT_EQ(floats(g[0]), std::vector<float>{2});
  EXPECT_FALSE(g[1].defined());
  EXPECT_THROW(g[1].array(), paddle::UsageError);
}

TEST(ApiOps, ErrorsNameTheOperation) {
  const Array x = Array::from<float>({2, 2}, {1, 2, 3, 4});
  try {
    call("softmx", {x});
    FAIL();
  } catch (const paddle::UsageError& e) {
    EXPECT_EQ(e.code(), paddle::ErrorCode::kUsage);
    EXPECT_NE(std::string(e.what()).find("softmax"), std::string::npos) << e.what();
  }
  EXPECT_THROW(call("softmax", {x}, {{"axes", 1}}), paddle::UsageError);
  EXPECT_THROW(call("matmul", {x, Array::from<float>({3, 1}, {1, 2, 3})}), paddle::UsageError);
  EXPECT_THROW(paddle::gradients({Tensor(x)}, {Tensor(x)}), paddle::UsageError);
  EXPECT_THROW(paddle::gradients({Tensor()}, {}), paddle::UsageError);
  EXPECT_THROW(paddle::variable(Array::scalar(int64_t{1})), paddle::UsageError);
  const Tensor v = paddle::variable(x);
  EXPECT_THROW(paddle::gradients({v}, {v}, {Tensor(Array::scalar(1.0f))}), paddle::UsageError);
}

TEST(ApiOps, SeededRandomNumbersRepeat) {
  const auto draw = [] { return floats(call("rand", {std::vector<int64_t>{8}})); };
  paddle::set_random_seed(5);
  const auto first = draw(), second = draw();
  EXPECT_NE(first, second);
  paddle::set_random_seed(5);
  EXPECT_EQ(draw(), first);
  paddle::set_random_seed(6);
  EXPECT_NE(draw(), first);
}

TEST(ApiOps, ListsOperations) {
  const auto names = paddle::operations();
  EXPECT_NE(std::find(names.begin(), names.end(), "softmax"), names.end());
  EXPECT_NE(paddle::signature("softmax").find("axis"), std::string::npos);
  EXPECT_THROW(paddle::signature("nothing"), paddle::UsageError);
}

TEST(ApiOps, BackwardAddsToVariables) {
  const Tensor x = paddle::variable(Array::from<float>({2}, {2, -1}));
  const Tensor y = paddle::variable(Array::from<float>({2}, {3, 5}));
  const Tensor constant = Array::from<float>({2}, {1, 1});
  EXPECT_TRUE(x.is_variable());
  EXPECT_FALSE(x.gradient().defined());
  const Tensor product = call("multiply", {call("multiply", {x, y}), constant});
  EXPECT_FALSE(product.is_variable());
  product.backward();
  EXPECT_EQ(floats(x.gradient()), (std::vector<float>{3, 5}));
  EXPECT_EQ(floats(y.gradient()), (std::vector<float>{2, -1}));
  call("sum", {x}).backward(Array::scalar(10.0f));
  EXPECT_EQ(floats(x.gradient()), (std::vector<float>{13, 15}));
  EXPECT_FALSE(x.gradient().requires_gradient());
  x.clear_gradient();
  EXPECT_FALSE(x.gradient().defined());
  EXPECT_EQ(floats(y.gradient()), (std::vector<float>{2, -1}));

  EXPECT_THROW(constant.backward(), paddle::UsageError);
  EXPECT_THROW(product.gradient(), paddle::UsageError);
  EXPECT_THROW(product.backward(Array::scalar(1.0f)), paddle::UsageError);
  EXPECT_THROW(Tensor().backward(), paddle::UsageError);
  EXPECT_THROW(Tensor().gradient(), paddle::UsageError);
}

TEST(ApiOps, VariablesTakeOtherValues) {
  const Tensor x = paddle::variable(Array::from<float>({2}, {2, -1}));
  const Tensor square = call("square", {x}), turned = call("flip", {x, 0}),
               view = call("reshape", {x, std::vector<int64_t>{2, 1}});
  x.set_value(Array::from<float>({2}, {7, 8}));
  EXPECT_EQ(floats(x), (std::vector<float>{7, 8}));
  square.backward();  // of the values that it was computed from
  EXPECT_EQ(floats(x.gradient()), (std::vector<float>{4, -2}));
  EXPECT_EQ(floats(turned), (std::vector<float>{-1, 2}));
  EXPECT_EQ(view.shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(floats(view), (std::vector<float>{2, -1}));
  EXPECT_TRUE(x.is_variable());
  EXPECT_THROW(x.set_value(Array::scalar(1.0f)), paddle::UsageError);
  EXPECT_THROW(square.set_value(Array::from<float>({2}, {7, 8})), paddle::UsageError);
}

TEST(ApiOps, NoGradientScopeKeepsNoRecord) {
  const Tensor x = paddle::variable(Array::scalar(3.0f));
  {
    const paddle::NoGradientScope scope;
    EXPECT_FALSE(call("square", {x}).requires_gradient());
    { const paddle::NoGradientScope nested; }
    EXPECT_FALSE(call("square", {x}).requires_gradient());
  }
  EXPECT_TRUE(call("square", {x}).requires_gradient());
}

// Later calls use what the first one prepared: values, shapes, attributes and dtypes must count.
TEST(ApiOps, RepeatedCallsSeeTheirOwnArguments) {
  for (int turn = 0; turn < 3; ++turn) {
    const auto value = static_cast<float>(turn);
    const Array x = Array::from<float>({2, 2}, {value, 1, 2, 3});
    EXPECT_EQ(floats(call("add", {x, x})), (std::vector<float>{2 * value, 2, 4, 6}));
    EXPECT_EQ(floats(call("add", {x, Array::from<float>({2}, {1, 2})})),
              (std::vector<float>{value + 1, 3, 3, 5}));
    EXPECT_EQ(floats(call("sum", {x}, {{"axis", 0}})), (std::vector<float>{value + 2, 4}));
    EXPECT_EQ(floats(call("sum", {x}, {{"axis", 1}})), (std::vector<float>{value + 1, 5}));
    EXPECT_EQ(floats(call("multiply", {x, 0.5})), (std::vector<float>{value / 2, .5f, 1, 1.5f}));
    const Array whole = Array::from<int64_t>({2}, {turn, 7});
    EXPECT_EQ(call("add", {whole, whole}).array().to_vector<int64_t>(),
              (std::vector<int64_t>{2 * turn, 14}));
    EXPECT_FALSE(std::signbit(floats(call("full", {std::vector<int64_t>{1}, 0.0}))[0]));
    EXPECT_TRUE(std::signbit(floats(call("full", {std::vector<int64_t>{1}, -0.0}))[0]));
    const Tensor turned = call("transpose", {x, std::vector<int64_t>{1, 0}});
    EXPECT_EQ(floats(call("add", {turned, x})), (std::vector<float>{2 * value, 3, 3, 6}));
    EXPECT_THROW(call("add", {x, Array::from<float>({3}, {1, 2, 3})}), paddle::UsageError);
  }
}

// More kinds of calls than are kept.
TEST(ApiOps, ManyShapesInTurn) {
  for (int turn = 0; turn < 2; ++turn)
    for (int64_t size = 1; size < 3000; ++size) {
      const Array x(paddle::DType::kFloat32, {size});
      ASSERT_EQ(call("add", {x, 1.0}).shape(), std::vector<int64_t>{size});
    }
}

TEST(ApiOps, ThreadsComputeSideBySide) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&results, i] {
      for (int k = 0; k < 50; ++k) {
        const Tensor x = paddle::variable(Array::scalar(static_cast<float>(i)));
        results[i] = floats(paddle::gradients({call("square", {x})}, {x})[0])[0];
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(results, (std::vector<float>{0, 2, 4, 6}));
}

}  // namespace
