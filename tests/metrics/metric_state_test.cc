// States of metrics merge as numbers: however the rows of a data set are divided among batches and
// processes, each metric has the same bits. Sums do not round: reference values are those of
// Python's math.fsum and of exact fractions.

#include "metrics/metric_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "metrics/class_report.h"
#include "metrics/metric.h"

namespace paddle::metrics {
namespace {

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kMin = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum += term;
  return sum.value();
}

TEST(ExactSum, RoundsOnce) {
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({0.1, 0.2, 0.3}), 0.6);  // one by one: 0.6000000000000001
  EXPECT_EQ(sum_of(std::vector<double>(10, 0.1)), 1.0);
  EXPECT_EQ(sum_of({1e308, 1, -1e308}), 1);
  EXPECT_EQ(sum_of({kMax, kMin, -kMax}), kMin);
  EXPECT_EQ(sum_of({kMax, kMax, -kMax}), kMax);
  EXPECT_EQ(sum_of({kMax, kMax}), kInfinity);
  EXPECT_EQ(sum_of({-1, 0x1p-54}), -1);
  EXPECT_EQ(sum_of({-1, 0x1p-54, 0x1p-60}), -0.9999999999999999);
  // Ties go to even, and what is far below a tie breaks it.
  EXPECT_EQ(sum_of({1, 0x1p-53}), 1);
  EXPECT_EQ(sum_of({1, 0x1p-53, kMin}), 1 + 0x1p-52);
  EXPECT_EQ(sum_of({1, 0x1p-53, -kMin}), 1);
  EXPECT_EQ(sum_of({1 + 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(sum_of({-1, -0x1p-53, -0x1p-200}), -1 - 0x1p-52);
  EXPECT_EQ(sum_of({0x1p-1022, -kMin}), 0x1p-1022 - kMin);
}

TEST(ExactSum, NumbersThatAreNotFinite) {
  EXPECT_EQ(sum_of({1, kInfinity}), kInfinity);
  EXPECT_EQ(sum_of({-kInfinity, kMax}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(sum_of({std::nan(""), 1})));
}

TEST(ExactSum, ProductsKeepAllDigits) {
  // (1 + 2^-30)^2 - 1 - 2^-29 = 2^-60
  ExactSum sum;
  sum.add_product(1 + 0x1p-30, 1 + 0x1p-30);
  sum += -1;
  sum += -0x1p-29;
  EXPECT_EQ(sum.value(), 0x1p-60);
  ExactSum wide;
  wide.add_product(1e300, 1e-20);
  wide += 1;
  EXPECT_EQ(wide.parts()[0], 1e280);
  EXPECT_NE(wide.parts()[1], 0);
}

TEST(ExactSum, AnyOrderAndAnyPartsHaveTheSameBits) {
  std::mt19937_64 random(3);
  std::vector<double> terms;
  for (int i = 0; i < 2000; ++i)
    terms.push_back(
        std::ldexp(static_cast<double>(random()) - 0x1p63, static_cast<int>(random() % 300) - 200));
  const double wanted = sum_of(terms);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(terms.begin(), terms.end(), random);
    ExactSum parts[3];
    for (size_t i = 0; i < terms.size(); ++i) parts[random() % 3] += terms[i];
    // Words add up as integers, as a sum over ranks would.
    auto words = parts[0].words();
    const auto second = parts[1].words();
    for (size_t i = 0; i < words.size(); ++i) words[i] += second[i];
    ExactSum whole = ExactSum::from_words(words);
    whole += parts[2];
    EXPECT_EQ(whole.value(), wanted);
  }
  // Terms that cancel leave nothing.
  ExactSum rest;
  for (const double term : terms) rest += term;
  for (const double term : terms) rest += -term;
  EXPECT_EQ(rest.value(), 0);
}

/// A metric with operands for some rows.
struct Case {
  MetricSpec spec;
  std::vector<Array> operands;
};

Array random_floats(std::mt19937_64& random, Dims shape, double low, double high) {
  Array out = Array::empty(DType::kF32, std::move(shape));
  std::uniform_real_distribution<float> draw(static_cast<float>(low), static_cast<float>(high));
  for (int64_t i = 0; i < out.size(); ++i) out.data<float>()[i] = draw(random);
  return out;
}

Array random_integers(std::mt19937_64& random, Dims shape, int64_t low, int64_t high) {
  Array out = Array::empty(DType::kI64, std::move(shape));
  std::uniform_int_distribution<int64_t> draw(low, high);
  for (int64_t i = 0; i < out.size(); ++i) out.data<int64_t>()[i] = draw(random);
  return out;
}

/// Every metric there is, with one call or more.
std::vector<Case> cases(int64_t n) {
  std::mt19937_64 random(11);
  const auto classes = random_floats(random, {n, 5}, -3, 3);
  const auto labels = random_integers(random, {n}, 0, 4);
  const auto scores = random_floats(random, {n}, -2, 2);
  const auto truth = random_integers(random, {n}, 0, 1);
  const auto several = random_integers(random, {n, 5}, 0, 1);
  const auto values = random_floats(random, {n, 3}, 90, 110);
  const auto targets = random_floats(random, {n, 3}, 90, 110);
  const OptionValue macro = std::string("macro"), weighted = std::string("weighted"),
                    micro = std::string("micro");
  std::vector<Case> out;
  const auto add = [&](const char* name, const Array& input, const Array& label,
                       Options options = {}, bool per_sample = true) {
    out.push_back(
        {{.name = name, .options = std::move(options), .per_sample = per_sample}, {input, label}});
  };
  for (const char* name : {"auc", "average_precision"}) {
    add(name, scores, truth);
    add(name, classes, labels, {{"average", weighted}});
    add(name, classes, several, {{"multilabel", true}, {"average", macro}});
  }
  for (const char* name : {"precision", "recall", "f1", "iou"}) {
    add(name, scores, truth);
    add(name, classes, labels, {{"average", macro}});
    add(name, classes, labels, {{"average", micro}, {"ignore_index", int64_t{2}}});
    add(name, classes, several, {{"multilabel", true}, {"average", weighted}});
  }
  add("auc", scores, truth, {{"buckets", int64_t{50}}});
  for (const char* value : {"auc", "bucket_error", "mae", "rmse", "actual", "predicted", "copc"})
    add("ctr", scores, truth, {{"value", std::string(value)}});
  const Array users = random_integers(random, {n}, -9, 9),
              mask = random_integers(random, {n}, 0, 1);
  for (const char* average : {"weighted", "macro"})
    out.push_back({{.name = "wuauc", .options = {{"average", std::string(average)}}},
                   {scores, truth, users, mask}});
  out.push_back({{.name = "mae"}, {scores, truth, mask}});
  add("accuracy", scores, truth);
  add("accuracy", classes, labels, {{"k", int64_t{2}}});
  add("perplexity", classes, labels);
  add("mrr", classes, labels);
  add("hits", classes, labels, {{"k", int64_t{2}}});
  for (const char* name : {"recall_at_k", "ndcg"}) add(name, classes, several, {{"k", int64_t{2}}});
  for (const char* name : {"mae", "rmse", "mape", "r2"}) add(name, values, targets);
  out.push_back({{.name = "average"}, {values}});
  for (const char* name : {"edit_rate", "bleu"})
    add(name, random_integers(random, {n, 6}, 0, 3), random_integers(random, {n, 8}, 0, 3));
  for (const char* name : {"sum", "min", "max"}) {
    out.push_back({{.name = name}, {values}});
    out.push_back({{.name = name, .options = {{"axis", std::vector<int64_t>{0}}}}, {values}});
  }
  // Boxes of sizes 20 to 60, in the order of their corners; many scores are equal.
  const auto boxes = [&](int64_t count) {
    Array corners = random_floats(random, {n, count, 4}, 0, 40);
    for (int64_t i = 0; i < n * count; ++i)
      for (int64_t k = 0; k < 2; ++k)
        corners.data<float>()[4 * i + 2 + k] =
            corners.data<float>()[4 * i + k] + 20 + corners.data<float>()[4 * i + 2 + k];
    return corners;
  };
  out.push_back(
      {{.name = "mean_average_precision"},
       {boxes(6), random_integers(random, {n, 6}, 0, 4), random_integers(random, {n, 6}, 0, 2),
        boxes(3), random_integers(random, {n, 3}, 0, 2), random_integers(random, {n, 3}, 0, 1)}});
  return out;
}

/// Rows [begin, end) of an array.
Array rows(const Array& whole, int64_t begin, int64_t end) {
  Dims shape = whole.shape;
  shape[0] = end - begin;
  Array out = Array::empty(whole.dtype, shape);
  const int64_t row = whole.size() / whole.shape[0] * item_size(whole.dtype);
  if (end > begin)
    std::memcpy(out.raw(), static_cast<const std::byte*>(whole.raw()) + begin * row,
                static_cast<size_t>((end - begin) * row));
  return out;
}

/// Updates the accumulator of a rank with rows [begin, end), in batches of `batch`.
void see(Metric& metric, const Case& c, int64_t begin, int64_t end, int64_t batch) {
  for (; begin < end; begin += batch) {
    const int64_t stop = std::min(end, begin + batch);
    std::vector<Array> operands;
    for (const Array& operand : c.operands) operands.push_back(rows(operand, begin, stop));
    metric.update(operands, stop - begin);
  }
}

TEST(MetricState, AnyDivisionOfTheRowsGivesTheSameBits) {
  constexpr int64_t kRows = 173;
  std::set<std::string> covered;
  for (const Case& c : cases(kRows)) {
    covered.insert(c.spec.name);
    auto whole = make_metric(c.spec);
    see(*whole, c, 0, kRows, kRows);
    const std::vector<double> wanted = whole->results();
    for (const double each : wanted) ASSERT_TRUE(std::isfinite(each)) << c.spec.name;
    for (const int64_t ranks : {2, 3, 7, 200})
      for (const int64_t batch : {1, 16}) {
        std::vector<int64_t> words;
        for (int64_t r = 0; r < ranks; ++r) {
          auto mine = make_metric(c.spec);
          see(*mine, c, kRows * r / ranks, kRows * (r + 1) / ranks, batch);
          mine->state().append_to(words);
        }
        auto merged = make_metric(c.spec);
        std::span<const int64_t> rest = words;
        for (int64_t r = 0; r < ranks; ++r) merged->merge(MetricState::take_from(rest));
        EXPECT_TRUE(rest.empty());
        EXPECT_EQ(merged->results(), wanted) << c.spec.name << " on " << ranks << " ranks";
        EXPECT_EQ(merged->warning(), whole->warning());
        merged->reset();
        const double nothing = merged->result();
        EXPECT_TRUE(c.spec.name == "sum" ? nothing == 0 : std::isnan(nothing)) << c.spec.name;
      }
  }
  for (const auto& info : metric_registry().all())  // those of texts: scores_test.cc
    EXPECT_TRUE(info->compares_texts || covered.contains(info->name))
        << info->name << " has no case here";
}

TEST(MetricState, DeterminationKeepsItsDigitsFarFromZero) {
  // Labels 1e8 + 0 … 9: deviations from the mean 82.5, errors 10 * 0.25.
  Array label = Array::empty(DType::kF64, {10}), input = Array::empty(DType::kF64, {10});
  for (int64_t i = 0; i < 10; ++i) {
    label.data<double>()[i] = 1e8 + static_cast<double>(i);
    input.data<double>()[i] = label.data<double>()[i] + 0.5;
  }
  auto metric = make_metric({.name = "r2"});
  metric->update({input, label}, 10);
  EXPECT_DOUBLE_EQ(metric->result(), 1 - 2.5 / 82.5);
  metric->reset();
  metric->update({input, Array::from<double>(std::vector<double>(10, 0.1), {10})}, 10);
  EXPECT_TRUE(std::isnan(metric->result()));  // labels that are all equal
}

TEST(MetricState, WhatIsCutOffIsRejected) {
  auto metric = make_metric({.name = "auc"});
  const Case c = cases(9)[0];
  see(*metric, c, 0, 9, 9);
  std::vector<int64_t> words;
  metric->state().append_to(words);
  for (size_t size = 0; size < words.size(); ++size) {
    std::span<const int64_t> part(words.data(), size);
    EXPECT_THROW(MetricState::take_from(part), Error) << size;
  }
  words[0] = -1;
  std::span<const int64_t> negative = words;
  EXPECT_THROW(MetricState::take_from(negative), Error);
}

TEST(MetricState, ReportsOfClassesMerge) {
  constexpr int64_t kRows = 40;
  std::mt19937_64 random(5);
  const Array scores = random_floats(random, {kRows, 3}, -2, 2);
  const Array labels = random_integers(random, {kRows}, 0, 2);
  MetricSpec spec{.name = "accuracy"};
  resolve_operands(spec, {TensorType{scores.dtype, to_shape(scores.shape)},
                          TensorType{labels.dtype, to_shape(labels.shape)}});
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < kRows; ++i) indices.push_back(7 * i);
  ClassReport whole(spec);
  whole.update({scores, labels}, indices);
  ClassReport merged(spec);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{25, 40}, {0, 25}}) {
    ClassReport part(spec);
    part.update(
        {rows(scores, begin, end), rows(labels, begin, end)},
        std::span(indices).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    merged.state().merge(part.state());
  }
  EXPECT_EQ(merged.rows(), kRows);
  EXPECT_EQ(merged.classes(), 3);
  EXPECT_EQ(merged.confusion(), whole.confusion());
  const auto a = whole.curves(50), b = merged.curves(50);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].area, b[i].area);
    EXPECT_EQ(a[i].recalls, b[i].recalls);
  }
  const auto worst = whole.worst(10), same = merged.worst(10);
  for (size_t i = 0; i < worst.size(); ++i) EXPECT_EQ(worst[i].index, same[i].index);
}

}  // namespace
}  // namespace paddle::metrics
