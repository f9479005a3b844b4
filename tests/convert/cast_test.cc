#include "convert/cast.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/execute.h"

namespace paddle::convert {
namespace {

CastLoss loss_of(const Array& array, DType to) {
  runtime::register_backends();
  CastLoss loss;
  const Array out = cast_counting(array, to, loss);
  EXPECT_EQ(out.dtype, to);
  EXPECT_EQ(out.shape, array.shape);
  EXPECT_EQ(loss.values, array.size());
  return loss;
}

TEST(ConvertCast, CountsRoundingAndOverflow) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Array x = Array::from<float>({1, 0.1f, 70000, 65519, -1e30f, inf, -inf, nan, -0.0f}, {9});
  const CastLoss half = loss_of(x, DType::kF16);
  EXPECT_EQ(half.changed, 4);  // 0.1, 70000, 65519 (which rounds to 65504), -1e30
  EXPECT_EQ(half.overflow, 2);
  const CastLoss brain = loss_of(x, DType::kBF16);
  EXPECT_EQ(brain.overflow, 0);
  EXPECT_EQ(loss_of(x, DType::kF64).changed, 0);
}

TEST(ConvertCast, EightBitFloatsSaturateInTheCount) {
  const Array x = Array::from<float>({448, 460, 500, 0.5f}, {4});
  const CastLoss loss = loss_of(x, DType::kF8E4M3FN);
  EXPECT_EQ(loss.changed, 2);
  EXPECT_EQ(loss.overflow, 1);
}

TEST(ConvertCast, IntegersAreComparedExactly) {
  const int64_t wide = (int64_t{1} << 53) + 1;
  const Array x = Array::from<int64_t>({1, wide, -300, 127}, {2, 2});
  EXPECT_EQ(loss_of(x, DType::kF64).changed, 1);
  const CastLoss narrow = loss_of(x, DType::kI8);
  EXPECT_EQ(narrow.changed, 2);
  EXPECT_EQ(narrow.overflow, 2);
}

TEST(ConvertCast, PartsJoinWithoutASeam) {
  Array x = Array::empty(DType::kF32, {700, 1000});
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i);
  CastLoss loss;
  const Array y = cast_counting(x, DType::kF64, loss);
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(y.number(i), static_cast<double>(i));
  EXPECT_EQ(loss.changed, 0);
}

}  // namespace
}  // namespace paddle::convert
