// BLEU against sacreBLEU, error rates against jiwer, and average precision of boxes against
// pycocotools: golden.json, which scores/make.py computed.

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "metrics/detection.h"
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

}  // namespace
}  // namespace paddle::metrics
