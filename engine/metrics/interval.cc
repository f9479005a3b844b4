#include "metrics/interval.h"

#include <algorithm>
#include <cmath>

namespace paddle::metrics {
namespace {

/// The 97.5% quantiles of Student's t distribution with 9 to 19 degrees of freedom.
constexpr double kQuantiles[] = {2.262157, 2.228139, 2.200985, 2.178813, 2.160369, 2.144787,
                                 2.131450, 2.119905, 2.109816, 2.100922, 2.093024};
static_assert(std::size(kQuantiles) == kIntervalGroups - kMinGroups + 1);

}  // namespace

size_t interval_group(int64_t sample) {
  // SplitMix64: neighbors in the data fall into unrelated groups.
  uint64_t x = static_cast<uint64_t>(sample) + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<size_t>((x ^ (x >> 31)) % kIntervalGroups);
}

std::optional<ConfidenceInterval> jackknife_interval(double value,
                                                     std::span<const double> without) {
  const size_t groups = without.size();
  const bool finite =
      std::all_of(without.begin(), without.end(), [](double each) { return std::isfinite(each); });
  if (groups < kMinGroups || groups > kIntervalGroups || !std::isfinite(value) || !finite)
    return std::nullopt;
  const auto n = static_cast<double>(groups);
  double sum = 0, squares = 0;
  for (const double each : without) sum += each;
  const double mean = sum / n;
  for (const double each : without) squares += (each - mean) * (each - mean);
  const double half = kQuantiles[groups - kMinGroups] * std::sqrt((n - 1) / n * squares);
  return ConfidenceInterval{value - half, value + half};
}

}  // namespace paddle::metrics
