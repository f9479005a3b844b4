#include "quant_common/observer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace paddle::quant {
namespace {

const std::map<std::string, RangeMethod>& methods() {
  static const std::map<std::string, RangeMethod> all = {
      {"min_max", RangeMethod::kMinMax},
      {"abs_max", RangeMethod::kAbsMax},
      {"moving_average", RangeMethod::kMovingAverage},
      {"emd", RangeMethod::kEmd},
      {"percentile", RangeMethod::kPercentile},
      {"mse", RangeMethod::kMse},
      {"kl", RangeMethod::kKl}};
  return all;
}

}  // namespace

std::vector<std::string> range_method_names() {
  std::vector<std::string> out;
  for (const auto& [name, method] : methods()) out.push_back(name);
  return out;
}

RangeMethod parse_range_method(const std::string& name) {
  const auto found = methods().find(name);
  if (found != methods().end()) return found->second;
  const auto names = range_method_names();
  fail(ErrorCode::kUsage, "'", name, "' is not an observer", did_you_mean(name, names),
       "; observers are ", join(names, ", "));
}

void Observer::cover(double low, double high) {
  if (bins_.empty()) {
    bins_.assign(kBins, 0);
    const double size = std::max(high - low, 1e-12);
    start_ = low;
    width_ = size / static_cast<double>(kBins);
    return;
  }
  // Each step doubles the width of the bins and keeps the covered values on the side that is full.
  while (low < start_ || high > start_ + width_ * static_cast<double>(kBins)) {
    const bool downwards = low < start_;
    std::vector<double> merged(kBins, 0);
    const int64_t offset = downwards ? kBins / 2 : 0;
    for (int64_t i = 0; i < kBins; ++i)
      merged[static_cast<size_t>(offset + i / 2)] += bins_[static_cast<size_t>(i)];
    if (downwards) start_ -= width_ * static_cast<double>(kBins);
    width_ *= 2;
    bins_ = std::move(merged);
  }
}

void Observer::add(const Array& values) {
  const Array packed = values.cast(DType::kF32).contiguous();
  const float* const x = packed.data<float>();
  const int64_t n = packed.size();
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    low = std::min(low, static_cast<double>(x[i]));
    high = std::max(high, static_cast<double>(x[i]));
    ++finite;
  }
  not_finite_ += n - finite;
  if (finite == 0) return;
  cover(low, high);
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    const auto bin = static_cast<int64_t>((static_cast<double>(x[i]) - start_) / width_);
    bins_[static_cast<size_t>(std::clamp<int64_t>(bin, 0, kBins - 1))] += 1;
  }
  constexpr double kKept = 0.9;
  average_low_ = count_ == 0 ? low : kKept * average_low_ + (1 - kKept) * low;
  average_high_ = count_ == 0 ? high : kKept * average_high_ + (1 - kKept) * high;
  low_ = count_ == 0 ? low : std::min(low_, low);
  high_ = count_ == 0 ? high : std::max(high_, high);
  count_ += finite;
}

double Observer::bin_center(int64_t bin) const {
  return start_ + width_ * (static_cast<double>(bin) + 0.5);
}

Range Observer::percentile_range(double percentile) const {
  // The same share is cut at both ends.
  const double cut = static_cast<double>(count_) * (100 - percentile) / 200;
  Range out{low_, high_};
  double below = 0;
  for (int64_t i = 0; i < kBins; ++i) {
    below += bins_[static_cast<size_t>(i)];
    if (below > cut) {
      out.low = std::max(low_, start_ + width_ * static_cast<double>(i));
      break;
    }
  }
  double above = 0;
  for (int64_t i = kBins - 1; i >= 0; --i) {
    above += bins_[static_cast<size_t>(i)];
    if (above > cut) {
      out.high = std::min(high_, start_ + width_ * static_cast<double>(i + 1));
      break;
    }
  }
  return out;
}

Range Observer::least_error_range(int64_t levels, bool squared) const {
  Range best{low_, high_};
  double least = std::numeric_limits<double>::infinity();
  constexpr int kSteps = 100;
  for (int step = 0; step < kSteps; ++step) {
    const double share = 1 - 0.9 * step / kSteps;
    const double low = std::min(0.0, low_) * share, high = std::max(0.0, high_) * share;
    const double scale = (high - low) / static_cast<double>(levels - 1);
    if (!(scale > 0)) continue;
    double error = 0;
    for (int64_t i = 0; i < kBins; ++i) {
      const double weight = bins_[static_cast<size_t>(i)];
      if (weight == 0) continue;
      const double x = bin_center(i), held = std::clamp(x, low, high);
      const double outside = std::abs(x - held);
      // Rounding inside of the range costs scale^2 / 12, or scale / 4, on average.
      error += weight * (squared ? outside * outside + scale * scale / 12 : outside + scale / 4);
    }
    if (error < least) {
      least = error;
      best = {low, high};
    }
  }
  return best;
}

