#include "metrics/class_report.h"

#include <algorithm>
#include <cmath>

#include "metrics/classification.h"

namespace paddle::metrics {
namespace {

constexpr size_t kMaxScores = 8 << 20;    ///< kept for curves
constexpr int64_t kMaxClasses = 1 << 12;  ///< of a confusion matrix

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The share of `part` in `whole`; 0 where there is nothing.
double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

ClassRow class_row(int64_t hits, int64_t support, int64_t predicted) {
  ClassRow row;
  row.support = support;
  row.predicted = predicted;
  row.precision = share(hits, predicted);
  row.recall = share(hits, support);
  row.f1 = share(2 * hits, support + predicted);
  row.iou = share(hits, support + predicted - hits);
  return row;
}

/// The probability of a positive from a score of its own.
double probability_of(double score, ScoreKind kind) {
  if (kind == ScoreKind::kLogits) return logistic(score);
  return kind == ScoreKind::kProbabilities ? score : std::exp(score);
}

/// The curve of scored decisions, of at most `points` points.
RateCurve rate_curve(std::vector<std::pair<double, bool>> scored, size_t points) {
  std::sort(scored.begin(), scored.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto positives = static_cast<double>(
      std::count_if(scored.begin(), scored.end(), [](const auto& s) { return s.second; }));
  const double negatives = static_cast<double>(scored.size()) - positives;
  RateCurve all, curve;
  double hits = 0, alarms = 0, area = 0, precision_sum = 0;
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
  return curve;
}

}  // namespace

ClassReport::ClassReport(MetricSpec spec) : spec_(std::move(spec)) {
  const Settings settings(spec_);
  is_multilabel_ = settings.flag("multilabel");
  ignored_ = settings.ignored();
  const double of_kind = spec_.scores == ScoreKind::kLogits          ? 0
                         : spec_.scores == ScoreKind::kProbabilities ? 0.5
                                                                     : std::log(0.5);
  threshold_ = settings.real("threshold").value_or(of_kind);
}

bool ClassReport::is_possible(const MetricSpec& spec) {
  const char* const names[] = {"accuracy",          "f1", "precision", "recall", "auc",
                               "average_precision", "iou"};
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* name) { return spec.name == name; }) &&
         spec.layout.has_value();
}

void ClassReport::update(const std::vector<Array>& operands, std::span<const int64_t> indices) {
  const ScoreRows rows(spec_.name, operands[0], operands[1], *spec_.layout);
  const auto samples = static_cast<int64_t>(indices.size());
  if (is_multilabel_) {
    if (operands[0].shape.size() == 2 && operands[0].shape[0] == samples) add_labels(rows, indices);
    return;
  }
  const int64_t classes = rows.binary() ? 2 : rows.classes();
  if (classes < 1 || classes > kMaxClasses) return;
  if (this->classes() != 0 && this->classes() != classes) return;
  state_.count(kConfusion, static_cast<size_t>(classes * classes - 1)) += 0;  // all of it exists
  const bool one_row_per_sample = rows.rows() == samples;
  const Array mask = mask_of(spec_.name, operands);
  std::vector<double> scores;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    if (mask.storage && mask.data<double>()[r] == 0) continue;
    const auto label = rows.label(r, ignored_);
    if (!label) continue;
    rows.scores(r, scores);
    if (std::any_of(scores.begin(), scores.end(), [](double s) { return std::isnan(s); })) continue;
    if (!one_row_per_sample) ++state_.count(kSeen, kUnkept);
    add_row(scores, *label, classes, one_row_per_sample ? indices[static_cast<size_t>(r)] : -1);
  }
}

bool ClassReport::keep(int64_t index, int64_t classes) {
  ++state_.count(kSeen, kRows);
  const bool complete = is_complete(classes);
  if (!complete)
    for (const List list : {kIndices, kLabels, kProbabilities}) state_.list(list) = {};
  else
    state_.list(kIndices).push_back(static_cast<double>(index));
  return complete;
}

void ClassReport::add_row(const std::vector<double>& scores, int64_t label, int64_t classes,
                          int64_t index) {
  const bool is_binary = scores.size() == 1;
  const auto predicted = static_cast<int64_t>(is_binary ? scores[0] > threshold_ : arg_max(scores));
  ++state_.count(kConfusion, static_cast<size_t>(label * classes + predicted));
  if (!keep(index, classes)) return;
  state_.list(kLabels).push_back(static_cast<double>(label));
  NumberList& probabilities = state_.list(kProbabilities);
  if (is_binary) {
    const double p = probability_of(scores[0], spec_.scores);
    probabilities.append({1 - p, p});
    return;
  }
  const double top = *std::max_element(scores.begin(), scores.end());
  std::vector<double> weights = scores;
  double sum = 0;
  for (double& w : weights) {
    if (spec_.scores != ScoreKind::kProbabilities) w = std::exp(w - top);
    sum += w;
  }
  for (const double w : weights) probabilities.push_back(w / sum);
}

