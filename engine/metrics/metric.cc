#include "metrics/metric.h"

#include <algorithm>
#include <cmath>

#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

class Accuracy final : public Classification {
 public:
  explicit Accuracy(const MetricSpec& spec)
      : Classification(spec), k_(settings_.integer("k").value_or(1)) {
    if (k_ < 1) fail(ErrorCode::kConfig, "accuracy: k must be at least 1, found ", k_);
  }
  std::string warning() const override { return threshold_warning(); }

 private:
  enum Entry : size_t { kRight };

  void begin(int64_t classes, bool binary) override {
    if (binary && k_ != 1)
      fail(ErrorCode::kConfig, "accuracy: k=", k_,
           " needs several classes, found one score per label");
    if (!binary && k_ > classes)
      fail(ErrorCode::kConfig, "accuracy: k=", k_, " exceeds the ", classes, " classes");
    if (!binary && settings_.given("threshold"))
      fail(ErrorCode::kConfig, "accuracy: threshold is for one score per label, found ", classes,
           " classes");
  }
  void add(const std::vector<double>& scores, int64_t label, bool binary) override {
    int64_t& right = state_.count(kOwn, kRight);
    if (binary) {
      right += (scores[0] > threshold()) == (label == 1);
      return;
    }
    // The rank of the label: higher scores, and equal ones of lower classes.
    const auto own = static_cast<size_t>(label);
    int64_t above = 0;
    for (size_t c = 0; c < scores.size(); ++c)
      above += scores[c] > scores[own] || (scores[c] == scores[own] && c < own);
    right += above < k_;
  }
  double value() const override {
    return static_cast<double>(state_.count(kOwn, kRight)) / static_cast<double>(rows());
  }
  int64_t k_;
};

/// exp of the mean negative log probability of the labels.
class Perplexity final : public Classification {
 public:
  using Classification::Classification;

 private:
  void begin(int64_t /*classes*/, bool binary) override {
    if (binary)
      fail(ErrorCode::kConfig,
           "perplexity needs the scores of several classes, found one per label");
  }
  void add(const std::vector<double>& scores, int64_t label, bool /*binary*/) override {
    const double own = scores[static_cast<size_t>(label)];
    if (settings_.spec().scores == ScoreKind::kProbabilities) {
      state_.sum(0) += -std::log(own);
      return;
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double s : scores) sum += std::exp(s - top);
    state_.sum(0) += std::log(sum) + (top - own);
  }
  double value() const override { return std::exp(state_.sum(0) / static_cast<double>(rows())); }
};

const OptionInfo kAxis = {"axis", OptionKind::kInteger, {}, {}};
const OptionInfo kIgnore = {"ignore_index", OptionKind::kInteger, {}, {}};
const OptionInfo kThreshold = {"threshold", OptionKind::kReal, {}, {}};
const OptionInfo kMultilabel = {"multilabel", OptionKind::kBool, false, {}};
const OptionInfo kPositive = {"positive", OptionKind::kInteger, {}, {}};
const OptionInfo kAverage = {"average", OptionKind::kChoice, {}, {"macro", "micro", "weighted"}};
/// "input float32[batch] and label int64[batch]" in parts.
std::vector<std::string> described(const std::string& name,
                                   const std::vector<TensorType>& operands) {
  std::vector<std::string> out;
  for (size_t i = 0; i < operands.size(); ++i)
    out.push_back(str(find_metric(name)->operands[i], " ", operands[i]));
  return out;
}

const OptionInfo kAucAverage = {"average", OptionKind::kChoice, {}, {"macro", "weighted"}};

}  // namespace

