#pragma once
// Parts that several families of metrics share: options, and the reading of scores and labels row
// by row. Each family has a file of its own.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "metrics/metric.h"
#include "metrics/score_layout.h"

namespace paddle::metrics {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Options of a spec with their defaults.
class Settings {
 public:
  explicit Settings(const MetricSpec& spec) : spec_(spec), info_(find_metric(spec.name)) {
    if (!info_) fail(ErrorCode::kConfig, "unknown metric '", spec.name, "'");
    for (const auto& [name, value] : spec.options) {
      std::vector<std::string> names;
      for (const OptionInfo& o : info_->options) names.push_back(o.name);
      if (!find(name))
        fail(ErrorCode::kConfig, spec.name, ": unknown option '", name, "'",
             did_you_mean(name, names));
    }
  }
  std::optional<int64_t> integer(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<int64_t>(v) ? std::optional(std::get<int64_t>(v)) : std::nullopt;
  }
  std::optional<double> real(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<double>(v) ? std::optional(std::get<double>(v)) : std::nullopt;
  }
  bool flag(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<bool>(v) && std::get<bool>(v);
  }
  std::string choice(const std::string& name) const {
    const OptionValue v = value(name);
    return std::holds_alternative<std::string>(v) ? std::get<std::string>(v) : "";
  }
  bool given(const std::string& name) const {
    const auto it = spec_.options.find(name);
    return it != spec_.options.end() && !std::holds_alternative<std::monostate>(it->second);
  }
  int64_t ignored() const { return integer("ignore_index").value_or(spec_.ignored_label); }
  const MetricSpec& spec() const { return spec_; }

 private:
  const OptionInfo* find(const std::string& name) const {
    const auto it = std::find_if(info_->options.begin(), info_->options.end(),
                                 [&](const OptionInfo& o) { return o.name == name; });
    return it == info_->options.end() ? nullptr : &*it;
  }
  OptionValue value(const std::string& name) const {
    if (given(name)) return spec_.options.at(name);
    const OptionInfo* option = find(name);
    return option ? option->fallback : OptionValue{};
  }
  MetricSpec spec_;
  std::shared_ptr<const MetricInfo> info_;
};

/// The operand after those of the signature, float64 and contiguous; without storage if there is
/// none. kData if it has not one element for each label.
Array mask_of(const std::string& metric, const std::vector<Array>& operands);

/// Scores and labels of a classification, row by row; NaN scores make the result NaN.
class Classification : public Metric {
 public:
  explicit Classification(const MetricSpec& spec) : settings_(spec) {}
  void update(const std::vector<Array>& operands, int64_t /*samples*/) override {
    const MetricSpec& spec = settings_.spec();
    const ScoreLayout layout =
        spec.layout ? *spec.layout
                    : score_layout(spec.name, to_shape(operands[0].shape),
                                   to_shape(operands[1].shape), settings_.integer("axis"),
                                   settings_.flag("multilabel"), ErrorCode::kData);
    const ScoreRows rows(spec.name, operands[0], operands[1], layout);
    begin(rows.classes(), rows.binary());
    const Array mask = mask_of(spec.name, operands);
    const int64_t labels = operands[0].shape.empty() ? 1 : operands[0].shape.back();
    const bool is_multilabel = settings_.flag("multilabel");
    const int64_t ignored = settings_.ignored();
    std::array<int64_t, kSeenEntries> seen = {};
    std::vector<double> scores;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      if (mask.storage && mask.data<double>()[i] == 0) continue;
      row_ = i;
      column_ = is_multilabel ? i % labels : 0;
      const auto label = rows.label(i, ignored);
      if (!label) continue;
      rows.scores(i, scores);
      ++seen[kRows];
      for (const double s : scores) {
        seen[kNaNs] += std::isnan(s);
        seen[kOutsideOfUnit] += !(s >= 0 && s <= 1);
      }
      add(scores, *label, rows.binary());
    }
    seen[kDecisions] = rows.binary() ? seen[kRows] : 0;
    for (size_t entry = 0; entry < kSeenEntries; ++entry) state_.count(kSeen, entry) += seen[entry];
  }
  double result() const override {
    return rows() == 0 || state_.count(kSeen, kNaNs) > 0 ? kNaN : value();
  }

