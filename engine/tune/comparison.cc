#include "tune/comparison.h"

#include <cmath>

#include "base/error.h"

namespace paddle::tune {

double t_quantile(int n) {
  ensure(n >= 2, "an interval needs two samples");
  // Two-sided 95%, by degrees of freedom.
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                      2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                      2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  const int freedom = n - 1;
  if (freedom <= static_cast<int>(std::size(kTable))) return kTable[freedom - 1];
  const double z = 1.959964, f = freedom;
  return z + (z * z * z + z) / (4 * f) +
         (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * f * f);
}

Gain paired_gain(const std::vector<double>& base, const std::vector<double>& candidate) {
  ensure(base.size() == candidate.size() && base.size() >= 2, "a gain needs two pairs");
  const auto n = static_cast<double>(base.size());
  double sum = 0, squares = 0;
  for (size_t i = 0; i < base.size(); ++i) sum += std::log(base[i] / candidate[i]);
  const double mean = sum / n;
  for (size_t i = 0; i < base.size(); ++i) {
    const double d = std::log(base[i] / candidate[i]) - mean;
    squares += d * d;
  }
  const double half =
      t_quantile(static_cast<int>(base.size())) * std::sqrt(squares / (n - 1)) / std::sqrt(n);
  return {std::expm1(mean), std::expm1(mean - half), std::expm1(mean + half)};
}

Comparison compare(const Block& base, const Block& candidate, const ComparisonOptions& options,
                   const std::function<bool()>& stop) {
  Comparison result;
  std::vector<double> base_times, candidate_times;
  while (result.rounds < options.max_rounds) {
    if (stop()) return result;
    // The order alternates, so that a drift cancels out.
    if (result.rounds % 2 == 0) {
      base_times.push_back(base());
      candidate_times.push_back(candidate());
    } else {
      candidate_times.push_back(candidate());
      base_times.push_back(base());
    }
    ++result.rounds;
    if (result.rounds < 2) continue;
    result.gain = paired_gain(base_times, candidate_times);
    if (result.rounds == 2 && result.rounds < options.max_rounds &&
        candidate_times[0] > (1 + options.early_reject) * base_times[0] &&
        candidate_times[1] > (1 + options.early_reject) * base_times[1]) {
      result.outcome = ComparisonResult::kSlower;
      return result;
    }
    if (result.rounds < options.min_rounds) continue;
    if (result.gain.low > options.worth) {
      result.outcome = ComparisonResult::kFaster;
      return result;
    }
    if (result.gain.high < 0) {
      result.outcome = ComparisonResult::kSlower;
      return result;
    }
    if (result.gain.high < options.worth) break;
  }
  result.outcome = ComparisonResult::kSame;
  return result;
}

}  // namespace paddle::tune
