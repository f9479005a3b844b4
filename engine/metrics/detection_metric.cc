// COCO's average precision of boxes as a metric of a run: the boxes of each image are kept, and
// evaluated together at the end.

#include "metrics/classification.h"
#include "metrics/detection.h"

namespace paddle::metrics {
namespace {

constexpr const char* kOperands =
    "boxes [batch, n, 4], scores [batch, n], labels [batch, n], true_boxes [batch, m, 4], "
    "true_labels [batch, m] and true_mask [batch, m]";

class MeanAveragePrecision final : public Metric {
 public:
  explicit MeanAveragePrecision(const MetricSpec& spec) {
    const Settings settings(spec);
    value_ = settings.choice("value");
  }
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    std::vector<Shape> shapes;
    for (const Array& operand : operands) shapes.push_back(to_shape(operand.shape));
    check_detection_shapes(shapes, ErrorCode::kData);
    std::vector<Array> numbers;
    for (const Array& operand : operands) numbers.push_back(operand.cast(DType::kF64).contiguous());
    const auto at = [&](Operand which, int64_t i) { return numbers[which].data<double>()[i]; };
    const int64_t images = operands[0].shape[0], found = operands[0].shape[1],
                  given = operands[3].shape[1];
    for (int64_t image = 0; image < images; ++image) {
      std::vector<double> record = {0, 0};  // how many boxes there are of each kind
      const auto append_box = [&](Operand which, int64_t i) {
        const double left = at(which, 4 * i), top = at(which, 4 * i + 1);
        record.insert(record.end(),
                      {left, top, at(which, 4 * i + 2) - left, at(which, 4 * i + 3) - top});
      };
      for (int64_t i = image * found; i < (image + 1) * found; ++i) {
        if (at(kScores, i) <= 0) continue;  // left out, as by nms
        if (std::isnan(at(kScores, i))) ++state_.count(0, kNaNs);
        append_box(kBoxes, i);
        record.insert(record.end(), {at(kScores, i), at(kLabels, i)});
        ++record[0];
      }
      for (int64_t i = image * given; i < (image + 1) * given; ++i) {
        if (at(kTrueMask, i) == 0) continue;
        append_box(kTrueBoxes, i);
        record.push_back(at(kTrueLabels, i));
        ++record[1];
      }
      state_.list(0).append(record);
    }
  }
  double result() const override {
    if (state_.count(0, kNaNs) > 0) return kNaN;
    const DetectionScore score = evaluated();
    const std::pair<const char*, double> values[] = {{"map", score.map},
                                                     {"map50", score.map50},
                                                     {"map75", score.map75},
                                                     {"map_small", score.map_small},
                                                     {"map_medium", score.map_medium},
                                                     {"map_large", score.map_large},
                                                     {"recall_1", score.recall_1},
                                                     {"recall_10", score.recall_10},
                                                     {"recall_100", score.recall_100},
                                                     {"recall_small", score.recall_small},
                                                     {"recall_medium", score.recall_medium},
                                                     {"recall_large", score.recall_large}};
    for (const auto& [name, value] : values)
      if (value_ == name) return value < 0 ? kNaN : value;
    return kNaN;
  }

 private:
  enum Operand : size_t { kBoxes, kScores, kLabels, kTrueBoxes, kTrueLabels, kTrueMask };
  enum Entry : size_t { kNaNs };

  /// Images in an order that does not depend on the batches, for detections of equal scores.
  DetectionScore evaluated() const {
    const std::span<const double> records = state_.list(0);
    std::vector<std::span<const double>> images;
    for (size_t begin = 0; begin < records.size();) {
      const size_t size =
          2 + static_cast<size_t>(6 * records[begin]) + static_cast<size_t>(5 * records[begin + 1]);
      images.push_back(records.subspan(begin, size));
      begin += size;
    }
    std::sort(images.begin(), images.end(), [](const auto& a, const auto& b) {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
    });
    DetectionEvaluator evaluator;
    for (size_t i = 0; i < images.size(); ++i) {
      const auto image = static_cast<int64_t>(i);
      const double* next = images[i].data() + 2;
      for (int64_t d = std::llround(images[i][0]); d > 0; --d, next += 6)
        evaluator.add(image, std::llround(next[5]),
                      DetectedBox{next[0], next[1], next[2], next[3], next[4]});
      for (int64_t g = std::llround(images[i][1]); g > 0; --g, next += 5)
        evaluator.add(image, std::llround(next[4]),
                      LabeledBox{next[0], next[1], next[2], next[3], next[2] * next[3], false});
    }
    return evaluator.result();
  }
  std::string value_;
};

}  // namespace

void check_detection_shapes(const std::vector<Shape>& shapes, ErrorCode code) {
  const auto same = [](const Shape& a, const Shape& b, size_t axes) {
    for (size_t i = 0; i < axes; ++i)
      if (a[i].equals(b[i]) == false) return false;
    return true;
  };
  bool fits = shapes[0].size() == 3 && shapes[3].size() == 3;
  for (const size_t i : {1, 2, 4, 5}) fits = fits && shapes[i].size() == 2;
  for (const size_t i : {0, 3}) fits = fits && shapes[i][2].equals(Dim(4)) != false;
  for (const size_t i : {1, 2}) fits = fits && same(shapes[0], shapes[i], 2);
  for (const size_t i : {4, 5}) fits = fits && same(shapes[3], shapes[i], 2);
  fits = fits && same(shapes[0], shapes[3], 1);
  if (fits) return;
  std::vector<std::string> found;
  for (const Shape& shape : shapes) found.push_back(text(shape));
  fail(code, "mean_average_precision: expected ", kOperands, "; found ", join(found, ", "));
}

std::unique_ptr<Metric> make_detection(const MetricSpec& spec) {
  if (spec.name == "mean_average_precision") return std::make_unique<MeanAveragePrecision>(spec);
  return nullptr;
}

}  // namespace paddle::metrics
