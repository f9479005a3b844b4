// Metrics over parts give the value of the whole, and the values are those of the definitions.

#include <gtest/gtest.h>

#include <cmath>

#include "nn/metric.h"

namespace paddle::nn {
namespace {

double value(const std::string& name, const std::vector<std::vector<Array>>& parts,
             const std::map<std::string, double>& options = {}) {
  auto whole = make_metric(name, options);
  whole->reset();
  for (const auto& part : parts) {
    auto metric = make_metric(name, options);
    metric->reset();
    metric->update(part);
    whole->merge(*metric);
  }
  return whole->result();
}

const Array kScores = Array::from<float>({3, 1, 0, 0, 2, 1, 1, 0, 5, 2, 2, 2}, {4, 3});
const Array kLabels = Array::from<int64_t>({0, 2, 2, 1}, {4});

TEST(Metric, AccuracyAndTopK) {
  EXPECT_DOUBLE_EQ(value("accuracy", {{kScores, kLabels}}), 0.5);
  EXPECT_DOUBLE_EQ(value("accuracy", {{kScores, kLabels}}, {{"k", 2}}), 1.0);
}

TEST(Metric, AucOfPartsIsThatOfTheWhole) {
  // Pairs won: (0.8 over 0.1, 0.5), (0.5 over 0.1, ties 0.5): 3.5 of 4.
  const auto part = [](float score, int64_t label) {
    return std::vector<Array>{Array::from<float>({score}, {1}), Array::from<int64_t>({label}, {1})};
  };
  EXPECT_DOUBLE_EQ(value("auc", {part(0.1f, 0), part(0.8f, 1), part(0.5f, 1), part(0.5f, 0)}),
                   3.5 / 4);
}

TEST(Metric, PrecisionRecallF1) {
  const std::vector<Array> data = {Array::from<float>({1, 1, -1, 1}, {4}),
                                   Array::from<int64_t>({1, 0, 1, 1}, {4})};
  EXPECT_DOUBLE_EQ(value("precision", {data}), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("recall", {data}), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("f1", {data}), 2.0 / 3);
}

TEST(Metric, ErrorsAndPerplexity) {
  const std::vector<Array> data = {Array::from<float>({1, 4}, {2}),
                                   Array::from<float>({2, 2}, {2})};
  EXPECT_DOUBLE_EQ(value("mae", {data}), 1.5);
  EXPECT_DOUBLE_EQ(value("rmse", {data}), std::sqrt(2.5));
  const std::vector<Array> uniform = {Array::from<float>({0, 0, 0, 0}, {1, 4}),
                                      Array::from<int64_t>({2}, {1})};
  EXPECT_NEAR(value("perplexity", {uniform}), 4, 1e-12);
  EXPECT_THROW(value("perplexity", {{uniform[0], Array::from<int64_t>({9}, {1})}}), Error);
}

}  // namespace
}  // namespace paddle::nn
