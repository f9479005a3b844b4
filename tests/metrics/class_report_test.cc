// Details of a classification against scikit-learn (class_report/make.py).

#include "metrics/class_report.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace paddle::metrics {
namespace {

using nlohmann::json;

json golden() { return json::parse(std::ifstream("tests/metrics/class_report/golden.json")); }

MetricSpec spec_for(const Array& scores, const Array& labels) {
  MetricSpec spec{.name = "accuracy"};
  resolve_operands(spec, {TensorType{scores.dtype, to_shape(scores.shape)},
                          TensorType{labels.dtype, to_shape(labels.shape)}});
  return spec;
}

/// Rows [begin, end) of an array.
Array rows(const Array& whole, int64_t begin, int64_t end) {
  Array out = Array::empty(whole.dtype, whole.shape);
  out = whole;
  out.shape[0] = end - begin;
  Array packed = Array::empty(whole.dtype, out.shape);
  const int64_t row = whole.size() / whole.shape[0] * item_size(whole.dtype);
  std::memcpy(packed.raw(), static_cast<const std::byte*>(whole.raw()) + begin * row,
              static_cast<size_t>((end - begin) * row));
  return packed;
}

TEST(ClassReport, FourClasses) {
  const json g = golden();
  const auto numbers = g["logits"].get<std::vector<float>>();
  const auto truth = g["labels"].get<std::vector<int64_t>>();
  Array logits = Array::empty(DType::kF32, {60, 4}), labels = Array::empty(DType::kI64, {60});
  std::copy(numbers.begin(), numbers.end(), logits.data<float>());
  std::copy(truth.begin(), truth.end(), labels.data<int64_t>());
  ClassReport report(spec_for(logits, labels));
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 25}, {25, 60}}) {
    std::vector<int64_t> indices;
    for (int64_t i = begin; i < end; ++i) indices.push_back(1000 + i);
    report.update({rows(logits, begin, end), rows(labels, begin, end)}, indices);
  }
  EXPECT_EQ(report.rows(), 60);
  EXPECT_EQ(report.confusion(), g["confusion"].get<std::vector<int64_t>>());
  const auto table = report.table();
  const auto curves = report.curves(1000);
  ASSERT_EQ(curves.size(), 4u);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(table[c].support, g["support"][c]);
    EXPECT_NEAR(table[c].precision, g["precision"][c], 1e-12);
    EXPECT_NEAR(table[c].recall, g["recall"][c], 1e-12);
    EXPECT_NEAR(table[c].f1, g["f1"][c], 1e-12);
    EXPECT_NEAR(curves[c].area, g["auc"][c], 1e-12);
    EXPECT_NEAR(curves[c].average_precision, g["average_precision"][c], 1e-12);
  }
  const auto worst = report.worst(60);
  ASSERT_EQ(worst.size(), 60u);
  EXPECT_LT(worst[0].probability, 0.2);
  EXPECT_NE(worst[0].label, worst[0].predicted);
  EXPECT_EQ(worst[0].label, truth[static_cast<size_t>(worst[0].index - 1000)]);
  for (size_t i = 1; i < 60; ++i) EXPECT_LE(worst[i - 1].probability, worst[i].probability);
}

TEST(ClassReport, CurvesOfBinaryDecisions) {
  const json g = golden();
  const auto numbers = g["scores"].get<std::vector<float>>();
  const auto truth = g["truth"].get<std::vector<int64_t>>();
  const auto n = static_cast<int64_t>(truth.size());
  Array scores = Array::empty(DType::kF32, {n}), labels = Array::empty(DType::kI64, {n});
  std::copy(numbers.begin(), numbers.end(), scores.data<float>());
  std::copy(truth.begin(), truth.end(), labels.data<int64_t>());
  ClassReport report(spec_for(scores, labels));
  std::vector<int64_t> indices(truth.size());
  report.update({scores, labels}, indices);
  const auto curves = report.curves(1000);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_NEAR(curves[0].area, g["binary_auc"], 1e-12);
  EXPECT_NEAR(curves[0].average_precision, g["binary_ap"], 1e-12);
  const auto expect_list = [&](const std::vector<double>& found, const char* name) {
    const auto wanted = g[name].get<std::vector<double>>();
    // Behind the last positive, scikit-learn's curve of precision ends.
    ASSERT_GE(found.size(), wanted.size()) << name;
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12) << name << i;
  };
  expect_list(curves[0].false_positives, "fpr");
  expect_list(curves[0].recalls, "tpr");
  expect_list(curves[0].precisions, "precisions");
  EXPECT_EQ(report.curves(10)[0].recalls.size(), 10u);
  EXPECT_EQ(report.curves(10)[0].recalls.back(), 1);
}

TEST(ClassReport, SeveralLabelsInASampleGiveTheMatrixAlone) {
  Array scores = Array::empty(DType::kF32, {1, 2, 3}), labels = Array::empty(DType::kI64, {1, 3});
  const float s[] = {1, 0, 5, 0, 2, 1};
  const int64_t l[] = {0, 1, -100};
  std::copy_n(s, 6, scores.data<float>());
  std::copy_n(l, 3, labels.data<int64_t>());
  ClassReport report(spec_for(scores, labels));
  report.update({scores, labels}, std::vector<int64_t>{7});
  EXPECT_EQ(report.confusion(), (std::vector<int64_t>{1, 0, 0, 1}));
  EXPECT_TRUE(report.curves(10).empty());
  EXPECT_TRUE(report.worst(10).empty());
}

}  // namespace
}  // namespace paddle::metrics
