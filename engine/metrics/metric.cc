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
std::vector<std::string> described(const MetricInfo& info,
                                   const std::vector<TensorType>& operands) {
  std::vector<std::string> out;
  for (size_t i = 0; i < operands.size(); ++i)
    out.push_back(str(operand_name(info, i), " ", operands[i]));
  return out;
}

const OptionInfo kAucAverage = {"average", OptionKind::kChoice, {}, {"macro", "weighted"}};

void resolve_scores(MetricSpec& spec, const std::vector<TensorType>& operands) {
  const Settings settings(spec);
  spec.layout =
      score_layout(spec.name, operands[0].shape, operands[1].shape, settings.integer("axis"),
                   settings.flag("multilabel"), ErrorCode::kConfig);
}

void resolve_regression(MetricSpec& spec, const std::vector<TensorType>& operands) {
  check_regression_shapes(spec.name, operands[0].shape, operands[1].shape, ErrorCode::kConfig);
}

/// One score for each label.
void resolve_decisions(MetricSpec& spec, const std::vector<TensorType>& operands) {
  resolve_scores(spec, operands);
  if (spec.layout->axis >= 0)
    fail(ErrorCode::kConfig, spec.name, ": expected one score for each label, found ",
         text(operands[0].shape), " and ", text(operands[1].shape));
}

void resolve_users(MetricSpec& spec, const std::vector<TensorType>& operands) {
  resolve_decisions(spec, operands);
  if (!is_integer(operands[2].dtype))
    fail(ErrorCode::kConfig, spec.name, ": user is ", operands[2], "; expected integers");
  check_mask_shape(spec.name, operands[2].shape, operands[1].shape, ErrorCode::kConfig);
}

void resolve_sequences(MetricSpec& spec, const std::vector<TensorType>& operands) {
  if (operands[0].shape.size() != 2 || operands[1].shape.size() != 2)
    fail(ErrorCode::kConfig, spec.name, ": expected two arrays [batch, length] of numbers, found ",
         operands[0], " and ", operands[1]);
}

void resolve_ranking(MetricSpec& spec, const std::vector<TensorType>& operands) {
  check_ranking_shapes(spec.name, operands[0].shape, operands[1].shape, ErrorCode::kConfig);
}

void resolve_boxes(MetricSpec& /*spec*/, const std::vector<TensorType>& operands) {
  std::vector<Shape> shapes;
  for (const TensorType& operand : operands) shapes.push_back(operand.shape);
  check_detection_shapes(shapes, ErrorCode::kConfig);
}

