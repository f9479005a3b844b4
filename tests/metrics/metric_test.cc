// Metrics over shards give the value of the whole, equal the definitions (reference values from
// scikit-learn 1.5), and are rejected where they are not defined.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "metrics/metric.h"

namespace paddle::metrics {
namespace {

using Operands = std::vector<Array>;

/// The value over shards, each with an accumulator of its own.
double value(const MetricSpec& spec, const std::vector<Operands>& shards) {
  auto whole = make_metric(spec);
  whole->reset();
  for (const Operands& shard : shards) {
    auto metric = make_metric(spec);
    metric->reset();
    metric->update(shard, shard[0].shape.empty() ? 1 : shard[0].shape[0]);
    whole->merge(metric->state());
  }
  return whole->result();
}
double value(const std::string& name, const std::vector<Operands>& shards, Options options = {}) {
  return value(MetricSpec{.name = name, .options = std::move(options)}, shards);
}

Array floats(std::initializer_list<float> values, Dims shape) {
  return Array::from<float>(values, std::move(shape));
}
Array integers(std::initializer_list<int64_t> values, Dims shape) {
  return Array::from<int64_t>(values, std::move(shape));
}
Operands binary(std::initializer_list<float> scores, std::initializer_list<int64_t> labels) {
  const auto n = static_cast<int64_t>(labels.size());
  return {floats(scores, {n}), integers(labels, {n})};
}

const Array kScores = floats({3, 1, 0, 0, 2, 1, 1, 0, 5, 2, 2, 2}, {4, 3});
const Array kLabels = integers({0, 2, 2, 1}, {4});
/// Probabilities of six samples; predictions are 0, 1, 2, 0, 1, 2.
const Array kThree = floats(
    {.7f, .2f, .1f, .1f, .6f, .3f, .2f, .2f, .6f, .6f, .3f, .1f, .3f, .4f, .3f, .1f, .2f, .7f},
    {6, 3});
const Array kThreeLabels = integers({0, 1, 2, 1, 1, 2}, {6});
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Metric, AccuracyAndTopK) {
  EXPECT_DOUBLE_EQ(value("accuracy", {{kScores, kLabels}}), 0.5);
  EXPECT_DOUBLE_EQ(value("accuracy", {{kScores, kLabels}}, {{"k", int64_t{2}}}), 1.0);
}

TEST(Metric, IgnoredLabelsAreNotCounted) {
  const Array labels = integers({0, -100, 2, -100}, {4});
  EXPECT_DOUBLE_EQ(value("accuracy", {{kScores, labels}}), 1.0);
  EXPECT_DOUBLE_EQ(value("accuracy", {{kScores, integers({0, 255, 2, 1}, {4})}},
                         {{"ignore_index", int64_t{255}}}),
                   2.0 / 3);
  EXPECT_THROW(value("accuracy", {{kScores, integers({0, 255, 2, 1}, {4})}}), Error);
  // The label that the loss ignores is the default.
  const MetricSpec spec{.name = "accuracy", .ignored_label = -1};
  EXPECT_DOUBLE_EQ(value(spec, {{kScores, integers({0, -1, 2, 1}, {4})}}), 2.0 / 3);
}

TEST(Metric, ChannelsFirst) {
  // Scores [1, 2, 3]: classes along axis 1, three positions.
  const Operands data = {floats({1, 0, 5, 0, 2, 1}, {1, 2, 3}), integers({0, 1, 1}, {1, 3})};
  EXPECT_DOUBLE_EQ(value("accuracy", {data}), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("accuracy", {data}, {{"axis", int64_t{1}}}), 2.0 / 3);
  EXPECT_THROW(value("accuracy", {data}, {{"axis", int64_t{-1}}}), Error);
  // Either axis fits: the caller must say which.
  const Operands square = {floats({1, 0, 0, 2}, {1, 2, 2}), integers({0, 1}, {1, 2})};
  EXPECT_THROW(value("accuracy", {square}), Error);
  EXPECT_DOUBLE_EQ(value("accuracy", {square}, {{"axis", int64_t{-1}}}), 1.0);
}

TEST(Metric, OneHotLabelsAreRejectedUnlessDecisionsAreMeant) {
  const Operands one_hot = {floats({2, -1, -1, 3}, {2, 2}), integers({1, 0, 1, 0}, {2, 2})};
  EXPECT_THROW(value("accuracy", {one_hot}), Error);
  EXPECT_DOUBLE_EQ(value("accuracy", {one_hot}, {{"multilabel", true}}), 0.5);
}

TEST(Metric, LabelsThatAreNoClassesAreRejected) {
  EXPECT_THROW(value("accuracy", {binary({1, -1}, {1, -1})}), Error);
  EXPECT_THROW(value("auc", {binary({1, -1}, {1, -1})}), Error);
  EXPECT_THROW(value("accuracy", {{kScores, integers({0, 1, 2, 3}, {4})}}), Error);
  EXPECT_THROW(value("accuracy", {{kScores, floats({0, 1, 0.5f, 2}, {4})}}), Error);
}

TEST(Metric, ThresholdFollowsTheKindOfScores) {
  const Operands probabilities = binary({.9f, .2f, .6f, .4f}, {1, 0, 0, 1});
  EXPECT_DOUBLE_EQ(
      value({.name = "accuracy", .scores = ScoreKind::kProbabilities}, {probabilities}), 0.5);
  EXPECT_DOUBLE_EQ(value("accuracy", {probabilities}, {{"threshold", 0.5}}), 0.5);
  EXPECT_DOUBLE_EQ(value("accuracy", {binary({-.1f, .1f}, {0, 1})}, {{"threshold", -0.5}}), 0.5);
  // All logits in [0, 1]: said, but only where there is enough to tell.
  auto metric = make_metric({.name = "accuracy"});
  metric->reset();
  metric->update(probabilities, 4);
  EXPECT_EQ(metric->warning(), "");
  for (int i = 0; i < 10; ++i) metric->update(probabilities, 4);
  EXPECT_NE(metric->warning().find("threshold=0.5"), std::string::npos);
}

TEST(Metric, AucOfShardsIsThatOfTheWhole) {
  // Pairs won: (0.8 over 0.1, 0.5), (0.5 over 0.1, ties 0.5): 3.5 of 4.
  const std::vector<Operands> shards = {binary({0.1f}, {0}), binary({0.8f}, {1}),
                                        binary({0.5f}, {1}), binary({0.5f}, {0})};
  EXPECT_DOUBLE_EQ(value("auc", shards), 3.5 / 4);
}

TEST(Metric, NaNScoresGiveNaN) {
  const Operands data = binary({kNaN, 1, kNaN, -1}, {1, 1, 0, 0});
  for (const char* name : {"auc", "accuracy", "precision", "recall", "f1"})
    EXPECT_TRUE(std::isnan(value(name, {data}))) << name;
  EXPECT_TRUE(std::isnan(value("auc", {binary({1, 2}, {1, 1})})));  // one class only
}

TEST(Metric, PrecisionRecallF1) {
  const Operands data = binary({1, 1, -1, 1}, {1, 0, 1, 1});
  EXPECT_DOUBLE_EQ(value("precision", {data}), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("recall", {data}), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("f1", {data}), 2.0 / 3);
  // Of class 0 of single scores: predicted 1 of 1, actual 1.
  EXPECT_DOUBLE_EQ(value("precision", {data}, {{"positive", int64_t{0}}}), 0.0);
  EXPECT_DOUBLE_EQ(value("recall", {binary({1, -1}, {0, 0})}, {{"positive", int64_t{0}}}), 0.5);
}

TEST(Metric, SeveralClassesNeedAnAverage) {
  const Operands data = {kThree, kThreeLabels};
  for (const char* name : {"precision", "recall", "f1", "auc"})
    EXPECT_THROW(value(name, {data}), Error) << name;
  const auto with = [&](const char* name, const char* average) {
    MetricSpec spec{.name = name, .scores = ScoreKind::kProbabilities};
    spec.options["average"] = std::string(average);
    return value(spec, {data});
  };
  EXPECT_NEAR(with("f1", "macro"), 0.8222222222222223, 1e-12);
  EXPECT_NEAR(with("f1", "micro"), 0.8333333333333334, 1e-12);
  EXPECT_NEAR(with("f1", "weighted"), 0.8444444444444444, 1e-12);
  EXPECT_NEAR(with("precision", "macro"), 0.8333333333333334, 1e-12);
  EXPECT_NEAR(with("recall", "weighted"), 0.8333333333333334, 1e-12);
  EXPECT_NEAR(value("f1", {data}, {{"positive", int64_t{1}}}), 0.8, 1e-12);
  MetricSpec auc{.name = "auc", .scores = ScoreKind::kProbabilities};
  auc.options["average"] = std::string("macro");
  EXPECT_NEAR(value(auc, {{kThree, integers({0, 1, 2, 1, 0, 2}, {6})}}), 0.9166666666666666, 1e-12);
}

TEST(Metric, ErrorsAndPerplexity) {
  const Operands data = {floats({1, 4}, {2}), floats({2, 2}, {2})};
  EXPECT_DOUBLE_EQ(value("mae", {data}), 1.5);
  EXPECT_DOUBLE_EQ(value("rmse", {data}), std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(value("mae", {{floats({1, 4}, {2, 1}), data[1]}}), 1.5);
  EXPECT_THROW(value("mae", {{floats({1, 4, 2, 2}, {2, 2}), floats({1, 4, 2, 2}, {4})}}), Error);
  const Operands uniform = {floats({0, 0, 0, 0}, {1, 4}), integers({2}, {1})};
  EXPECT_NEAR(value("perplexity", {uniform}), 4, 1e-12);
  EXPECT_THROW(value("perplexity", {{uniform[0], integers({9}, {1})}}), Error);
  const Operands probabilities = {floats({.25f, .25f, .25f, .25f}, {1, 4}), integers({2}, {1})};
  EXPECT_NEAR(value({.name = "perplexity", .scores = ScoreKind::kProbabilities}, {probabilities}),
              4, 1e-12);
}

TEST(Metric, AverageCountsBatchValuesBySamples) {
  const MetricSpec whole{.name = "average", .per_sample = false};
  auto metric = make_metric(whole);
  metric->reset();
  metric->update({floats({1}, {})}, 4);
  metric->update({floats({4}, {})}, 2);
  EXPECT_DOUBLE_EQ(metric->result(), 2.0);
  EXPECT_DOUBLE_EQ(value("average", {{floats({1, 2}, {2})}, {floats({6}, {1})}}), 3.0);
}

TEST(Metric, UnknownNamesAndOptionsAreRejected) {
  EXPECT_THROW(make_metric({.name = "acuracy"}), Error);
  EXPECT_THROW(make_metric({.name = "accuracy", .options = {{"topk", int64_t{3}}}}), Error);
  EXPECT_THROW(make_metric({.name = "accuracy", .options = {{"k", int64_t{0}}}}), Error);
}

TEST(Metric, ShapesAreCheckedBeforeTheFirstBatch) {
  const Dim batch = Dim::symbol("batch"), length = Dim::symbol("length");
  const auto resolved = [](const char* name, Shape input, Shape label) {
    MetricSpec spec{.name = name};
    resolve_operands(spec, {{DType::kF32, std::move(input)}, {DType::kI64, std::move(label)}});
    return spec.layout ? spec.layout->axis : -2;
  };
  EXPECT_EQ(resolved("accuracy", {batch, length, Dim(65)}, {batch, length}), 2);
  EXPECT_EQ(resolved("accuracy", {batch, Dim(3), length}, {batch, length}), 1);
  EXPECT_EQ(resolved("accuracy", {batch, Dim(1)}, {batch}), -1);
  EXPECT_EQ(resolved("accuracy", {batch, Dim(5)}, {batch, Dim(1)}), 1);
  EXPECT_THROW(resolved("accuracy", {batch, Dim(5)}, {batch, Dim(5)}), Error);
  EXPECT_THROW(resolved("rmse", {batch, Dim(5)}, {batch}), Error);
}

// Values of scikit-learn 1.9: roc_auc_score, average_precision_score, f1_score, jaccard_score,
// r2_score and mean_absolute_percentage_error.
TEST(Metric, AveragesOverLabels) {
  const Array scores = floats(
      {.9f, .2f, .4f, .1f, .8f, .6f, .7f, .3f, .2f, .4f, .6f, .9f, .2f, .1f, .7f, .8f, .9f, .3f},
      {6, 3});
  const Array labels = integers({1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0}, {6, 3});
  const std::vector<Operands> shards = {{scores, labels}};
  const auto with = [](const char* average) {
    return Options{{"multilabel", true}, {"average", std::string(average)}};
  };
  const auto at_half = [&](const char* average) {
    Options options = with(average);
    options["threshold"] = 0.5;
    return options;
  };
  EXPECT_NEAR(value("f1", shards, at_half("macro")), 0.7777777777777777, 1e-12);
  EXPECT_NEAR(value("precision", shards, at_half("macro")), 0.7777777777777777, 1e-12);
  EXPECT_NEAR(value("f1", shards, at_half("micro")), 0.7777777777777778, 1e-12);
  EXPECT_NEAR(value("f1", shards, at_half("weighted")), 0.7777777777777778, 1e-12);
  EXPECT_NEAR(value("auc", shards, with("macro")), 0.888888888888889, 1e-12);
  EXPECT_NEAR(value("average_precision", shards, with("macro")), 0.9074074074074074, 1e-12);
  EXPECT_NEAR(value("average_precision", shards, with("weighted")), 0.9074074074074073, 1e-12);
}

TEST(Metric, AveragePrecisionSharesTies) {
  EXPECT_NEAR(value("average_precision", {binary({.1f, .4f, .35f, .8f}, {0, 1, 0, 1}),
                                          binary({.4f, .9f, .2f}, {0, 1, 1})}),
              0.8541666666666666, 1e-12);
  EXPECT_TRUE(std::isnan(value("average_precision", {binary({1, 2}, {0, 0})})));
}

TEST(Metric, IntersectionOverUnion) {
  const std::vector<Operands> shards = {{kThree, kThreeLabels}};
  EXPECT_NEAR(value("iou", shards), 0.7222222222222222, 1e-12);
  EXPECT_NEAR(value("iou", shards, {{"average", std::string("micro")}}), 0.7142857142857143, 1e-12);
  EXPECT_NEAR(value("iou", shards, {{"positive", int64_t{1}}}), 0.6666666666666666, 1e-12);
}

// Values of scikit-learn: ndcg_score, top_k_accuracy_score, label_ranking_average_precision_score.
TEST(Metric, Ranks) {
  const Array scores =
      floats({0.9f, 0.1f, 0.4f, 0.3f, 0.2f, 0.8f, 0.7f, 0.1f, 0.5f, 0.6f, 0.1f, 0.9f}, {3, 4});
  const Array relevant = integers({0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1}, {3, 4});
  const Array labels = integers({2, 0, 3}, {3});
  const double ndcg[] = {0.3333333333333333, 0.46228426907818054, 0.5644754678724236};
  const double recall[] = {0.16666666666666666, 0.5, 0.6666666666666666};
  const double hits[] = {0.3333333333333333, 0.6666666666666666, 1};
  for (int64_t k = 1; k <= 3; ++k) {
    const auto at = static_cast<size_t>(k - 1);
    EXPECT_NEAR(value("ndcg", {{scores, relevant}}, {{"k", k}}), ndcg[at], 1e-12);
    EXPECT_NEAR(value("recall_at_k", {{scores, relevant}}, {{"k", k}}), recall[at], 1e-12);
    EXPECT_NEAR(value("hits", {{scores, labels}}, {{"k", k}}), hits[at], 1e-12);
  }
  EXPECT_NEAR(value("mrr", {{scores, labels}}), 0.611111111111111, 1e-12);
  // Equal scores earn nothing, and rows without relevant items do not count.
  const Array equal = floats({1, 1, 1, 1}, {1, 4});
  EXPECT_EQ(value("mrr", {{equal, integers({0}, {1})}}), 0.25);
  EXPECT_EQ(value("hits", {{equal, integers({0}, {1})}}, {{"k", int64_t{3}}}), 0);
  EXPECT_EQ(value("ndcg", {{equal, integers({1, 0, 0, 0}, {1, 4})}}, {{"k", int64_t{3}}}), 0);
  EXPECT_TRUE(std::isnan(value("recall_at_k", {{equal, integers({0, 0, 0, 0}, {1, 4})}})));
  EXPECT_TRUE(std::isnan(value("ndcg", {{floats({kNaN, 1}, {1, 2}), integers({1, 0}, {1, 2})}})));
  EXPECT_THROW(value("ndcg", {{equal, integers({2, 0, 0, 0}, {1, 4})}}), Error);
  EXPECT_THROW(value("recall_at_k", {{equal, labels}}), Error);
  EXPECT_THROW(value("hits", {{equal, integers({0}, {1})}}, {{"k", int64_t{0}}}), Error);
}

TEST(Metric, Determination) {
  const std::vector<Operands> shards = {{floats({2.5f, 0}, {2}), floats({3, -0.5f}, {2})},
                                        {floats({2, 8}, {2}), floats({2, 7}, {2})}};
  EXPECT_NEAR(value("r2", shards), 0.9486081370449679, 1e-12);
  EXPECT_NEAR(value("mape", shards), 0.3273809523809524, 1e-12);
}

TEST(Metric, ReductionsKeepTheOtherAxes) {
  const auto of = [](const char* name, std::vector<int64_t> axes, const Array& x) {
    const auto metric = make_metric({.name = name, .options = {{"axis", std::move(axes)}}});
    metric->update({x}, x.shape[0]);
    return metric->results();
  };
  const Array x = floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 2, 3});
  EXPECT_EQ(of("sum", {0}, x), (std::vector<double>{8, 10, 12, 14, 16, 18}));
  EXPECT_EQ(of("sum", {0, 2}, x), (std::vector<double>{30, 48}));
  EXPECT_EQ(of("max", {0, -1}, x), (std::vector<double>{9, 12}));
  EXPECT_EQ(of("min", {0, 1}, x), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(of("sum", {0, 1, 2}, x), std::vector<double>{78});
  const Array bad = floats({1, kNaN, 3, 4}, {2, 2});
  EXPECT_EQ(of("max", {0}, bad)[0], 3);
  EXPECT_TRUE(std::isnan(of("max", {0}, bad)[1]));
  EXPECT_TRUE(std::isnan(of("sum", {0}, bad)[1]));
  EXPECT_THROW(of("sum", {3}, x), Error);
}

TEST(Metric, EditRateLeavesPaddingOut) {
  // "abcd" against "abd", and nothing against "ab".
  const std::vector<Operands> shards = {
      {integers({1, 2, 3, 4, 0, 0, 0, 0}, {2, 4}), integers({1, 2, 4, 1, 2, 0}, {2, 3})}};
  EXPECT_NEAR(value("edit_rate", shards), 3.0 / 5, 1e-12);
}

/// The share of scores above a bound.
class ShareAbove : public Metric {
 public:
  explicit ShareAbove(double bound) : bound_(bound) {}
  void update(const std::vector<Array>& operands, int64_t) override {
    for (int64_t i = 0; i < operands[0].size(); ++i) {
      ++state_.count(0, 0);
      state_.count(0, 1) += operands[0].number(i) > bound_;
    }
  }
  double result() const override {
    return static_cast<double>(state_.count(0, 1)) / static_cast<double>(state_.count(0, 0));
  }

