// Metrics of click rates against golden.json, which ctr/make.py computed by their definitions.

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "metrics/metric.h"

namespace paddle::metrics {
namespace {

using Operands = std::vector<Array>;

class Ctr : public ::testing::Test {
 protected:
  Ctr() {
    std::ifstream file("tests/metrics/ctr/golden.json");
    golden_ = nlohmann::json::parse(file);
  }
  template <class T>
  Array array(const char* name) const {
    const auto values = golden_[name].get<std::vector<T>>();
    return Array::from<T>(values, {static_cast<int64_t>(values.size())});
  }
  double golden(const char* name) const { return golden_[name].get<double>(); }
  Operands pair() const { return {array<float>("logit"), array<int64_t>("label")}; }
  static Operands with(Operands operands, Array more) {
    operands.push_back(std::move(more));
    return operands;
  }
  nlohmann::json golden_;
};

/// The value over `parts` shards, each with an accumulator of its own.
double value(const MetricSpec& spec, const Operands& operands, int64_t parts = 3) {
  auto whole = make_metric(spec);
  const int64_t n = operands[0].shape[0];
  for (int64_t part = 0; part < parts; ++part) {
    Operands rows;
    for (Array each : operands) {
      each.offset += n * part / parts * each.strides[0];
      each.shape[0] = n * (part + 1) / parts - n * part / parts;
      rows.push_back(std::move(each));
    }
    auto metric = make_metric(spec);
    metric->update(rows, rows[0].shape[0]);
    whole->merge(metric->state());
  }
  return whole->result();
}
double value(const char* name, const Operands& operands, Options options = {}) {
  return value(MetricSpec{.name = name, .options = std::move(options)}, operands);
}

TEST_F(Ctr, AreasOverUsers) {
  const Operands all = with(pair(), array<uint64_t>("user"));
  const Operands some = with(all, array<int64_t>("mask"));
  for (const char* average : {"weighted", "macro"}) {
    const Options options = {{"average", std::string(average)}};
    EXPECT_NEAR(value("wuauc", all, options), golden_["wuauc"][average].get<double>(), 1e-12);
    EXPECT_NEAR(value("wuauc", some, options), golden_["wuauc_masked"][average].get<double>(),
                1e-12);
  }
  // No user has samples of both labels.
  const Operands apart = {Array::from<float>({1, 2}, {2}), Array::from<int64_t>({0, 1}, {2}),
                          Array::from<int64_t>({-1, 1}, {2})};
  EXPECT_TRUE(std::isnan(value("wuauc", apart)));
}

TEST_F(Ctr, MasksLeaveLabelsOut) {
  EXPECT_NEAR(value("auc", pair()), golden("auc"), 1e-12);
  EXPECT_NEAR(value("auc", with(pair(), array<int64_t>("mask"))), golden("auc_masked"), 1e-12);
  const Options mae = {{"value", std::string("mae")}};
  EXPECT_NEAR(value("ctr", with(pair(), array<int64_t>("mask")), mae), golden("mae_masked"), 1e-12);
  const Array none = Array::zeros(DType::kBool, array<int64_t>("label").shape);
  for (const char* name : {"auc", "accuracy", "mae", "rmse", "r2"})
    EXPECT_TRUE(std::isnan(value(name, with(pair(), none)))) << name;
  const Operands errors = {Array::from<float>({1, 5, 2}, {3}), Array::from<float>({2, 5, 4}, {3}),
                           Array::from<bool>({true, false, true}, {3})};
  EXPECT_DOUBLE_EQ(value("mae", errors), 1.5);
  EXPECT_DOUBLE_EQ(value("mape", errors), 0.5);
  EXPECT_THROW(value("mae", {errors[0], errors[1], Array::zeros(DType::kBool, {3, 2})}), Error);
}

TEST_F(Ctr, AreaByBucketsIsTheExactOneWhereBucketsAreFine) {
  for (const int64_t buckets : {int64_t{1'000'000}, int64_t{4'000'000}})
    EXPECT_NEAR(value("auc", pair(), {{"buckets", buckets}}), golden("auc"), 1e-12);
  // One of two buckets: p at least one half.
  const Operands few = {Array::from<float>({-1, -2, 1, 3}, {4}),
                        Array::from<int64_t>({1, 0, 0, 1}, {4})};
  EXPECT_DOUBLE_EQ(value("auc", few, {{"buckets", int64_t{2}}}), (0.5 + 1 + 0 + 0.5) / 4);
  EXPECT_THROW(value("auc", few, {{"buckets", int64_t{1}}}), Error);
  MetricSpec spec{
      .name = "auc", .options = {{"buckets", int64_t{10}}}, .scores = ScoreKind::kProbabilities};
  EXPECT_THROW(value(spec, few), Error);
}

TEST_F(Ctr, Rates) {
  for (const char* name : {"mae", "rmse", "actual", "predicted", "copc", "auc"})
    EXPECT_NEAR(value("ctr", pair(), {{"value", std::string(name)}}), golden(name), 1e-12) << name;
  std::vector<double> sure;
  for (const int percent : golden_["sure"]["percent"]) sure.push_back(percent / 100.0 + 1e-7);
  const auto labels = golden_["sure"]["label"].get<std::vector<int64_t>>();
  const auto n = static_cast<int64_t>(sure.size());
  const MetricSpec spec{.name = "ctr",
                        .options = {{"value", std::string("bucket_error")}},
                        .scores = ScoreKind::kProbabilities};
  EXPECT_NEAR(value(spec, {Array::from<double>(sure, {n}), Array::from<int64_t>(labels, {n})}),
              golden_["sure"]["bucket_error"].get<double>(), 1e-9);
}

TEST_F(Ctr, LongListsAreRankedAsShortOnes) {
  // More samples than lists that are sorted by comparison; negative, equal and tiny scores.
  std::vector<double> scores;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 20000; ++i) {
    scores.push_back((i * 7919 % 20011 - 10000) * (i % 3 == 0 ? 1e-200 : 1e3));
    labels.push_back(i * 31 % 7 < 2);
  }
  double won = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); i += 1)
    for (size_t k = 0; labels[i] == 1 && k < scores.size(); ++k)
      if (labels[k] == 0) {
        won += scores[i] > scores[k] ? 1 : scores[i] == scores[k] ? 0.5 : 0;
        ++pairs;
      }
  const auto n = static_cast<int64_t>(scores.size());
  EXPECT_DOUBLE_EQ(
      value("auc", {Array::from<double>(scores, {n}), Array::from<int64_t>(labels, {n})}),
      won / pairs);
}

TEST_F(Ctr, OperandsAreChecked) {
  const auto resolve = [](const char* name, std::vector<TensorType> types) {
    MetricSpec spec{.name = name};
    resolve_operands(spec, types);
  };
  const Dim batch = Dim::symbol("batch");
  const TensorType score{DType::kF32, {batch}}, label{DType::kI64, {batch}};
  const TensorType wide{DType::kF32, {batch, Dim(3)}};
  resolve("wuauc", {score, label, {DType::kU64, {batch, Dim(1)}}, {DType::kBool, {batch}}});
  EXPECT_THROW(resolve("wuauc", {score, label, score}), Error);
  EXPECT_THROW(resolve("wuauc", {score, label, {DType::kI64, {batch, Dim(2)}}}), Error);
  EXPECT_THROW(resolve("ctr", {wide, label}), Error);
  EXPECT_THROW(resolve("auc", {score, label, wide}), Error);
}

}  // namespace
}  // namespace paddle::metrics
