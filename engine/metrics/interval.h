#pragma once
// Confidence intervals of metrics by the delete-a-group jackknife: samples are divided at random
// into a few groups, and the value is computed without each of them in turn. It needs no formula
// for the metric, so it holds for rates, areas under curves and expressions alike.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace paddle::metrics {

/// The number of groups of samples.
inline constexpr size_t kIntervalGroups = 20;
/// Fewer groups with samples give no interval.
inline constexpr size_t kMinGroups = 10;
/// The group of a sample: depends only on its number in the dataset.
size_t interval_group(int64_t sample);

/// Of 95%.
struct ConfidenceInterval {
  double low = 0, high = 0;
};
/// `without`: the values without each of the groups that have samples. nullopt for fewer than
/// kMinGroups, and where a value is not finite.
std::optional<ConfidenceInterval> jackknife_interval(double value, std::span<const double> without);

}  // namespace paddle::metrics