 protected:
  /// Groups of counts. Those from kOwn on belong to the metric.
  enum Group : size_t { kSeen, kOwn };

  /// Called once for each batch, before its rows.
  virtual void begin(int64_t classes, bool binary) = 0;
  virtual void add(const std::vector<double>& scores, int64_t label, bool binary) = 0;
  virtual double value() const = 0;
  int64_t rows() const { return state_.count(kSeen, kRows); }
  double threshold() const {
    if (const auto given = settings_.real("threshold")) return *given;
    switch (settings_.spec().scores) {
      case ScoreKind::kLogits:
        return 0;
      case ScoreKind::kProbabilities:
        return 0.5;
      case ScoreKind::kLogProbabilities:
        return std::log(0.5);
    }
    return 0;
  }
  /// For metrics that compare single scores with the threshold.
  std::string threshold_warning() const {
    constexpr int64_t kEnough = 32;
    if (state_.count(kSeen, kDecisions) == 0 || state_.count(kSeen, kOutsideOfUnit) > 0 ||
        rows() < kEnough || settings_.given("threshold") ||
        settings_.spec().scores != ScoreKind::kLogits)
      return {};
    return settings_.spec().name +
           ": all scores lie in [0, 1] and are compared with the threshold of logits, 0; if they "
           "are probabilities, give threshold=0.5";
  }
  Settings settings_;
  int64_t row_ = 0;     ///< of the batch: the row at hand
  int64_t column_ = 0;  ///< with multilabel: which label it is about

 private:
  enum SeenEntry : size_t { kRows, kDecisions, kNaNs, kOutsideOfUnit, kSeenEntries };
};

inline size_t arg_max(const std::vector<double>& scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// Accumulators by family. nullptr for names of other families.
std::unique_ptr<Metric> make_rate(const MetricSpec& spec);        ///< precision_recall.cc
std::unique_ptr<Metric> make_curve(const MetricSpec& spec);       ///< curves.cc
std::unique_ptr<Metric> make_regression(const MetricSpec& spec);  ///< regression.cc
std::unique_ptr<Metric> make_sequence(const MetricSpec& spec);    ///< sequence_metric.cc
std::unique_ptr<Metric> make_text(const MetricSpec& spec);        ///< text_metric.cc
std::unique_ptr<Metric> make_detection(const MetricSpec& spec);   ///< detection_metric.cc
std::unique_ptr<Metric> make_reduction(const MetricSpec& spec);   ///< reduction.cc
std::unique_ptr<Metric> make_ranking(const MetricSpec& spec);     ///< ranking.cc
std::unique_ptr<Metric> make_user_area(const MetricSpec& spec);   ///< user_area.cc
std::unique_ptr<Metric> make_ctr(const MetricSpec& spec);         ///< ctr.cc

/// The choices of the option `value` of `ctr`.
std::vector<std::string> ctr_values();

/// Rejects masks that have not one element for each label.
void check_mask_shape(const std::string& name, const Shape& mask, const Shape& labels,
                      ErrorCode code);

/// Rejects operands of regression whose shapes differ by more than axes of size 1.
void check_regression_shapes(const std::string& name, const Shape& a, const Shape& b,
                             ErrorCode code);

/// Rejects operands of recall_at_k and ndcg that do not have one shape.
void check_ranking_shapes(const std::string& name, const Shape& scores, const Shape& relevant,
                          ErrorCode code);

/// Rejects operands of mean_average_precision, given in its order, that do not fit each other.
void check_detection_shapes(const std::vector<Shape>& shapes, ErrorCode code);

}  // namespace paddle::metrics
