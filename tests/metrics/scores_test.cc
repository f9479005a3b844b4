// BLEU against sacreBLEU, error rates against jiwer, and average precision of boxes against
// pycocotools: golden.json, which scores/make.py computed.

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "metrics/detection.h"
#include "metrics/metric.h"
#include "metrics/text_scores.h"

namespace paddle::metrics {
namespace {

using Texts = std::vector<std::string>;

nlohmann::json golden() {
  std::ifstream file("tests/metrics/scores/golden.json");
  return nlohmann::json::parse(file);
}

void expect_bleu(const nlohmann::json& wanted, const Texts& texts, const std::vector<Texts>& sets) {
  const BleuScore got = bleu(texts, sets);
  EXPECT_NEAR(got.score, wanted["score"].get<double>(), 1e-9);
  EXPECT_NEAR(got.brevity_penalty, wanted["bp"].get<double>(), 1e-12);
  EXPECT_EQ(got.length, wanted["length"].get<int64_t>());
  EXPECT_EQ(got.reference_length, wanted["reference_length"].get<int64_t>());
  for (size_t n = 0; n < 4; ++n)
    EXPECT_NEAR(got.precisions[n], wanted["precisions"][n].get<double>(), 1e-9);
}

TEST(TextScores, BleuIsThatOfSacreBleu) {
  const auto all = golden();
  const Texts texts = all["texts"].get<Texts>(), first = all["first"].get<Texts>(),
              second = all["second"].get<Texts>();
  expect_bleu(all["bleu"], texts, {first});
  expect_bleu(all["bleu2"], texts, {first, second});
  expect_bleu(all["bleu_low"], texts, {Texts(texts.size(), "zzz yyy")});
  EXPECT_NEAR(bleu(first, {first}).score, 100, 1e-9);
  EXPECT_THROW(bleu(texts, {{"one"}}), Error);
}

TEST(TextScores, ErrorRatesAreThoseOfJiwer) {
  const auto all = golden();
  const Texts texts = all["texts"].get<Texts>(), first = all["first"].get<Texts>();
  EXPECT_NEAR(word_errors(texts, first).rate(), all["wer"].get<double>(), 1e-12);
  EXPECT_NEAR(character_errors(texts, first).rate(), all["cer"].get<double>(), 1e-12);
  EXPECT_EQ(word_errors({"a b"}, {"a c d"}).edits, 2);
  EXPECT_THROW(word_errors({"a"}, {}), Error);
  // Blanks other than spaces (jiwer 4.0.0).
  const struct {
    const char *reference, *text;
    double words, characters;
  } blanks[] = {{"a\tb c", "a b c", 1, 0.2},     {"a\u00a0b c", "a b c", 1, 0.2},
                {"a  b", "a b", 0, 0.25},        {" a b ", "a b", 0, 0},
                {"a\nb", "a b", 2, 1.0 / 3},     {"a\tb", "a\tb", 0, 0},
                {"a\u3000b", "a b", 2, 1.0 / 3}, {"\ta b\t", "a b", 0, 0},
                {"a\u2003b", "ab", 1, 1.0 / 3},  {"\u00a0ab", "ab", 0, 0},
                {"a\t\u00a0b", "a b", 0, 0.5}};
  for (const auto& each : blanks) {
    EXPECT_NEAR(word_errors({each.text}, {each.reference}).rate(), each.words, 1e-12)
        << each.reference;
    EXPECT_NEAR(character_errors({each.text}, {each.reference}).rate(), each.characters, 1e-12)
        << each.reference;
  }
}

TEST(TextScores, AsMetricsOfARunThoseOfSacreBleuAndJiwer) {
  const auto all = golden();
  const Texts texts = all["texts"].get<Texts>(), first = all["first"].get<Texts>();
  const std::pair<const char*, double> wanted[] = {
      {"wer", all["wer"].get<double>()},
      {"cer", all["cer"].get<double>()},
      {"sacrebleu", all["bleu"]["score"].get<double>()}};
  for (const auto& [name, value] : wanted) {
    const auto whole = make_metric({.name = name}), in_parts = make_metric({.name = name});
    EXPECT_TRUE(std::isnan(whole->result())) << name;
    for (size_t i = texts.size(); i-- > 0;) {  // text by text, the last one first
      const auto part = make_metric({.name = name});
      dynamic_cast<TextMetric&>(*part).add(texts[i], first[i]);
      in_parts->merge(part->state());
      dynamic_cast<TextMetric&>(*whole).add(texts[i], first[i]);
    }
    EXPECT_NEAR(whole->result(), value, 1e-9) << name;
    EXPECT_EQ(whole->result(), in_parts->result()) << name;
  }
  EXPECT_THROW(make_metric({.name = "wer", .options = {{"k", int64_t{1}}}}), Error);
}

TEST(Detection, AveragePrecisionIsThatOfCoco) {
  const auto all = golden();
  DetectionEvaluator evaluator;
  for (const auto& a : all["ground_truth"]["annotations"])
    evaluator.add(a["image_id"].get<int64_t>(), a["category_id"].get<int64_t>(),
                  LabeledBox{a["bbox"][0], a["bbox"][1], a["bbox"][2], a["bbox"][3], a["area"],
                             a["iscrowd"].get<int>() != 0});
  for (const auto& d : all["detections"])
    evaluator.add(d["image_id"].get<int64_t>(), d["category_id"].get<int64_t>(),
                  DetectedBox{d["bbox"][0], d["bbox"][1], d["bbox"][2], d["bbox"][3], d["score"]});
  const DetectionScore s = evaluator.result();
  const double got[] = {s.map,        s.map50,        s.map75,         s.map_small,
                        s.map_medium, s.map_large,    s.recall_1,      s.recall_10,
                        s.recall_100, s.recall_small, s.recall_medium, s.recall_large};
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(got[i], all["coco"][i].get<double>(), 1e-9) << i;
}

/// Boxes of images as padded arrays: [images, most, 4], numbers [images, most] and a mask.
struct PaddedBoxes {
  PaddedBoxes(int64_t images, int64_t most)
      : boxes(Array::zeros(DType::kF64, {images, most, 4})),
        scores(Array::zeros(DType::kF64, {images, most})),
        labels(Array::zeros(DType::kI64, {images, most})),
        mask(Array::zeros(DType::kBool, {images, most})),
        counts(static_cast<size_t>(images)) {}
  void add(const nlohmann::json& each) {
    const auto image = each["image_id"].get<int64_t>() - 1;
    const int64_t at = image * boxes.shape[1] + counts[static_cast<size_t>(image)]++;
    const auto box = each["bbox"].get<std::vector<double>>();
    double* out = boxes.data<double>() + 4 * at;
    out[0] = box[0], out[1] = box[1], out[2] = box[0] + box[2], out[3] = box[1] + box[3];
    scores.data<double>()[at] = each.value("score", 1.0);
    labels.data<int64_t>()[at] = each["category_id"].get<int64_t>();
    mask.data<bool>()[at] = true;
  }
  Array boxes, scores, labels, mask;
  std::vector<int64_t> counts;
};

/// Image `i` of an array.
Array image_of(const Array& whole, int64_t i) {
  Array out = whole;
  out.offset += i * out.strides[0];
  out.shape[0] = 1;
  return out;
}

TEST(Detection, AsAMetricOfARunIsThatOfCoco) {
  const auto all = golden();
  PaddedBoxes found(12, 20), given(12, 9);
  for (const auto& each : all["detections"]) found.add(each);
  for (const auto& each : all["ground_truth"]["annotations"]) given.add(each);
  const char* const names[] = {"map",        "map50",        "map75",         "map_small",
                               "map_medium", "map_large",    "recall_1",      "recall_10",
                               "recall_100", "recall_small", "recall_medium", "recall_large"};
  const std::vector<Array> whole = {found.boxes, found.scores, found.labels,
                                    given.boxes, given.labels, given.mask};
  for (size_t v = 0; v < 12; ++v) {
    const MetricSpec spec{.name = "mean_average_precision",
                          .options = {{"value", std::string(names[v])}}};
    const auto metric = make_metric(spec), in_parts = make_metric(spec);
    metric->update(whole, 12);
    for (int64_t i = 12; i-- > 0;) {  // image by image, the last one first
      std::vector<Array> image;
      for (const Array& each : whole) image.push_back(image_of(each, i));
      const auto part = make_metric(spec);
      part->update(image, 1);
      in_parts->merge(part->state());
    }
    EXPECT_NEAR(metric->result(), all["coco_boxes"][v].get<double>(), 1e-9) << names[v];
    EXPECT_EQ(metric->result(), in_parts->result()) << names[v];
  }
  const auto metric = make_metric({.name = "mean_average_precision"});
  EXPECT_TRUE(std::isnan(metric->result()));
  // A mask of another length.
  const std::vector<Array> other = {found.boxes, found.scores, found.labels,
                                    given.boxes, given.labels, found.mask};
  EXPECT_THROW(metric->update(other, 12), Error);
}

TEST(Sequences, BleuIsThatOfSacreBleu) {
  const auto g = golden()["sequences"];
  const auto rows = [](const nlohmann::json& lines) {
    std::vector<int64_t> all;
    for (const auto& line : lines)
      for (const auto& number : line) all.push_back(number.get<int64_t>());
    return Array::from<int64_t>(all, {static_cast<int64_t>(lines.size()), 9});
  };
  const auto metric = make_metric({.name = "bleu"});
  metric->update({rows(g["input"]), rows(g["label"])}, 30);
  EXPECT_NEAR(metric->result(), g["bleu"].get<double>(), 1e-9);
}

}  // namespace
}  // namespace paddle::metrics
