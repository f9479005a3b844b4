#include "decoding/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace paddle::decoding {

float sort_key(float score) {
  return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
}

Tokens argmax_tokens(std::span<const float> scores, int64_t vocabulary_size) {
  Tokens out;
  for (size_t at = 0; at < scores.size(); at += static_cast<size_t>(vocabulary_size)) {
    const auto row = scores.subspan(at, static_cast<size_t>(vocabulary_size));
    const auto best = std::max_element(row.begin(), row.end(),
                                       [](float a, float b) { return sort_key(a) < sort_key(b); });
    out.push_back(static_cast<int32_t>(best - row.begin()));
  }
  return out;
}

void SamplingOptions::check() const {
  if (!(temperature >= 0))
    fail(ErrorCode::kUsage, "temperature is ", temperature, ", expected at least 0");
  if (top_k < 0) fail(ErrorCode::kUsage, "top-k is ", top_k, ", expected at least 0");
  if (!(top_p > 0 && top_p <= 1))
    fail(ErrorCode::kUsage, "top-p is ", top_p, ", expected above 0 and at most 1");
  if (!(min_p >= 0 && min_p <= 1)) fail(ErrorCode::kUsage, "min-p is ", min_p, ", expected 0 to 1");
  if (!(repetition_penalty > 0) || std::isinf(repetition_penalty))
    fail(ErrorCode::kUsage, "repetition-penalty is ", repetition_penalty,
         ", expected a finite number above 0");
}

int64_t sample_token(std::span<const double> logits, const SamplingOptions& options,
                     double random) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (options.temperature <= 0) return largest - logits.begin();
  // Tokens less likely than this, relative to the best one, are never drawn: sorting the whole
  // vocabulary takes as long as a step of a small model.
  constexpr double kMinLogWeight = -50;
  const double least = *largest + kMinLogWeight * options.temperature;
  std::vector<int64_t> order;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= least) order.push_back(static_cast<int64_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(order.size()))
    order.resize(static_cast<size_t>(options.top_k));
  std::vector<double> weights;
  const double maximum = logits[static_cast<size_t>(order[0])];
  double total = 0;
  for (const int64_t i : order) {
    weights.push_back(std::exp((logits[static_cast<size_t>(i)] - maximum) / options.temperature));
    total += weights.back();
  }
  // The smallest set of tokens whose probability reaches top_p.
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < options.top_p * total))
    kept += weights[count++];
  // Weights are relative to the largest one. It is always kept.
  while (count > 1 && weights[count - 1] < options.min_p) kept -= weights[--count];
  double remaining = random * kept;
  for (size_t i = 0; i < count; ++i) {
    remaining -= weights[i];
    if (remaining < 0) return order[i];
  }
  return order[count - 1];
}

void TopPSampler::filter(std::span<float> row) const {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return options_.descending ? sort_key(row[a]) > sort_key(row[b])
                               : sort_key(row[a]) < sort_key(row[b]);
  });
  const float maximum = row[options_.descending ? order.front() : order.back()];
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x - maximum));
  std::vector<float> probabilities;
  for (const size_t t : order)
    probabilities.push_back(
        static_cast<float>(std::exp(static_cast<double>(row[t] - maximum)) / sum));
  float cumulative = 0;
  const size_t kept = std::min(row.size(), static_cast<size_t>(options_.min_tokens_to_keep));
  for (size_t i = 0; i < row.size(); ++i) {
    if (options_.descending) {
      if (i > 0 && cumulative > options_.top_p) row[order[i]] = options_.filter_value;
      cumulative += probabilities[i];
    } else {
      cumulative += probabilities[i];
      const bool is_kept = i > 0 && i >= row.size() - kept;
      if (!is_kept && cumulative <= 1 - options_.top_p) row[order[i]] = options_.filter_value;
    }
  }
}

Tokens TopPSampler::sample(std::span<float> scores, int64_t vocabulary_size) {
  Tokens out;
  std::uniform_real_distribution<double> uniform;
  for (size_t r = 0; r * static_cast<size_t>(vocabulary_size) < scores.size(); ++r) {
    const std::span<float> row = scores.subspan(r * static_cast<size_t>(vocabulary_size),
                                                static_cast<size_t>(vocabulary_size));
    filter(row);
    const float maximum = sort_key(*std::max_element(
        row.begin(), row.end(), [](float a, float b) { return sort_key(a) < sort_key(b); }));
    std::vector<double> sums;
    double sum = 0;
    for (const float x : row) {
      if (std::isfinite(x)) sum += std::exp(static_cast<double>(x) - static_cast<double>(maximum));
      sums.push_back(sum);
    }
    const auto found = std::upper_bound(sums.begin(), sums.end(), uniform(generator_) * sum);
    out.push_back(
        static_cast<int32_t>(std::min<int64_t>(found - sums.begin(), vocabulary_size - 1)));
  }
  return out;
}

}  // namespace paddle::decoding
