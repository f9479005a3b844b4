#pragma once
// Statistics of activations for calibration: a histogram of fixed size whose range grows as values
// come, so memory does not depend on the number of samples.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace paddle::quant {

/// How the range of a tensor is chosen from its statistics.
enum class RangeMethod { kMinMax, kAbsMax, kMovingAverage, kPercentile, kMse, kEmd, kKl };
/// kUsage, with the nearest name, for an unknown one.
RangeMethod parse_range_method(const std::string& name);
std::vector<std::string> range_method_names();

struct Range {
  double low = 0, high = 0;
};

class Observer {
 public:
  /// Adds the finite elements of an array; NaN and infinities are counted apart.
  void add(const Array& values);
  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  int64_t not_finite() const { return not_finite_; }
  double lowest() const { return low_; }
  double highest() const { return high_; }
  /// Everything as numbers, for files.
  std::vector<double> state() const;
  /// From `state()`; nullopt if the numbers are not a state.
  static std::optional<Observer> from_state(const std::vector<double>& state);
  /// The range to quantize to `levels` values. `percentile` is for kPercentile.
  Range range(RangeMethod method, int64_t levels, double percentile = 99.99) const;

 private:
  static constexpr int64_t kBins = 2048;
  /// Widens the histogram until it holds [low, high], merging bins.
  void cover(double low, double high);
  double bin_center(int64_t bin) const;
  Range percentile_range(double percentile) const;
  /// Shrinks the range in steps and keeps the one with the least mean error: squared, or absolute,
  /// which is the earth mover's distance between the values and the quantized ones.
  Range least_error_range(int64_t levels, bool squared) const;
  Range kl_range(int64_t levels) const;

  std::vector<double> bins_;
  double start_ = 0, width_ = 0;  ///< of the histogram and of one bin
  double low_ = 0, high_ = 0;
  double average_low_ = 0, average_high_ = 0;  ///< of the batches, the latest ones most
  int64_t count_ = 0, not_finite_ = 0;
};

}  // namespace paddle::quant
