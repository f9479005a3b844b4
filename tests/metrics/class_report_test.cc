// Details of a classification against scikit-learn (class_report/make.py).

#include "metrics/class_report.h"

#include <cmath>
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
    EXPECT_NEAR(table[c].iou, g["iou"][c], 1e-12);
    EXPECT_NEAR(curves[c].area, g["auc"][c], 1e-12);
    EXPECT_NEAR(curves[c].average_precision, g["average_precision"][c], 1e-12);
  }
  const auto micro = report.micro_curve(1000);
  ASSERT_TRUE(micro.has_value());
  EXPECT_NEAR(micro->area, g["micro_auc"], 1e-12);
  EXPECT_NEAR(micro->average_precision, g["micro_average_precision"], 1e-12);
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
    // After the last positive, scikit-learn's curve of precision ends.
    ASSERT_GE(found.size(), wanted.size()) << name;
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12) << name << i;
  };
  expect_list(curves[0].false_positives, "fpr");
  expect_list(curves[0].recalls, "tpr");
  expect_list(curves[0].precisions, "precisions");
  EXPECT_EQ(report.curves(10)[0].recalls.size(), 10u);
  EXPECT_EQ(report.curves(10)[0].recalls.back(), 1);
}

template <class T>
Array array_of(const json& values, const Dims& shape) {
  return Array::from<T>(values.get<std::vector<T>>(), shape);
}

TEST(ClassReport, LabelsThatAreDecidedOneByOne) {
  const json g = golden()["many"];
  const Array logits = array_of<float>(g["logits"], {50, 3});
  const Array labels = array_of<int64_t>(g["labels"], {50, 3});
  MetricSpec spec{.name = "f1",
                  .options = {{"multilabel", true}, {"average", std::string("macro")}}};
  resolve_operands(spec, {TensorType{DType::kF32, to_shape(logits.shape)},
                          TensorType{DType::kI64, to_shape(labels.shape)}});
  ASSERT_TRUE(ClassReport::is_possible(spec));
  ClassReport report(spec);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 20}, {20, 50}}) {
    std::vector<int64_t> indices;
    for (int64_t i = begin; i < end; ++i) indices.push_back(i);
    report.update({rows(logits, begin, end), rows(labels, begin, end)}, indices);
  }
  EXPECT_TRUE(report.is_multilabel());
  EXPECT_EQ(report.rows(), 50);
  EXPECT_EQ(report.classes(), 3);
  EXPECT_TRUE(report.confusion().empty());
  const auto table = report.table();
  const auto curves = report.curves(1000);
  ASSERT_EQ(curves.size(), 3u);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(table[c].support, g["support"][c]);
    EXPECT_NEAR(table[c].precision, g["precision"][c], 1e-12);
    EXPECT_NEAR(table[c].recall, g["recall"][c], 1e-12);
    EXPECT_NEAR(table[c].f1, g["f1"][c], 1e-12);
    EXPECT_NEAR(table[c].iou, g["iou"][c], 1e-12);
    EXPECT_NEAR(curves[c].area, g["auc"][c], 1e-12);
    EXPECT_NEAR(curves[c].average_precision, g["average_precision"][c], 1e-12);
  }
  EXPECT_NEAR(report.micro_curve(1000)->area, g["micro_auc"], 1e-12);
  for (const WorstSample& each : report.worst(50)) {
    const double margin = g["worst"][static_cast<size_t>(each.index)];
    EXPECT_NEAR(each.probability, 1 / (1 + std::exp(-margin)), 1e-7);
    if (margin == 0) continue;
    EXPECT_EQ(each.predicted == labels.number(each.index * 3 + each.label), margin > 0);
  }
}

TEST(ClassReport, IntersectionOverUnionOfPixels) {
  const json g = golden()["segmentation"];
  const Array scores = array_of<float>(g["scores"], {3, 5, 6, 7});
  const Array labels = array_of<int64_t>(g["labels"], {3, 6, 7});
  for (const char* average : {"macro", "micro", "weighted"}) {
    MetricSpec spec{.name = "iou",
                    .options = {{"ignore_index", int64_t{255}}, {"average", std::string(average)}}};
    resolve_operands(spec, {TensorType{DType::kF32, to_shape(scores.shape)},
                            TensorType{DType::kI64, to_shape(labels.shape)}});
    const auto metric = make_metric(spec);
    ClassReport report(spec);
    for (int64_t i = 0; i < 3; ++i) {
      const std::vector<Array> image = {rows(scores, i, i + 1), rows(labels, i, i + 1)};
      metric->update(image, 1);
      report.update(image, std::vector<int64_t>{i});
    }
    EXPECT_NEAR(metric->result(), g[average], 1e-12) << average;
    const auto table = report.table();
    for (size_t c = 0; c < 5; ++c) EXPECT_NEAR(table[c].iou, g["iou"][c], 1e-12);
  }
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