/// Migacz, "8-bit Inference with TensorRT" (2017): the threshold whose quantized distribution has
/// the least Kullback-Leibler divergence from the observed one.
Range Observer::kl_range(int64_t levels) const {
  const double bound = std::max(std::abs(low_), std::abs(high_));
  const bool is_signed = low_ < 0;
  // Magnitudes, since ranges around zero are shrunk on both sides alike.
  std::vector<double> magnitudes(kBins, 0);
  const double width = bound / static_cast<double>(kBins);
  if (!(width > 0)) return {low_, high_};
  for (int64_t i = 0; i < kBins; ++i) {
    const auto at = static_cast<int64_t>(std::abs(bin_center(i)) / width);
    magnitudes[static_cast<size_t>(std::min(at, kBins - 1))] += bins_[static_cast<size_t>(i)];
  }
  const int64_t groups = is_signed ? levels / 2 : levels;
  double least = std::numeric_limits<double>::infinity();
  int64_t best = kBins;
  for (int64_t used = groups; used <= kBins; used += 16) {
    std::vector<double> reference(magnitudes.begin(), magnitudes.begin() + used);
    for (int64_t i = used; i < kBins; ++i) reference.back() += magnitudes[static_cast<size_t>(i)];
    std::vector<double> coarse(static_cast<size_t>(used), 0);
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t from = used * g / groups, to = used * (g + 1) / groups;
      double sum = 0;
      int64_t filled = 0;
      for (int64_t i = from; i < to; ++i) {
        sum += magnitudes[static_cast<size_t>(i)];
        filled += magnitudes[static_cast<size_t>(i)] > 0;
      }
      for (int64_t i = from; i < to; ++i)
        if (magnitudes[static_cast<size_t>(i)] > 0)
          coarse[static_cast<size_t>(i)] = sum / static_cast<double>(filled);
    }
    double p_sum = 0, q_sum = 0;
    for (int64_t i = 0; i < used; ++i) {
      p_sum += reference[static_cast<size_t>(i)];
      q_sum += coarse[static_cast<size_t>(i)];
    }
    if (!(p_sum > 0) || !(q_sum > 0)) continue;
    double divergence = 0;
    for (int64_t i = 0; i < used; ++i) {
      const double p = reference[static_cast<size_t>(i)] / p_sum;
      const double q = std::max(coarse[static_cast<size_t>(i)] / q_sum, 1e-12);
      if (p > 0) divergence += p * std::log(p / q);
    }
    if (divergence < least) {
      least = divergence;
      best = used;
    }
  }
  const double threshold = width * static_cast<double>(best);
  return {std::max(low_, -threshold), std::min(high_, threshold)};
}

std::vector<double> Observer::state() const {
  std::vector<double> out = {start_,
                             width_,
                             low_,
                             high_,
                             average_low_,
                             average_high_,
                             static_cast<double>(count_),
                             static_cast<double>(not_finite_)};
  out.insert(out.end(), bins_.begin(), bins_.end());
  return out;
}

std::optional<Observer> Observer::from_state(const std::vector<double>& state) {
  constexpr size_t kNumbers = 8;
  if (state.size() != kNumbers + kBins) return std::nullopt;
  for (const double each : state)
    if (!std::isfinite(each)) return std::nullopt;
  constexpr double kMax = 9e15;
  if (!(state[1] > 0) || !(state[3] >= state[2]) || !(state[6] > 0 && state[6] < kMax) ||
      !(state[7] >= 0 && state[7] < kMax))
    return std::nullopt;
  Observer out;
  out.start_ = state[0];
  out.width_ = state[1];
  out.low_ = state[2];
  out.high_ = state[3];
  out.average_low_ = state[4];
  out.average_high_ = state[5];
  out.count_ = static_cast<int64_t>(state[6]);
  out.not_finite_ = static_cast<int64_t>(state[7]);
  out.bins_.assign(state.begin() + kNumbers, state.end());
  return out;
}

Range Observer::range(RangeMethod method, int64_t levels, double percentile) const {
  if (empty()) return {};
  switch (method) {
    case RangeMethod::kMinMax:
      return {low_, high_};
    case RangeMethod::kAbsMax: {
      const double largest = std::max(std::abs(low_), std::abs(high_));
      return {-largest, largest};
    }
    case RangeMethod::kPercentile:
      return percentile_range(percentile);
    case RangeMethod::kMovingAverage:
      return {average_low_, average_high_};
    case RangeMethod::kMse:
      return least_error_range(levels, true);
    case RangeMethod::kEmd:
      return least_error_range(levels, false);
    case RangeMethod::kKl:
      return kl_range(levels);
  }
  return {low_, high_};
}

}  // namespace paddle::quant
