#include "metrics/probability_histogram.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "metrics/classification.h"

namespace paddle::metrics {

double probability(const MetricSpec& spec, double score) {
  switch (spec.scores) {
    case ScoreKind::kLogits:
      return 1 / (1 + std::exp(-score));
    case ScoreKind::kLogProbabilities:
      score = std::exp(score);
      break;
    case ScoreKind::kProbabilities:
      break;
  }
  if (score < 0 || score > 1)
    fail(ErrorCode::kData, spec.name, ": ", format_double(score), " is not a probability");
  return score;
}

void ProbabilityHistogram::add(MetricState& state, size_t group, double probability,
                               bool is_positive) const {
  if (std::isnan(probability)) return;
  const auto bucket = static_cast<int64_t>(probability * static_cast<double>(buckets_));
  ++state.count(group + (is_positive ? 1 : 0), static_cast<size_t>(std::min(bucket, buckets_ - 1)));
}

double ProbabilityHistogram::area(const MetricState& state, size_t group) const {
  double won = 0, negatives = 0, positives = 0;
  for (size_t i = 0; i < static_cast<size_t>(buckets_); ++i) {
    const auto no = static_cast<double>(state.count(group, i)),
               yes = static_cast<double>(state.count(group + 1, i));
    won += yes * (negatives + 0.5 * no);
    negatives += no;
    positives += yes;
  }
  return positives > 0 && negatives > 0 ? won / (positives * negatives) : kNaN;
}

double ProbabilityHistogram::error(const MetricState& state, size_t group) const {
  constexpr double kMaxSpan = 0.01, kMaxRelativeError = 0.05;
  double last = -1, shows = 0, predicted = 0, clicks = 0, errors = 0, count = 0;
  for (size_t i = 0; i < static_cast<size_t>(buckets_); ++i) {
    const auto no = static_cast<double>(state.count(group, i)),
               yes = static_cast<double>(state.count(group + 1, i));
    const double rate = static_cast<double>(i) / static_cast<double>(buckets_);
    if (std::abs(rate - last) > kMaxSpan) {
      last = rate;
      shows = predicted = clicks = 0;
    }
    shows += no + yes;
    predicted += rate * (no + yes);
    clicks += yes;
    const double mean = predicted / shows;
    // False for NaN: nothing was shown, or with a rate of 0.
    if (std::sqrt((1 - mean) / (mean * shows)) < kMaxRelativeError) {
      errors += std::abs(clicks / shows / mean - 1) * shows;
      count += shows;
      last = -1;
    }
  }
  return count > 0 ? errors / count : 0;
}

}  // namespace paddle::metrics