std::vector<MetricInfo> built_in_metrics() {
  using D = Direction;
  const std::vector<std::string> pair = {"input", "label"};
  const std::vector<OptionInfo> rates = {kThreshold, kPositive, kAverage,
                                         kAxis,      kIgnore,   kMultilabel};
  const std::vector<OptionInfo> areas = {kAucAverage, kAxis, kIgnore, kMultilabel};
  std::vector<OptionInfo> buckets = areas;
  buckets.push_back({"buckets", OptionKind::kInteger, {}, {}});
  const std::vector<OptionInfo> padding = {{"padding", OptionKind::kInteger, int64_t{0}, {}}};
  const std::vector<OptionInfo> axes = {{"axis", OptionKind::kIntegers, {}, {}}};
  const std::vector<std::string> detection_values = {
      "map",      "map50",     "map75",      "map_small",    "map_medium",    "map_large",
      "recall_1", "recall_10", "recall_100", "recall_small", "recall_medium", "recall_large"};
  const auto scored = [&](const char* name, const char* doc, std::vector<OptionInfo> options,
                          D direction, auto make) {
    return MetricInfo{.name = name,
                      .doc = doc,
                      .operands = pair,
                      .options = std::move(options),
                      .direction = direction,
                      .takes_mask = true,
                      .make = make,
                      .resolve = resolve_scores};
  };
  const auto regression = [&](const char* name, const char* doc, D direction) {
    return MetricInfo{.name = name,
                      .doc = doc,
                      .operands = pair,
                      .direction = direction,
                      .takes_mask = true,
                      .make = make_regression,
                      .resolve = resolve_regression};
  };
  const auto sequences = [&](const char* name, const char* doc, D direction, bool texts,
                             auto make) {
    return MetricInfo{.name = name,
                      .doc = doc,
                      .operands = pair,
                      .options = padding,
                      .direction = direction,
                      .compares_texts = texts,
                      .make = make,
                      .resolve = resolve_sequences};
  };
  const std::vector<OptionInfo> top = {{"k", OptionKind::kInteger, int64_t{10}, {}}};
  const auto ranking = [&](const char* name, const char* doc) {
    return MetricInfo{.name = name,
                      .doc = doc,
                      .operands = pair,
                      .options = top,
                      .direction = D::kHigher,
                      .make = make_ranking,
                      .resolve = resolve_ranking};
  };
  const auto reduction = [&](const char* name, const char* doc) {
    return MetricInfo{.name = name,
                      .doc = doc,
                      .operands = {"x"},
                      .options = axes,
                      .is_reduction = true,
                      .make = make_reduction};
  };
  const auto make_accuracy = [](const MetricSpec& spec) {
    return std::make_unique<Accuracy>(spec);
  };
  const auto make_perplexity = [](const MetricSpec& spec) {
    return std::make_unique<Perplexity>(spec);
  };
  return {
      scored("accuracy", "Share of labels among the k highest scores.",
             {{"k", OptionKind::kInteger, int64_t{1}, {}}, kThreshold, kAxis, kIgnore, kMultilabel},
             D::kHigher, make_accuracy),
      scored("auc", "Area under the ROC curve, exact, or by buckets of probabilities.", buckets,
             D::kHigher, make_curve),
      scored("average_precision", "Area under the curve of precision over recall, exact.", areas,
             D::kHigher, make_curve),
      scored("precision", "Share of predicted positives that are correct.", rates, D::kHigher,
             make_rate),
      scored("recall", "Share of positives that are predicted.", rates, D::kHigher, make_rate),
      scored("f1", "Harmonic mean of precision and recall.", rates, D::kHigher, make_rate),
      scored("iou", "Intersection over union of predictions and labels; the mean over classes.",
             rates, D::kHigher, make_rate),
      regression("mae", "Mean absolute error.", D::kLower),
      regression("rmse", "Root of the mean squared error.", D::kLower),
      regression("mape", "Mean of absolute errors over absolute labels.", D::kLower),
      regression("r2", "Coefficient of determination.", D::kHigher),
      sequences("edit_rate", "Edits between sequences of numbers, over the length of the labels.",
                D::kLower, false, make_sequence),
      sequences("bleu", "BLEU between sequences of numbers, 0 to 100, with exponential smoothing.",
                D::kHigher, false, make_sequence),
      sequences("wer", "Word error rate of texts: edits of words over the words of the labels.",
                D::kLower, true, make_text),
      sequences("cer", "Character error rate of texts: edits over the characters of the labels.",
                D::kLower, true, make_text),
      sequences("sacrebleu", "BLEU of texts, 0 to 100, with sacreBLEU's defaults.", D::kHigher,
                true, make_text),
      {.name = "wuauc",
       .doc = "Mean over users of the area under the ROC curve of their samples.",
       .operands = {"input", "label", "user"},
       .options =
           {{"average", OptionKind::kChoice, std::string("weighted"), {"weighted", "macro"}}},
       .direction = D::kHigher,
       .takes_mask = true,
       .make = make_user_area,
       .resolve = resolve_users},
      {.name = "ctr",
       .doc = "Measures of predicted click rates: area, errors, and actual over predicted rates.",
       .operands = pair,
       .options = {{"value", OptionKind::kChoice, std::string("auc"), ctr_values()}},
       .takes_mask = true,
       .splits_by = "value",
       .make = make_ctr,
       .resolve = resolve_decisions},
      {.name = "mean_average_precision",
       .doc = "COCO's average precision of boxes; those with scores of 0 are left out.",
       .operands = {"boxes", "scores", "labels", "true_boxes", "true_labels", "true_mask"},
       .options = {{"value", OptionKind::kChoice, std::string("map"), detection_values}},
       .direction = D::kHigher,
       .make = make_detection,
       .resolve = resolve_boxes},
      scored("perplexity", "exp of the mean cross entropy.", {kIgnore, kAxis}, D::kLower,
             make_perplexity),
      scored("mrr", "Mean of 1 / rank of the label among all scores.", {kAxis, kIgnore}, D::kHigher,
             make_ranking),
      scored("hits", "Share of labels among the k highest scores; equal scores count as higher.",
             {{"k", OptionKind::kInteger, int64_t{10}, {}}, kAxis, kIgnore}, D::kHigher,
             make_ranking),
      ranking("recall_at_k", "Share of relevant items, marked by 1, among the k highest scores."),
      ranking("ndcg",
              "Discounted gain of relevant items among the k highest scores, over the best "
              "one."),
      {.name = "average",
       .doc = "Mean of a tensor's elements.",
       .operands = {"input"},
       .takes_batch_values = true,
       .make = make_regression},
      reduction("sum", "Sum over axes."),
      reduction("min", "Smallest element over axes."),
      reduction("max", "Largest element over axes.")};
}

}  // namespace

Registry<MetricInfo>& metric_registry() {
  static Registry<MetricInfo> metrics("metric", built_in_metrics());
  return metrics;
}

std::shared_ptr<const MetricInfo> find_metric(const std::string& name) {
  return metric_registry().find(name);
}

std::string operand_name(const MetricInfo& info, size_t operand) {
  return operand < info.operands.size() ? info.operands[operand] : "mask";
}

std::unique_ptr<Metric> make_metric(const MetricSpec& spec) {
  const Settings settings(spec);  // checks name and options
  std::unique_ptr<Metric> out = find_metric(spec.name)->make(spec);
  ensure(out != nullptr, "metric '", spec.name, "' makes no accumulator");
  return out;
}

void resolve_operands(MetricSpec& spec, const std::vector<TensorType>& operands) {
  const Settings settings(spec);
  const auto info = find_metric(spec.name);
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].dtype == DType::kString || is_complex(operands[i].dtype))
      fail(ErrorCode::kConfig, spec.name, ": ", operand_name(*info, i), " is ", operands[i],
           "; expected numbers");
  if (!spec.per_sample && !info->takes_batch_values)
    fail(ErrorCode::kConfig, spec.name, ": needs values of single samples, found ",
         join(described(*info, operands), " and "), ", which have no batch axis");
  if (info->resolve) info->resolve(spec, operands);
  if (operands.size() > info->operands.size())
    check_mask_shape(spec.name, operands.back().shape, operands[1].shape, ErrorCode::kConfig);
}

}  // namespace paddle::metrics