 private:
  double bound_;
};

TEST(Metrics, MayBeAddedAtRunTime) {
  const MetricInfo info{.name = "share_above",
                        .doc = "Share of values above a bound.",
                        .operands = {"input"},
                        .options = {{"bound", OptionKind::kReal, 0.5, {}}},
                        .direction = Direction::kHigher,
                        .make = [](const MetricSpec& spec) {
                          const auto given = spec.options.find("bound");
                          return std::make_unique<ShareAbove>(
                              given == spec.options.end() ? 0.5 : std::get<double>(given->second));
                        }};
  metric_registry().add({info}, {"plugin.so"});
  EXPECT_THROW(metric_registry().add({info}, {"other.so"}), Error);
  const std::vector<Operands> shards = {{floats({0.2f, 0.6f}, {2})}, {floats({0.7f, 0.9f}, {2})}};
  EXPECT_EQ(value("share_above", shards), 0.75);
  EXPECT_EQ(value("share_above", shards, {{"bound", 0.8}}), 0.25);
  EXPECT_THROW(value("share_above", shards, {{"k", int64_t{1}}}), Error);
  metric_registry().remove({"share_above"});
  EXPECT_EQ(find_metric("share_above"), nullptr);
}

}  // namespace
}  // namespace paddle::metrics
