// Dims keep a normal form, decide what can be decided, and reject what overflows.

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/dim.h"

namespace paddle {
namespace {

const Dim n = Dim::symbol("n", 1), m = Dim::symbol("m");

TEST(Dim, NormalFormMakesEqualExpressionsEqual) {
  EXPECT_TRUE((n * (m + 2)).same(m * n + 2 * n));
  EXPECT_TRUE((n + m - n).same(m));
  EXPECT_TRUE(floor_divide(4 * n + 2, 2).same(2 * n + 1));
  EXPECT_TRUE(modulo(6 * n + 5, 3).same(2));
  EXPECT_TRUE(floor_divide(floor_divide(n, 2), 3).same(floor_divide(n, 6)));
  EXPECT_TRUE(maximum(0, n).same(n));
}

TEST(Dim, DecidesByBounds) {
  EXPECT_EQ(n.less(1), std::optional<bool>(false));
  EXPECT_EQ(Dim(0).less(n), std::optional<bool>(true));
  EXPECT_EQ(n.equals(0), std::optional<bool>(false));
  EXPECT_EQ(n.equals(7), std::nullopt);
  EXPECT_EQ((n + 1).equals(n), std::optional<bool>(false));
}

TEST(Dim, EvaluatesAndPrints) {
  const Dim d = floor_divide(n * m + 3, 2) - 1;
  const auto lookup = [](const std::string& name) -> std::optional<int64_t> {
    return name == "n" ? 5 : 4;
  };
  EXPECT_EQ(d.evaluate(lookup), 10);
  EXPECT_EQ(Dim::parse(d.text()).evaluate(lookup), 10);
  EXPECT_EQ(Dim::parse("max(n, 2*m) % 3 - -1").evaluate(lookup), 3);
}

TEST(Dim, RejectsOverflowAndNonsense) {
  EXPECT_THROW(Dim(INT64_MAX) + 1, Error);
  EXPECT_THROW(Dim(INT64_MAX) * 2, Error);
  EXPECT_THROW(floor_divide(n, 0), Error);
  EXPECT_EQ(Dim::parse("-9223372036854775808").value(), INT64_MIN);
  EXPECT_EQ(Dim::parse("- 7 * 2").value(), -14);
  EXPECT_THROW(Dim::parse("9223372036854775808"), Error);
  EXPECT_THROW(Dim::parse("n +"), Error);
  EXPECT_THROW(Dim::parse(std::string(5000, '(')), Error);
  EXPECT_THROW(n.value(), Error);
}

}  // namespace
}  // namespace paddle
