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
  if (classes < 1 || classes > kMostClasses) return;
  if (this->classes() != 0 && this->classes() != classes) return;
  state_.count(kConfusion, static_cast<size_t>(classes * classes - 1)) += 0;  // all of it exists
  const bool one_row_per_sample = rows.rows() == static_cast<int64_t>(indices.size());
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
    ++state_.count(kConfusion, static_cast<size_t>(*label * classes + predicted));
    ++state_.count(kSeen, kRows);
    if (!one_row_per_sample) ++state_.count(kSeen, kUnkept);
    if (!is_complete()) {
      for (const List list : {kIndices, kLabels, kProbabilities}) state_.list(list) = {};
      continue;
    }
    state_.list(kIndices).push_back(static_cast<double>(indices[static_cast<size_t>(r)]));
    state_.list(kLabels).push_back(static_cast<double>(*label));
    std::vector<double>& probabilities = state_.list(kProbabilities);
    if (rows.binary()) {
      const double p = spec_.scores == ScoreKind::kLogits          ? logistic(scores[0])
                       : spec_.scores == ScoreKind::kProbabilities ? scores[0]
                                                                   : std::exp(scores[0]);
      probabilities.insert(probabilities.end(), {1 - p, p});
      continue;
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& s : scores) {
      if (spec_.scores != ScoreKind::kProbabilities) s = std::exp(s - top);
      sum += s;
    }
    for (const double s : scores) probabilities.push_back(s / sum);
  }
}

bool ClassReport::is_complete() const {
  return state_.count(kSeen, kUnkept) == 0 &&
         static_cast<size_t>(rows() * classes()) <= kMostScores;
}

int64_t ClassReport::classes() const {
  return std::lround(std::sqrt(static_cast<double>(state_.counts(kConfusion))));
}

int64_t ClassReport::rows() const { return state_.count(kSeen, kRows); }

std::vector<int64_t> ClassReport::confusion() const {
  std::vector<int64_t> out(state_.counts(kConfusion));
  for (size_t i = 0; i < out.size(); ++i) out[i] = state_.count(kConfusion, i);
  return out;
}

std::vector<ClassRow> ClassReport::table() const {
  const int64_t classes = this->classes();
  std::vector<ClassRow> out(static_cast<size_t>(classes));
  for (int64_t a = 0; a < classes; ++a)
    for (int64_t p = 0; p < classes; ++p) {
      const int64_t count = state_.count(kConfusion, static_cast<size_t>(a * classes + p));
      out[static_cast<size_t>(a)].support += count;
      out[static_cast<size_t>(p)].predicted += count;
    }
  for (int64_t c = 0; c < classes; ++c) {
    ClassRow& row = out[static_cast<size_t>(c)];
    const int64_t hits = state_.count(kConfusion, static_cast<size_t>(c * classes + c));
    row.precision = share(hits, row.predicted);
    row.recall = share(hits, row.support);
    row.f1 = share(2 * hits, row.support + row.predicted);
  }
  return out;
}

std::vector<RateCurve> ClassReport::curves(size_t points) const {
  std::vector<RateCurve> out;
  const std::span<const double> labels = state_.list(kLabels);
  const std::span<const double> probabilities = state_.list(kProbabilities);
  if (!is_complete() || labels.empty()) return out;
  const auto classes = static_cast<size_t>(this->classes());
  for (size_t c = classes == 2 ? 1 : 0; c < classes; ++c) {
    std::vector<std::pair<double, bool>> scored;
    for (size_t i = 0; i < labels.size(); ++i)
      scored.emplace_back(probabilities[i * classes + c], labels[i] == static_cast<double>(c));
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
  if (!is_complete()) return out;
  const std::span<const double> indices = state_.list(kIndices), labels = state_.list(kLabels);
  const auto classes = static_cast<size_t>(this->classes());
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto scores = state_.list(kProbabilities).subspan(i * classes, classes);
    WorstSample sample;
    sample.index = static_cast<int64_t>(indices[i]);
    sample.label = static_cast<int64_t>(labels[i]);
    sample.predicted = std::max_element(scores.begin(), scores.end()) - scores.begin();
    sample.probability = scores[static_cast<size_t>(sample.label)];
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
