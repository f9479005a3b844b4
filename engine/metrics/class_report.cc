#include "metrics/class_report.h"

#include <algorithm>
#include <cmath>

#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

constexpr size_t kMostScores = 8 << 20;    ///< kept for curves
constexpr int64_t kMostClasses = 1 << 12;  ///< of a confusion matrix

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The share of `part` in `whole`; 0 where there is nothing.
double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

ClassReport::ClassReport(MetricSpec spec) : spec_(std::move(spec)) {}

bool ClassReport::is_possible(const MetricSpec& spec) {
  const char* const names[] = {"accuracy",          "f1", "precision", "recall", "auc",
                               "average_precision", "iou"};
  const auto several = spec.options.find("multilabel");
  const bool is_multilabel = several != spec.options.end() && several->second == OptionValue(true);
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* name) { return spec.name == name; }) &&
         !is_multilabel && spec.layout.has_value();
}

void ClassReport::update(const std::vector<Array>& operands, std::span<const int64_t> indices) {
  const Settings settings(spec_);
  const ScoreRows rows(spec_.name, operands[0], operands[1], *spec_.layout);
  const int64_t classes = rows.binary() ? 2 : rows.classes();
  if (classes > kMostClasses) return;
  if (classes_ == 0) {
    classes_ = classes;
    confusion_.assign(static_cast<size_t>(classes * classes), 0);
  }
  if (classes != classes_) return;
  one_row_per_sample_ = one_row_per_sample_ && rows.rows() == static_cast<int64_t>(indices.size());
  const double binary_threshold =
      settings.real("threshold")
          .value_or(spec_.scores == ScoreKind::kLogits          ? 0
                    : spec_.scores == ScoreKind::kProbabilities ? 0.5
                                                                : std::log(0.5));
  std::vector<double> scores;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto label = rows.label(r, settings.ignored());
    if (!label) continue;
    rows.scores(r, scores);
    if (std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); })) continue;
    const auto predicted =
        static_cast<int64_t>(rows.binary() ? scores[0] > binary_threshold : arg_max(scores));
    ++confusion_[static_cast<size_t>(*label * classes_ + predicted)];
    ++rows_;
    is_complete_ = is_complete_ && one_row_per_sample_ &&
                   (seen_.size() + 1) * static_cast<size_t>(classes_) <= kMostScores;
    if (!is_complete_) {
      seen_.clear();
      continue;
    }
    Seen& seen = seen_.emplace_back();
    seen.index = indices[static_cast<size_t>(r)];
    seen.label = *label;
    if (rows.binary()) {
      const double p = spec_.scores == ScoreKind::kLogits          ? logistic(scores[0])
                       : spec_.scores == ScoreKind::kProbabilities ? scores[0]
                                                                   : std::exp(scores[0]);
      seen.scores = {1 - p, p};
      continue;
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& s : scores) {
      if (spec_.scores != ScoreKind::kProbabilities) s = std::exp(s - top);
      sum += s;
    }
    for (const double s : scores) seen.scores.push_back(s / sum);
  }
}

std::vector<ClassRow> ClassReport::table() const {
  std::vector<ClassRow> out(static_cast<size_t>(classes_));
  for (int64_t a = 0; a < classes_; ++a)
    for (int64_t p = 0; p < classes_; ++p) {
      const int64_t count = confusion_[static_cast<size_t>(a * classes_ + p)];
      out[static_cast<size_t>(a)].support += count;
      out[static_cast<size_t>(p)].predicted += count;
    }
  for (int64_t c = 0; c < classes_; ++c) {
    ClassRow& row = out[static_cast<size_t>(c)];
    const int64_t hits = confusion_[static_cast<size_t>(c * classes_ + c)];
    row.precision = share(hits, row.predicted);
    row.recall = share(hits, row.support);
    row.f1 = share(2 * hits, row.support + row.predicted);
  }
  return out;
}

std::vector<RateCurve> ClassReport::curves(size_t points) const {
  std::vector<RateCurve> out;
  if (!is_complete_ || seen_.empty()) return out;
  const int64_t first = classes_ == 2 ? 1 : 0;
  for (int64_t c = first; c < classes_; ++c) {
    std::vector<std::pair<double, bool>> scored;
    for (const Seen& each : seen_)
      scored.emplace_back(each.scores[static_cast<size_t>(c)], each.label == c);
    std::sort(scored.begin(), scored.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    const auto positives = static_cast<double>(
        std::count_if(scored.begin(), scored.end(), [](const auto& s) { return s.second; }));
    const double negatives = static_cast<double>(scored.size()) - positives;
    RateCurve curve;
    double hits = 0, alarms = 0, area = 0, precision_sum = 0;
    RateCurve all;
    for (size_t i = 0; i < scored.size();) {
      const double score = scored[i].first, hits_before = hits, alarms_before = alarms;
      for (; i < scored.size() && scored[i].first == score; ++i)
        (scored[i].second ? hits : alarms) += 1;
      area += (alarms - alarms_before) * (hits + hits_before) / 2;
      precision_sum += (hits - hits_before) * hits / (hits + alarms);
      all.thresholds.push_back(score);
      all.false_positives.push_back(negatives > 0 ? alarms / negatives : 0);
      all.recalls.push_back(positives > 0 ? hits / positives : 0);
      all.precisions.push_back(hits / (hits + alarms));
    }
    const size_t there = all.thresholds.size(), kept = std::min(there, points);
    for (size_t k = 0; k < kept; ++k) {
      const size_t i = kept == 1 ? there - 1 : k * (there - 1) / (kept - 1);
      curve.thresholds.push_back(all.thresholds[i]);
      curve.false_positives.push_back(all.false_positives[i]);
      curve.recalls.push_back(all.recalls[i]);
      curve.precisions.push_back(all.precisions[i]);
    }
    curve.area = positives > 0 && negatives > 0 ? area / (positives * negatives) : kNaN;
    curve.average_precision = positives > 0 ? precision_sum / positives : kNaN;
    out.push_back(std::move(curve));
  }
  return out;
}

std::vector<WorstSample> ClassReport::worst(size_t count) const {
  std::vector<WorstSample> out;
  if (!is_complete_) return out;
  for (const Seen& each : seen_) {
    WorstSample sample;
    sample.index = each.index;
    sample.label = each.label;
    sample.predicted =
        std::max_element(each.scores.begin(), each.scores.end()) - each.scores.begin();
    sample.probability = each.scores[static_cast<size_t>(each.label)];
    out.push_back(sample);
  }
  count = std::min(count, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end(),
                    [](const WorstSample& a, const WorstSample& b) {
                      return std::pair(a.probability, a.index) < std::pair(b.probability, b.index);
                    });
  out.resize(count);
  return out;
}

}  // namespace paddle::metrics