/// Labels are rows of the scores: those of the first sample, those of the second, ….
void ClassReport::add_labels(const ScoreRows& rows, std::span<const int64_t> indices) {
  const auto labels = rows.rows() / static_cast<int64_t>(indices.size());
  if (labels < 1 || (classes() != 0 && classes() != labels)) return;
  state_.count(kConfusion, static_cast<size_t>(4 * labels - 1)) += 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    std::vector<double> truths, probabilities;
    for (int64_t c = 0; c < labels; ++c) {
      const int64_t row = static_cast<int64_t>(i) * labels + c;
      const auto label = rows.label(row, ignored_);
      const double score = rows.score(row, 0);
      if (!label || std::isnan(score)) continue;
      const int64_t predicted = score > threshold_ ? 1 : 0;
      ++state_.count(kConfusion, static_cast<size_t>(4 * c + 2 * *label + predicted));
      truths.push_back(static_cast<double>(*label));
      probabilities.push_back(probability_of(score, spec_.scores));
    }
    // Curves need a decision about every label of a sample.
    if (truths.size() != static_cast<size_t>(labels)) ++state_.count(kSeen, kUnkept);
    if (!keep(indices[i], labels)) continue;
    state_.list(kLabels).append(truths);
    state_.list(kProbabilities).append(probabilities);
  }
}

bool ClassReport::is_complete(int64_t classes) const {
  return state_.count(kSeen, kUnkept) == 0 && static_cast<size_t>(rows() * classes) <= kMaxScores;
}

int64_t ClassReport::classes() const {
  const size_t counts = state_.counts(kConfusion);
  if (is_multilabel_) return static_cast<int64_t>(counts / 4);
  return std::lround(std::sqrt(static_cast<double>(counts)));
}

int64_t ClassReport::rows() const { return state_.count(kSeen, kRows); }

std::vector<int64_t> ClassReport::confusion() const {
  if (is_multilabel_) return {};
  std::vector<int64_t> out(state_.counts(kConfusion));
  for (size_t i = 0; i < out.size(); ++i) out[i] = state_.count(kConfusion, i);
  return out;
}

std::vector<ClassRow> ClassReport::table() const {
  const auto classes = static_cast<size_t>(this->classes());
  const auto count = [&](size_t at) { return state_.count(kConfusion, at); };
  std::vector<ClassRow> out;
  for (size_t c = 0; c < classes; ++c) {
    if (is_multilabel_) {
      const int64_t hits = count(4 * c + 3);
      out.push_back(class_row(hits, count(4 * c + 2) + hits, count(4 * c + 1) + hits));
      continue;
    }
    int64_t support = 0, predicted = 0;
    for (size_t other = 0; other < classes; ++other) {
      support += count(c * classes + other);
      predicted += count(other * classes + c);
    }
    out.push_back(class_row(count(c * classes + c), support, predicted));
  }
  return out;
}

bool ClassReport::is_true(size_t row, size_t c) const {
  const std::span<const double> labels = state_.list(kLabels);
  return is_multilabel_ ? labels[row * static_cast<size_t>(classes()) + c] != 0
                        : labels[row] == static_cast<double>(c);
}

void ClassReport::append_scored(size_t c, std::vector<std::pair<double, bool>>& out) const {
  const std::span<const double> probabilities = state_.list(kProbabilities);
  const auto classes = static_cast<size_t>(this->classes());
  for (size_t i = 0; i < state_.list(kIndices).size(); ++i)
    out.emplace_back(probabilities[i * classes + c], is_true(i, c));
}

std::vector<RateCurve> ClassReport::curves(size_t points) const {
  std::vector<RateCurve> out;
  if (!is_complete() || state_.list(kIndices).empty()) return out;
  const auto classes = static_cast<size_t>(this->classes());
  for (size_t c = !is_multilabel_ && classes == 2 ? 1 : 0; c < classes; ++c) {
    std::vector<std::pair<double, bool>> scored;
    append_scored(c, scored);
    out.push_back(rate_curve(std::move(scored), points));
  }
  return out;
}

std::optional<RateCurve> ClassReport::micro_curve(size_t points) const {
  const auto classes = static_cast<size_t>(this->classes());
  if (!is_complete() || state_.list(kIndices).empty() || classes < (is_multilabel_ ? 2 : 3))
    return std::nullopt;
  std::vector<std::pair<double, bool>> scored;
  for (size_t c = 0; c < classes; ++c) append_scored(c, scored);
  return rate_curve(std::move(scored), points);
}

std::vector<WorstSample> ClassReport::worst(size_t count) const {
  std::vector<WorstSample> out;
  if (!is_complete()) return out;
  const std::span<const double> indices = state_.list(kIndices);
  const auto classes = static_cast<size_t>(this->classes());
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto scores = state_.list(kProbabilities).subspan(i * classes, classes);
    WorstSample sample;
    sample.index = static_cast<int64_t>(indices[i]);
    sample.probability = 2;
    for (size_t c = 0; c < classes; ++c) {
      if (!is_multilabel_ && !is_true(i, c)) continue;
      const double p = is_true(i, c) ? scores[c] : 1 - scores[c];
      if (p >= sample.probability) continue;
      sample.probability = p;
      sample.label = static_cast<int64_t>(c);
      sample.predicted = scores[c] > 0.5;
    }
    if (!is_multilabel_)
      sample.predicted = std::max_element(scores.begin(), scores.end()) - scores.begin();
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
