// Updates of rows in place, against the formulas in float64.

#include "tables/row_update.h"

#include <cmath>

#include <gtest/gtest.h>

namespace paddle::tables {
namespace {

using optim::RowRule;

TEST(RowUpdate, FollowsTheFormulas) {
  const int64_t width = 5;
  const std::vector<double> weight = {1, -2, 0.5, 3, 0}, gradient = {0.5, -1, 4, 0, -9},
                            first = {0.1, 0.2, 0.3, 0.4, 0.5}, second = {0.5, 1, 2, 3, 4};
  const RowScalars at{.rate = 0.1, .weight_decay = 0.01, .step = 3, .scale = 0.5, .bound = 2};
  for (const auto kind : {RowRule::Kind::kSgd, RowRule::Kind::kMomentum, RowRule::Kind::kAdagrad,
                          RowRule::Kind::kAdam}) {
    std::vector<double> row = weight;
    row.insert(row.end(), first.begin(), first.end());
    row.insert(row.end(), second.begin(), second.end());
    std::byte* const rows[] = {reinterpret_cast<std::byte*>(row.data())};
    const RowRule rule{.kind = kind, .a = 0.9, .b = 0.99, .epsilon = 1e-8, .flag = false};
    update_rows(rule, at, DType::kF64, width, rows, gradient.data());
    for (size_t i = 0; i < weight.size(); ++i) {
      const double g = std::max(-2.0, std::min(2.0, 0.5 * gradient[i])) + 0.01 * weight[i];
      double m = first[i], v = second[i], w = weight[i];
      if (kind == RowRule::Kind::kSgd) {
        w -= 0.1 * g;
      } else if (kind == RowRule::Kind::kMomentum) {
        m = 0.9 * m + g;
        w -= 0.1 * m;
      } else if (kind == RowRule::Kind::kAdagrad) {
        m += g * g;
        w -= 0.1 * g / (std::sqrt(m) + 1e-8);
      } else {
        m = 0.9 * m + 0.1 * g;
        v = 0.99 * v + 0.01 * g * g;
        w -= 0.1 * std::sqrt(1 - std::pow(0.99, 3)) / (1 - std::pow(0.9, 3)) * m /
             (std::sqrt(v) + 1e-8);
      }
      EXPECT_NEAR(row[i], w, 1e-12);
      EXPECT_NEAR(row[5 + i], m, 1e-12);
      EXPECT_NEAR(row[10 + i], v, 1e-12);
    }
  }
  EXPECT_EQ(sum_of_squares(DType::kF64, 3, weight.data()), 5.25);
}

}  // namespace
}  // namespace paddle::tables
