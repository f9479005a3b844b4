// Numbers that an integer type cannot hold: as x86 converts them to 64 bits, then the low bits.

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "tensor/tensor.h"

namespace paddle {
namespace {

const std::vector<double> kNumbers = {-2.75, 300.5, 0x1p31, 0x1p63, -0x1p63, 1e300, NAN, -INFINITY};
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

std::vector<int64_t> cast(const Array& numbers, DType to) {
  const Array out = numbers.cast(to);
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < out.size(); ++i) integers.push_back(out.integer(i));
  return integers;
}

TEST(ArrayCast, NumbersBeyondAnIntegerAreDefined) {
  const Array numbers = Array::from(kNumbers, {8});
  EXPECT_EQ(cast(numbers, DType::kI64),
            (std::vector<int64_t>{-2, 300, int64_t{1} << 31, kMin, kMin, kMin, kMin, kMin}));
  EXPECT_EQ(cast(numbers, DType::kI32),
            (std::vector<int64_t>{-2, 300, std::numeric_limits<int32_t>::min(), 0, 0, 0, 0, 0}));
  EXPECT_EQ(cast(numbers, DType::kU8), (std::vector<int64_t>{254, 44, 0, 0, 0, 0, 0, 0}));
  // 2^63 fits into 64 bits without a sign; Array::integer shows them with one.
  EXPECT_EQ(cast(numbers, DType::kU64)[3], kMin);
  EXPECT_EQ(cast(numbers.cast(DType::kF32), DType::kI64)[6], kMin);
  EXPECT_EQ(cast(numbers.cast(DType::kF16), DType::kI64)[7], kMin);
  EXPECT_EQ(cast(numbers, DType::kBool)[6], 1);
}

}  // namespace
}  // namespace paddle