const std::vector<MetricInfo>& metric_infos() {
  using D = Direction;
  static const std::vector<std::string> kPair = {"input", "label"};
  static const std::vector<OptionInfo> kRates = {kThreshold, kPositive, kAverage,
                                                 kAxis,      kIgnore,   kMultilabel};
  static const std::vector<OptionInfo> kPadding = {
      {"padding", OptionKind::kInteger, int64_t{0}, {}}};
  static const std::vector<OptionInfo> kAxes = {{"axis", OptionKind::kIntegers, {}, {}}};
  static const std::vector<std::string> kDetectionValues = {
      "map",      "map50",     "map75",      "map_small",    "map_medium",    "map_large",
      "recall_1", "recall_10", "recall_100", "recall_small", "recall_medium", "recall_large"};
  static const std::vector<MetricInfo> kInfos = {
      {"accuracy",
       "Share of labels among the k highest scores.",
       kPair,
       {{"k", OptionKind::kInteger, int64_t{1}, {}}, kThreshold, kAxis, kIgnore, kMultilabel},
       D::kHigher},
      {"auc",
       "Area under the ROC curve, exact.",
       kPair,
       {kAucAverage, kAxis, kIgnore, kMultilabel},
       D::kHigher},
      {"average_precision",
       "Area under the curve of precision over recall, exact.",
       kPair,
       {kAucAverage, kAxis, kIgnore, kMultilabel},
       D::kHigher},
      {"precision", "Share of predicted positives that are right.", kPair, kRates, D::kHigher},
      {"recall", "Share of positives that are predicted.", kPair, kRates, D::kHigher},
      {"f1", "Harmonic mean of precision and recall.", kPair, kRates, D::kHigher},
      {"iou", "Intersection over union of predictions and labels; the mean over classes.", kPair,
       kRates, D::kHigher},
      {"mae", "Mean absolute error.", kPair, {}, D::kLower},
      {"rmse", "Root of the mean squared error.", kPair, {}, D::kLower},
      {"mape", "Mean of absolute errors over absolute labels.", kPair, {}, D::kLower},
      {"r2", "Coefficient of determination.", kPair, {}, D::kHigher},
      {"edit_rate", "Edits between sequences of numbers, over the length of the labels.", kPair,
       kPadding, D::kLower},
      {"bleu", "BLEU between sequences of numbers, 0 to 100, with exponential smoothing.", kPair,
       kPadding, D::kHigher},
      {"wer", "Word error rate of texts: edits of words over the words of the labels.", kPair,
       kPadding, D::kLower, false, true},
      {"cer", "Character error rate of texts: edits over the characters of the labels.", kPair,
       kPadding, D::kLower, false, true},
      {"sacrebleu", "BLEU of texts, 0 to 100, with sacreBLEU's defaults.", kPair, kPadding,
       D::kHigher, false, true},
      {"mean_average_precision",
       "COCO's average precision of boxes; those with scores of 0 are left out.",
       {"boxes", "scores", "labels", "true_boxes", "true_labels", "true_mask"},
       {{"value", OptionKind::kChoice, std::string("map"), kDetectionValues}},
       D::kHigher},
      {"perplexity", "exp of the mean cross entropy.", kPair, {kIgnore, kAxis}, D::kLower},
      {"average", "Mean of a tensor's elements.", {"input"}, {}, D::kUnknown},
      {"sum", "Sum over axes.", {"x"}, kAxes, D::kUnknown, true},
      {"min", "Smallest element over axes.", {"x"}, kAxes, D::kUnknown, true},
      {"max", "Largest element over axes.", {"x"}, kAxes, D::kUnknown, true},
  };
  return kInfos;
}

const MetricInfo* find_metric(const std::string& name) {
  for (const MetricInfo& m : metric_infos())
    if (m.name == name) return &m;
  return nullptr;
}

std::unique_ptr<Metric> make_metric(const MetricSpec& spec) {
  const Settings settings(spec);  // checks name and options
  if (spec.name == "accuracy") return std::make_unique<Accuracy>(spec);
  if (spec.name == "perplexity") return std::make_unique<Perplexity>(spec);
  for (const auto make : {make_rate, make_curve, make_regression, make_sequence, make_text,
                          make_detection, make_reduction})
    if (auto out = make(spec)) return out;
  fail(ErrorCode::kInternal, "no metric '", spec.name, "'");
}

void resolve_operands(MetricSpec& spec, const std::vector<TensorType>& operands) {
  const Settings settings(spec);
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].dtype == DType::kString || is_complex(operands[i].dtype))
      fail(ErrorCode::kConfig, spec.name, ": ", find_metric(spec.name)->operands[i], " is ",
           operands[i], "; expected numbers");
  if (spec.name == "average") return;
  if (!spec.per_sample)
    fail(ErrorCode::kConfig, spec.name, ": needs values of single samples, found ",
         join(described(spec.name, operands), " and "), ", which have no batch axis");
  if (find_metric(spec.name)->is_reduction) return;
  if (spec.name == "mean_average_precision") {
    std::vector<Shape> shapes;
    for (const TensorType& operand : operands) shapes.push_back(operand.shape);
    check_detection_shapes(shapes, ErrorCode::kConfig);
    return;
  }
  if (spec.name == "mae" || spec.name == "rmse" || spec.name == "mape" || spec.name == "r2") {
    check_regression_shapes(spec.name, operands[0].shape, operands[1].shape, ErrorCode::kConfig);
    return;
  }
  if (spec.name == "edit_rate" || spec.name == "bleu" || find_metric(spec.name)->compares_texts) {
    if (operands[0].shape.size() != 2 || operands[1].shape.size() != 2)
      fail(ErrorCode::kConfig, spec.name,
           ": expected two arrays [batch, length] of numbers, found ", operands[0], " and ",
           operands[1]);
    return;
  }
  spec.layout =
      score_layout(spec.name, operands[0].shape, operands[1].shape, settings.integer("axis"),
                   settings.flag("multilabel"), ErrorCode::kConfig);
}

}  // namespace paddle::metrics
