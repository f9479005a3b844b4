// Vector division of integers against scalar division in 128 bits: numbers of every size and sign,
// zero divisors, and lengths that do not fill vectors, for each instruction set.

#include "kernels/elementwise/integer_division.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "hwy/targets.h"

#include "support/numbers.h"

namespace paddle::cpu {
namespace {

using testing_support::Generator;

/// Numbers near powers of two, and others of every size.
template <class T>
std::vector<T> numbers_of() {
  std::vector<T> out = {
      0, 1, -1, 2, 3, 7, -7, 10, std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
  for (size_t bit = 1; bit + 1 < sizeof(T) * 8; ++bit)
    for (const int step : {-1, 0, 1}) {
      const T value = static_cast<T>((T{1} << bit) + step);
      out.insert(out.end(), {value, static_cast<T>(-value)});
    }
  Generator generator(3);
  for (int i = 0; i < 60; ++i) {
    const uint64_t bits = static_cast<uint64_t>(generator.next()) << 40 ^
                          static_cast<uint64_t>(generator.next()) << 20 ^ generator.next();
    out.push_back(static_cast<T>(static_cast<T>(bits) >> generator.next() % (sizeof(T) * 8)));
  }
  return out;
}

template <class T>
T wanted(std::string_view name, T x, T y) {
  const __int128 a = x, b = y;
  if (b == 0) return 0;
  const __int128 quotient = a / b, rest = a % b;
  const bool between = rest != 0 && (rest < 0) != (b < 0);
  if (name == "divide") return static_cast<T>(quotient);
  if (name == "floor_divide") return static_cast<T>(quotient - between);
  if (name == "fmod") return static_cast<T>(rest);
  return static_cast<T>(rest + (between ? b : 0));
}

template <class T>
void expect_quotients(DType dtype) {
  const std::vector<T> numbers = numbers_of<T>();
  std::vector<T> a, b;
  for (const T x : numbers)
    for (const T y : numbers) {
      a.push_back(x);
      b.push_back(y);
    }
  for (const char* name : {"divide", "floor_divide", "fmod", "remainder"}) {
    const Loop loop = integer_division_loop(name, dtype);
    ASSERT_NE(loop, nullptr);
    for (const size_t n : {a.size(), size_t{1}, size_t{13}}) {
      std::vector<T> out(n + 1, 77);
      const void* in[] = {a.data(), b.data()};
      loop(in, out.data(), static_cast<int64_t>(n), nullptr);
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(out[i], wanted(name, a[i], b[i])) << name << " of " << a[i] << " and " << b[i];
      EXPECT_EQ(out[n], 77);
    }
  }
}

class IntegerDivisions : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::DisableTargets(GetParam()); }
  void TearDown() override { hwy::DisableTargets(0); }
};

TEST_P(IntegerDivisions, MatchWideDivision) {
  expect_quotients<int32_t>(DType::kI32);
  expect_quotients<int64_t>(DType::kI64);
}

INSTANTIATE_TEST_SUITE_P(Targets, IntegerDivisions,
                         testing::Values(int64_t{0}, int64_t{HWY_AVX3 | (HWY_AVX3 - 1)},
                                         int64_t{HWY_AVX2 | (HWY_AVX2 - 1)}));

TEST(IntegerDivisions, OnlyWhereVectorsHelp) {
  EXPECT_EQ(integer_division_loop("divide", DType::kI8), nullptr);
  EXPECT_EQ(integer_division_loop("add", DType::kI32), nullptr);
}

}  // namespace
}  // namespace paddle::cpu
